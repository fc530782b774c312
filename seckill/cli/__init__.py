"""The `seckill` command. Each subcommand reads its settings, calls a use case and prints the result."""

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from cyclopts import App, CycloptsError

from seckill import __version__
from seckill.cli.command_list import COMMANDS, GROUPS
from seckill.cli.exit_codes import EXIT_INTERRUPTED, EXIT_SETTINGS, EXIT_USAGE, of_own_failure
from seckill.cli.lean_imports import lean_imports
from seckill.errors import SeckillError, SettingsError
from seckill.extras import explained
from seckill.failpoints import VARIABLE, arm

DEBUG = "--debug"
# Not for users: where processes cannot be forked, `seckill up` starts this command as it starts its roles.
PREPARATION = "up-preparation"


def _app(*, listing: bool) -> App:
    """`listing`: for the list of all commands, with a sentence for each. Otherwise the help is the command's own."""
    made = App(
        name="seckill",
        help="A flash-sale engine that sells exactly the stock. `seckill up --demo` gives a running sale.",
        help_epilogue="With `--debug`, an unexpected error is shown with its traceback.",
        version=__version__,
        help_format="markdown",
    )
    for command, sentence in COMMANDS.items():
        module = command.replace("-", "_")
        place = f"seckill.cli.commands.{module}:{'app' if command in GROUPS else module}"
        made.command(place, name=command, help=sentence if listing else None)
    return made


app = _app(listing=False)


def main() -> NoReturn:
    arguments = sys.argv[1:]
    debug = DEBUG in arguments
    if debug:
        arguments.remove(DEBUG)
    listing = not arguments or arguments[0] in app.help_flags

    def command() -> None:
        chosen = _app(listing=True) if listing else app
        if arguments[:1] == [PREPARATION]:
            chosen.command("seckill.cli.commands.up_preparation:up_preparation", name=PREPARATION)
        chosen(arguments, print_error=False, exit_on_error=False, verbose=False)

    carry_out(command, of_own_failure(arguments[0] if arguments else None), debug=debug)


def carry_out(command: Callable[[], object], failed: int, *, debug: bool) -> NoReturn:
    """Runs the command and ends the process. An error is told in one sentence; with `debug`, an unexpected one is told
    with its traceback. `failed`: the exit code of a command that failed."""
    # Loading makes many objects and no garbage. Looking for garbage all the same takes a fifth of the time for loading,
    # and half a second at the end of the process. `run` enables it for what runs for long.
    gc.disable()
    atexit.register(gc.freeze)
    _have_outputs()
    lean_imports()
    try:
        if spec := os.environ.get(VARIABLE):
            from seckill.bootstrap.boundary_failpoints import NAMES  # noqa: PLC0415 (takes a tenth of a second, and is rarely needed)

            arm(spec, NAMES)
        with explained():
            _to_the_last_line(command)
    except CycloptsError as error:
        _complain(" ".join(str(error).split()))
        code = EXIT_USAGE
    except SettingsError as error:
        _complain(*error.problems)
        code = EXIT_SETTINGS
    except SeckillError as error:
        _complain(str(error))
        code = failed
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of the output wants no more of it, as `head` does, and needs no sentence
        _drop_output()
        code = failed
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            _complain(f"Something unexpected went wrong ({error!r}): run it again with {DEBUG} to see where.")
        code = failed
    else:
        code = 0
    finally:
        gc.enable()
    sys.exit(code)


def _have_outputs() -> None:
    """A process that was started without an output, as some service managers do, writes to nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 (for as long as the process runs)


def _to_the_last_line(command: Callable[[], object]) -> None:
    """Runs the command and writes what it has printed. Otherwise Python would write it after everything else, when it
    is too late to say that it cannot be written."""
    try:
        command()
    except SystemExit:
        _flush()
        raise
    _flush()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise SeckillError(f"The output cannot be written ({error.strerror}).") from error


def _drop_output() -> None:
    """So that Python does not try again at the end of the process to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(*sentences: str) -> None:
    for sentence in sentences:
        sys.stderr.write(f"seckill: {sentence}\n")
