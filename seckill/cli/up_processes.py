"""A process for each role, copied from one that has loaded all of them, and the embedded servers."""

import contextlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from seckill.backends.sql import make_ahead
from seckill.backends.sql.schema import Schema, schema_of
from seckill.bootstrap.engine import open_engine
from seckill.cli import main
from seckill.cli.async_command import run
from seckill.cli.command_settings import with_embedded
from seckill.cli.demo_sales import demo_sale
from seckill.cli.up_announcement import announce
from seckill.errors import SeckillError
from seckill.local.data_folder import DataFolder
from seckill.local.fork_server import ForkServer, fork_server
from seckill.local.supervisor import Process, SupervisedServer, Supervisor
from seckill.local.valkey import EmbeddedValkey
from seckill.loops import Stop
from seckill.operations.metrics_port import metrics_port
from seckill.operations.supervised_health import SupervisedVitals
from seckill.settings import TABLE, Settings, written
from seckill.telemetry import Exposition
from seckill.web.listening_socket import bind
from seckill.web.pages import version_of_assets

# What roles load beyond what is loaded here, in the fork server, while this process prepares the servers.
LOADED = ("seckill.cli.api", "seckill.cli.keeper", "seckill.cli.worker", "seckill.audit")
BEHIND = ("worker", "keeper")


def up_processes(settings: Settings, folder: DataFolder, figures: Path, *, demo: bool, api: int) -> None:
    embedded = not settings.redis_url
    settings = with_embedded(settings)
    environ = _environ(settings, figures)

    def load() -> None:
        folder.close()  # in the copy: the folder is locked as long as any process has this open
        for name in LOADED:
            importlib.import_module(name)
        version_of_assets()
        with contextlib.suppress(ImportError):  # the process that really opens it will tell
            if settings.broker_url:
                importlib.import_module("seckill.bootstrap.rabbitmq")
        with contextlib.suppress(ImportError):  # not there on every platform
            importlib.import_module("uvloop")
        with contextlib.suppress(SeckillError):  # the process that really opens it will tell
            make_ahead(settings.database_url)

    with fork_server(load, _run_role, environ) as copies:

        async def supervise(stop: Stop) -> None:
            supervisor = Supervisor()
            with contextlib.closing(bind(settings.host, settings.port)) as listener:
                try:
                    sale_id = await _prepare(supervisor, settings, embedded=embedded, demo=demo)
                    await _start_roles(supervisor, environ, copies, listener.fileno(), api)
                    with metrics_port(settings, SupervisedVitals(("api", *BEHIND), Exposition(figures))):
                        await announce(settings, listener, stop, sale_id, demo=demo)
                finally:
                    await supervisor.stop()

        run(supervise, settings)


def _run_role(arguments: Sequence[str]) -> None:
    sys.argv = ["seckill", *arguments]
    main()


async def _prepare(supervisor: Supervisor, settings: Settings, *, embedded: bool, demo: bool) -> str | None:
    """The servers; the id of a sale to show."""
    await _prepare_ledger(settings)
    if embedded:
        await supervisor.add(SupervisedServer(EmbeddedValkey(settings.data_dir, durability=settings.durability)))
    # Refuses unsuitable servers before any role is started.
    async with open_engine(settings, audits=False) as engine:
        return await demo_sale(engine, settings) if demo else None


async def _prepare_ledger(settings: Settings) -> None:
    if settings.broker_url:
        from seckill.backends.rabbitmq.connections import check_broker  # noqa: PLC0415 (most do without a broker)

        await check_broker(settings.broker_url)  # refused before anything is started
    if await schema_of(settings.database_url) is not Schema.CURRENT:
        from seckill.backends.sql.migration import migrate  # noqa: PLC0415 (slow to load, and not needed the next time)

        await migrate(settings.database_url)


async def _start_roles(
    supervisor: Supervisor, environ: Mapping[str, str], copies: ForkServer | None, listener: int, api: int
) -> None:
    if copies is not None:
        await copies.ready()
    # Stopped after the API, because the worker still writes what the API has accepted.
    await supervisor.add(*(Process(role, [role], environ, copies=copies) for role in BEHIND))
    await supervisor.add(
        *(Process(f"api {n}", ["api"], environ, listener=listener, copies=copies) for n in range(1, api + 1))
    )


def _environ(settings: Settings, figures: Path) -> dict[str, str]:
    """The settings as they are now, for the processes that we start."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    environ |= {"SECKILL_FAILPOINTS": os.environ.get("SECKILL_FAILPOINTS", "")}
    for setting in TABLE:
        environ[setting.variable] = written(getattr(settings, setting.name))
    # The figures of all are served here, on one port.
    return environ | {"SECKILL_METRICS_PORT": "", "PROMETHEUS_MULTIPROC_DIR": str(figures)}
