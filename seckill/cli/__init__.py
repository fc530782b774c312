"""The `seckill` command. Each subcommand reads its settings, calls a use case and prints the result."""

import atexit
import gc
import os
import sys
import traceback
from typing import NoReturn

from cyclopts import App, CycloptsError

from seckill import __version__
from seckill.errors import SeckillError, SettingsError
from seckill.extras import explained
from seckill.failpoints import VARIABLE, arm

EXIT_FAILED = 1
EXIT_SETTINGS = 2
EXIT_USAGE = 2
EXIT_UNSURE = 2
EXIT_INTERRUPTED = 130

# Each is loaded by name when it is needed: a token is made without a web server and a database. So that listing all of
# them loads none, what the list says of each is repeated here.
COMMANDS = {
    "up": "Run everything on this machine: embedded servers unless URLs are set, API, worker and keeper.",
    "api": "Answer buyers and operators over HTTP.",
    "worker": "Write admitted orders to the ledger.",
    "keeper": "Make and open rounds, relay changes, expire orders, refund, send webhooks, rebuild what the gate "
    "lost, audit.",
    "migrate": "Bring the database's schema to this version. Harmless to repeat.",
    "sale": "Create, duplicate, list, show, look back at, change, publish, pause, resume and close sales; add stock.",
    "orders": "List, export, cancel and refund orders, also all of a sale.",
    "refunds": "List refunds, and note those that were made by hand.",
    "line": "Show the line of a sale, pause and resume it, change its pace, give the public value of its draw.",
    "voucher": "Upload, count, look up and redeem voucher codes.",
    "webhook": "Create, list, show, change, test and delete webhooks; their deliveries and secrets.",
    "operator": "Create, list and revoke operators' keys.",
    "record": "Who has changed what: list and export the record.",
    "buyer": "Block and unblock buyers, and end their tokens.",
    "dead": "List, show, replay and discard dead letters: orders that could not be written.",
    "alarm": "List alarms, and send one that is a test.",
    "token": "Tokens for trying things out.",
    "audit": "Check that nothing was oversold, lost or given back twice. Changes nothing, and may run at full load.",
    "repair": "Say what is broken and what would mend it; do it with `--apply`.",
    "doctor": "Check the set-up, list every setting, and say what to mend. Exit code 1 if something is wrong.",
    "backup": "Copy the data folder of `seckill up` while it runs: ledger, gate and secrets as they are at one moment.",
    "restore": "Make an empty data folder what it was when `seckill backup` copied it. Checks every file first.",
    "move": "Copy the ledger from SQLite to PostgreSQL or MariaDB, and compare every row. Stop everything first.",
    "erase": "Put a pseudonym in a buyer's place, everywhere and for good. Orders stay, for the books.",
    "export": "Everything that is held about one buyer, as JSON.",
    "verify-draw": "Recompute a draw from what was published, without trusting the server that made it.",
    "compare": "Run every design that tutorials teach against the same rush, and show what it sells, loses and costs.",
    "bench": "Measure accepted and persisted orders a second, beside the limits of this machine and a plain service.",
    "rehearse": "Send a growing crowd to a marked sale on a real deployment, and tell which rate is safe and what is "
    "full first.",
    "chaos": "Start everything, let a crowd in, break things on a schedule, audit all along, and tell what held.",
}
# Those with commands of their own.
GROUPS = (
    "sale",
    "orders",
    "refunds",
    "line",
    "voucher",
    "webhook",
    "operator",
    "record",
    "buyer",
    "dead",
    "alarm",
    "token",
)
JUDGES = (
    "audit",
    "repair",
    "chaos",
    "rehearse",
    "verify-draw",
)  # 1 means that something was found broken, so never their own failure


def _app(*, listing: bool) -> App:
    """`listing`: to show what there is. Otherwise each command has its own words, which are more."""
    made = App(
        name="seckill",
        help="A flash-sale engine that sells exactly the stock. `seckill up --demo` gives a running sale.",
        help_epilogue="With `--debug`, an unexpected error is shown with its traceback.",
        version=__version__,
        help_format="markdown",
    )
    for command, sentence in COMMANDS.items():
        module = command.replace("-", "_")
        place = f"seckill.cli.{module}:{'app' if command in GROUPS else module}"
        made.command(place, name=command, help=sentence if listing else None)
    return made


app = _app(listing=False)


def main() -> NoReturn:
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if debug:
        arguments.remove("--debug")
    failed = EXIT_UNSURE if arguments and arguments[0] in JUDGES else EXIT_FAILED
    # Loading makes many objects and no garbage: looking for it is a fifth of the time that loading takes, and half a
    # second at the end of the process. `run` enables it for what runs for long.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        if spec := os.environ.get(VARIABLE):
            from seckill.bootstrap.boundaries import NAMES  # noqa: PLC0415 (a tenth of a second that hardly anybody needs)

            arm(spec, NAMES)
        listing = not arguments or arguments[0] in app.help_flags
        chosen = _app(listing=True) if listing else app
        with explained():
            chosen(arguments, print_error=False, exit_on_error=False, verbose=False)
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
    except Exception as error:
        if debug:
            traceback.print_exc()
        else:
            _complain(f"Something unexpected went wrong ({error!r}): run it again with --debug to see where.")
        code = failed
    else:
        code = 0
    finally:
        gc.enable()
    sys.exit(code)


def _complain(*sentences: str) -> None:
    for sentence in sentences:
        sys.stderr.write(f"seckill: {sentence}\n")
