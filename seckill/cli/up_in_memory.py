"""Runs everything in one process. Separate from `up`, which starts a process for each role and loads none of them
itself."""

import asyncio
import contextlib
import tempfile
from dataclasses import replace

from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import new_memory, open_engine
from seckill.cli.async_command import run
from seckill.cli.commands.keeper import keeper_role
from seckill.cli.commands.up_preparation import greeting
from seckill.cli.commands.worker import worker_role
from seckill.cli.up_announcement import announce
from seckill.loops import Stop
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals, can_sell
from seckill.settings import Settings
from seckill.web.connections.listening_socket import bind
from seckill.web.server import serve


def up_in_memory(settings: Settings, *, demo: bool) -> None:
    vitals = Vitals("all", enough=can_sell)

    async def main(stop: Stop) -> None:
        async with vitals.beating():
            await _up_in_memory(settings, stop, vitals, demo=demo)

    with metrics_port(settings, vitals):
        run(main, settings)


async def _up_in_memory(settings: Settings, stop: Stop, vitals: Vitals, *, demo: bool) -> None:
    """Runs API, worker and keeper as tasks of this process. Their store and ledger are gone when it stops."""
    memory, last = new_memory(), Stop()
    with (
        tempfile.TemporaryDirectory(prefix="seckill-") as folder,
        contextlib.closing(bind(settings.host, settings.port)) as listener,
    ):
        settings = replace(settings, database_url=f"sqlite:///{folder}/ledger.db")
        await migrate(settings.database_url)
        async with open_engine(settings, memory) as engine:
            known = await greeting(engine, settings, demo=demo)
        api = asyncio.create_task(serve(settings, listener, stop, memory, vitals))
        behind = [asyncio.ensure_future(role(settings, memory)(last)) for role in (worker_role, keeper_role)]
        for task in (api, *behind):
            task.add_done_callback(lambda _: stop.set())  # when one of them ends, all stop
        try:
            await announce(settings, listener, stop, known, demo=demo)
        finally:
            stop.set()
            try:
                await api
            finally:
                last.set()  # only now: the worker still writes what the API has accepted
                await asyncio.gather(*behind)
