"""Everything on this machine with one command."""

import contextlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from seckill.cli.announcing import announce
from seckill.cli.configuring import environment, with_embedded, with_secrets
from seckill.cli.demo import demo_sale
from seckill.cli.parameters import OptionalWhole
from seckill.cli.running import run
from seckill.embedded.data_folder import DataFolder
from seckill.embedded.supervisor import Process, Server, Supervisor
from seckill.embedded.valkey import EmbeddedValkey
from seckill.errors import SettingsError, StartError
from seckill.ledgers.schema import Schema, schema_of
from seckill.loops import Stop
from seckill.settings import TABLE, Secret, Settings
from seckill.web.listening import bind
from seckill.wiring import open_engine

API_PROCESSES = 2
API_MAX = 64


def up(
    *,
    demo: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    host: str | None = None,
    port: OptionalWhole = None,
    data: Path | None = None,
    api: OptionalWhole = None,
) -> None:
    """Run everything on this machine: embedded servers unless URLs are set, API, worker and keeper.

    With `SECKILL_REDIS_URL=memory://` all of it is one process that needs no server and keeps nothing.

    Parameters
    ----------
    demo
        Create two sales to try things out, if there is none yet, and let anybody sign in under any name.
    host
        Address to listen on; 0.0.0.0 for all.
    port
        Port to listen on; 0 takes any free one.
    data
        Folder for data and secrets.
    api
        Number of API processes; 2 if it is not given.
    """
    if api is not None and not 1 <= api <= API_MAX:
        raise StartError(f"--api must be from 1 to {API_MAX}.")
    settings = environment(data=data, host=host, port=port)
    if settings.in_memory:
        _check_memory(settings, api)
    if demo:
        settings = replace(settings, demo_sign_in="on")
    os.umask(0o077)  # whatever we and our servers write is nobody else's
    with DataFolder.open(settings.data_dir) as folder:
        settings = with_secrets(replace(settings, data_dir=folder.path), folder.secrets())

        async def main(stop: Stop) -> None:
            if settings.in_memory:
                from seckill.cli.up_in_memory import up_in_memory  # noqa: PLC0415 (every role, to be run in here)

                await up_in_memory(settings, stop, demo=demo)
            else:
                await _up(settings, stop, demo=demo, api=api or API_PROCESSES)

        run(main, settings)


async def _up(settings: Settings, stop: Stop, *, demo: bool, api: int) -> None:
    embedded = not settings.redis_url
    settings = with_embedded(settings)
    supervisor = Supervisor()
    with contextlib.closing(bind(settings.host, settings.port)) as listener:
        try:
            await _prepare_ledger(settings)
            if embedded:
                await supervisor.add(Server(EmbeddedValkey(settings.data_dir, durability=settings.durability)))
            # Refuses unsuitable servers before any role is started.
            async with open_engine(settings, audits=False) as engine:
                sale_id = await demo_sale(engine, settings) if demo else None
            await _start_roles(supervisor, settings, listener.fileno(), api)
            await announce(settings, listener, stop, sale_id, demo=demo)
        finally:
            await supervisor.stop()


def _check_memory(settings: Settings, api: int | None) -> None:
    problems = [
        f"memory:// keeps nothing and needs no other server: leave {variable} empty."
        for variable, value in [
            ("SECKILL_DATABASE_URL", settings.database_url),
            ("SECKILL_BROKER_URL", settings.broker_url),
        ]
        if value
    ]
    if api not in (None, 1):
        problems.append("memory:// is the memory of one process: leave out --api.")
    if problems:
        raise SettingsError(problems)


async def _prepare_ledger(settings: Settings) -> None:
    if settings.broker_url:
        from seckill.transports.amqp import check_broker  # noqa: PLC0415 (most do without a broker)

        await check_broker(settings.broker_url)  # refused before anything is started
    if await schema_of(settings.database_url) is not Schema.CURRENT:
        from seckill.ledgers.migrating import migrate  # noqa: PLC0415 (slow to load, and not needed the next time)

        await migrate(settings.database_url)


async def _start_roles(supervisor: Supervisor, settings: Settings, listener: int, api: int) -> None:
    environ = _environ(settings)
    await supervisor.add(Process("worker", ["worker"], environ))
    await supervisor.add(Process("keeper", ["keeper"], environ))
    for number in range(1, api + 1):
        await supervisor.add(Process(f"api {number}", ["api", "--fd", str(listener)], environ, fds=[listener]))


def _environ(settings: Settings) -> dict[str, str]:
    """The settings as they are now, for the processes that we start."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SECKILL_")}
    environ |= {"SECKILL_FAILPOINTS": os.environ.get("SECKILL_FAILPOINTS", "")}
    for setting in TABLE:
        value = getattr(settings, setting.name)
        if isinstance(value, Secret):
            value = value.reveal()
        if value is not None:
            text = ",".join(f"{item:g}" for item in value) if isinstance(value, tuple) else str(value)
            environ[setting.variable] = text
    metrics = settings.data_dir / "metrics"  # of this run only: old files would count twice
    shutil.rmtree(metrics, ignore_errors=True)
    metrics.mkdir(mode=0o700)
    return environ | {"PROMETHEUS_MULTIPROC_DIR": str(metrics)}
