"""The `seckill` command. Each subcommand reads its settings, calls a use case and prints the result."""

import os
import sys
from typing import NoReturn

from cyclopts import App

from seckill import __version__
from seckill.cli import dead, doctor, roles, sale, token, up
from seckill.errors import SeckillError, SettingsError
from seckill.failpoints import VARIABLE, arm

EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_INTERRUPTED = 130

app = App(
    name="seckill",
    help="A flash-sale engine that sells exactly the stock. `seckill up --demo` gives a running sale.",
    version=__version__,
    help_format="markdown",
)
app.command(up.up)
app.command(roles.api)
app.command(roles.worker)
app.command(roles.keeper)
app.command(roles.migrate)
app.command(sale.app)
app.command(dead.app)
app.command(token.app)
app.command(doctor.doctor)


def main() -> NoReturn:
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if debug:
        arguments.remove("--debug")
    try:
        arm(os.environ.get(VARIABLE, ""))
        app(arguments)
    except SettingsError as error:
        _complain(*error.problems)
        code = EXIT_SETTINGS
    except SeckillError as error:
        _complain(str(error))
        code = EXIT_FAILED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except Exception as error:
        if debug:
            raise
        _complain(f"Something unexpected went wrong ({error!r}): run it again with --debug to see where.")
        code = EXIT_FAILED
    else:
        code = 0
    sys.exit(code)


def _complain(*sentences: str) -> None:
    for sentence in sentences:
        sys.stderr.write(f"seckill: {sentence}\n")
