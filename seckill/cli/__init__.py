"""The `seckill` command. Each subcommand reads its settings, calls a use case and prints the result."""

import os
import sys
from typing import NoReturn

from cyclopts import App, CycloptsError

from seckill import __version__
from seckill.errors import SeckillError, SettingsError
from seckill.failpoints import VARIABLE, arm

EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

app = App(
    name="seckill",
    help="A flash-sale engine that sells exactly the stock. `seckill up --demo` gives a running sale.",
    help_epilogue="With `--debug`, an unexpected error is shown with its traceback.",
    version=__version__,
    help_format="markdown",
)
# By name, so that each is loaded only when it is needed: a token is made without a web server and a database.
for _command in (
    "up:up",
    "roles:api",
    "roles:worker",
    "roles:keeper",
    "roles:migrate",
    "sale:app",
    "dead:app",
    "token:app",
    "audit:audit",
    "repair:repair",
    "doctor:doctor",
    "compare:compare",
    "bench:bench",
    "chaos:chaos",
):
    _module, _, _name = _command.partition(":")
    app.command(f"seckill.cli.{_command}", name=_module if _name == "app" else _name)


def main() -> NoReturn:
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if debug:
        arguments.remove("--debug")
    try:
        if spec := os.environ.get(VARIABLE):
            from seckill.boundaries import NAMES  # noqa: PLC0415 (a tenth of a second that hardly anybody needs)

            arm(spec, NAMES)
        if not arguments or arguments[0] in app.help_flags:
            _load_all()
        app(arguments, print_error=False, exit_on_error=False, verbose=False)
    except CycloptsError as error:
        _complain(" ".join(str(error).split()))
        code = EXIT_USAGE
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


def _load_all() -> None:
    """The list of commands says what each does, which is written where it is defined."""
    for name in list(app):
        app[name]


def _complain(*sentences: str) -> None:
    for sentence in sentences:
        sys.stderr.write(f"seckill: {sentence}\n")
