"""Runs the embedded servers, and a process for each role, copied from one that has loaded all of them.

This process watches over all others and stays small: it loads little, and preparations that need the engine are done by
copies that end (`up_preparation.py`).
"""

import asyncio
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from seckill.cli import DEBUG, PREPARATION, carry_out
from seckill.cli.async_command import run
from seckill.cli.command_settings import with_embedded
from seckill.cli.exit_codes import EXIT_FAILED
from seckill.cli.up_announcement import Greeting, announce
from seckill.errors import SeckillError, StartError
from seckill.local.data_folder import DataFolder
from seckill.local.fork_server import ForkServer, fork_server
from seckill.local.supervisor import Process, SupervisedServer, Supervisor
from seckill.local.valkey import EmbeddedValkey
from seckill.loops import Stop
from seckill.settings import TABLE, Settings, written
from seckill.web.connections.listening_socket import bind

# What the fork server loads in addition to the imports of this module.
LOADED = (
    "seckill.cli.commands.api",
    "seckill.cli.commands.keeper",
    "seckill.cli.commands.up_preparation",
    "seckill.cli.commands.worker",
    "seckill.audit",
)
BEHIND = ("worker", "keeper")


def up_processes(settings: Settings, folder: DataFolder, figures: Path, *, demo: bool, api: int) -> None:
    embedded = not settings.redis_url
    settings = with_embedded(settings)
    environ = _environ(settings, figures)

    # In the fork server: the folder is locked as long as any process has this open.
    with fork_server(partial(_load, settings), folder.close, _run_role, environ) as copies:

        async def supervise(stop: Stop) -> int:
            supervisor = Supervisor()
            with contextlib.closing(bind(settings.host, settings.port)) as listener:
                try:
                    prepare = partial(_prepared, environ, copies)
                    await prepare("ledger")
                    if embedded:
                        valkey = EmbeddedValkey(settings.data_dir, durability=settings.durability)
                        await supervisor.add(SupervisedServer(valkey))
                    known = msgspec.json.decode(await prepare("demo" if demo else "gate"), type=Greeting)
                    await _start_roles(supervisor, environ, copies, listener.fileno(), api)
                    with _metrics_port(settings, figures):
                        await announce(settings, listener, stop, known, demo=demo)
                except _NotPrepared as failed:
                    return failed.code
                finally:
                    await supervisor.stop()
            return 0

        code = run(supervise, settings)
    if code:
        sys.exit(code)


def _load(settings: Settings) -> None:
    for name in LOADED:
        importlib.import_module(name)
    from seckill import audit  # noqa: PLC0415 (only loaded in a fork server)
    from seckill.backends import sql  # noqa: PLC0415
    from seckill.domain.receipt import Receipts  # noqa: PLC0415
    from seckill.web.pages.pages import version_of_assets  # noqa: PLC0415

    version_of_assets()
    Receipts(bytes(32))  # the first key makes OpenSSL initialise itself
    with contextlib.suppress(ImportError):  # the process that really opens it will report this
        if settings.broker_url:
            importlib.import_module("seckill.bootstrap.rabbitmq")
    with contextlib.suppress(ImportError):  # does not exist on every platform
        importlib.import_module("uvloop")
    with contextlib.suppress(SeckillError):  # the process that really opens it will report this
        sql.make_ahead(settings.database_url)
        audit.make_ahead(settings.database_url)


def _run_role(arguments: Sequence[str]) -> None:
    """Runs a role as `main` would with these arguments, but without the command parser, whose memory each copy would
    otherwise duplicate."""
    sys.argv = ["seckill", *arguments]
    words = [word for word in arguments if word != DEBUG]
    module = importlib.import_module(f"seckill.cli.commands.{words[0].replace('-', '_')}")
    role = getattr(module, words[0].replace("-", "_"))
    match words[1:]:
        case [*given, "--fd", fd]:
            command = partial(role, *given, fd=int(fd))
        case given:
            command = partial(role, *given)
    carry_out(command, EXIT_FAILED, debug=DEBUG in arguments)


class _NotPrepared(Exception):
    """Raised when a preparation failed; its process has already printed why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def _prepared(environ: Mapping[str, str], copies: ForkServer | None, what: str) -> bytes:
    """Returns what the preparing process reports."""
    ours, its = os.pipe()
    arguments = [PREPARATION, what, *([DEBUG] if DEBUG in sys.argv else [])]
    process = Process(what, arguments, environ, listener=its, copies=copies)
    with os.fdopen(ours, "rb") as told:
        try:
            await process.start()
        finally:
            os.close(its)
        try:
            code = await process.wait()  # even after Ctrl-C, because a migration should not be interrupted
        except asyncio.CancelledError:  # Ctrl-C again
            process.kill()
            raise
        if code < 0:
            raise StartError(f"The process that prepares the {what} was killed ({signal.Signals(-code).name}).")
        if code:
            raise _NotPrepared(code)
        return told.read()


async def _start_roles(
    supervisor: Supervisor, environ: Mapping[str, str], copies: ForkServer | None, listener: int, api: int
) -> None:
    # Stopped after the API, because the worker still writes what the API has accepted.
    await supervisor.add(*(Process(role, [role], environ, copies=copies) for role in BEHIND))
    await supervisor.add(
        *(Process(f"api {n}", ["api"], environ, listener=listener, copies=copies) for n in range(1, api + 1))
    )


@contextlib.contextmanager
def _metrics_port(settings: Settings, figures: Path) -> Iterator[None]:
    if settings.metrics_port is None:
        yield
        return
    # Imported only here: most set-ups do without it, so this process stays small.
    from seckill.operations.metrics_port import metrics_port  # noqa: PLC0415
    from seckill.operations.supervised_health import SupervisedVitals  # noqa: PLC0415
    from seckill.telemetry import Exposition  # noqa: PLC0415

    with metrics_port(settings, SupervisedVitals(("api", *BEHIND), Exposition(figures))):
        yield


def _environ(settings: Settings, figures: Path) -> dict[str, str]:
    """Returns the present settings as an environment for the processes that we start."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    environ |= {"SECKILL_FAILPOINTS": os.environ.get("SECKILL_FAILPOINTS", "")}
    for setting in TABLE:
        environ[setting.variable] = written(getattr(settings, setting.name))
    # This process serves the figures of all of them, on one port.
    return environ | {"SECKILL_METRICS_PORT": "", "PROMETHEUS_MULTIPROC_DIR": str(figures)}
