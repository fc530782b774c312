"""One role each, for production."""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated

from cyclopts import Parameter

from seckill.afterlife import Afterlife
from seckill.alarms import Alarm
from seckill.catalogue import Catalogue
from seckill.cli.configuring import environment, with_data_folder
from seckill.cli.parameters import OptionalWhole, whole
from seckill.cli.running import run
from seckill.errors import SettingsError
from seckill.failures import Failures
from seckill.fulfilment import Worker, run_worker
from seckill.keeper import Keeper, run_keeper
from seckill.ledgers.migrating import migrate as migrate_ledger
from seckill.loops import Stop
from seckill.memory_store import MemoryStore
from seckill.operator_desk import OperatorDesk
from seckill.payments import Payments
from seckill.presence import present
from seckill.relaying import Relay, run_relay
from seckill.settings import Settings, require_production
from seckill.telemetry import recorded_here
from seckill.watchdog import Watchdog
from seckill.web.server import bind, serve
from seckill.wiring import open_engine

Role = Callable[[Stop], Awaitable[None]]


def api(
    *,
    host: str | None = None,
    port: OptionalWhole = None,
    fd: Annotated[int | None, Parameter(show=False, converter=whole)] = None,
) -> None:
    """Answer buyers and operators over HTTP.

    Parameters
    ----------
    host
        Address to listen on; 0.0.0.0 for all.
    port
        Port to listen on; 0 takes any free one.
    fd
        A socket that already listens, from the process that started this one.
    """
    settings = environment(host=host, port=port)
    require_production(settings, "api")
    listener = bind(settings.host, settings.port) if fd is None else socket.socket(fileno=fd)

    async def main(stop: Stop) -> None:
        await serve(settings, listener, stop)

    run(main, settings)


def worker() -> None:
    """Write admitted orders to the ledger."""
    settings = environment()
    require_production(settings, "worker")
    run(worker_role(settings), settings)


def worker_role(settings: Settings, memory: MemoryStore | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="worker") as engine:
            role = Worker(
                engine.transport,
                engine.ledger,
                stop,
                lanes=range(settings.lanes),
                claim_idle_s=settings.claim_idle_s,
                retry_delay_s=settings.retry_delays_s[0],
                delays=engine.broker.delays if engine.broker else None,
            )
            async with (
                present(engine.board, "worker", lambda: {"recorded": recorded_here()}),
                asyncio.TaskGroup() as loops,
            ):
                loops.create_task(run_worker(role, stop))
                if engine.broker:
                    relay = Relay(
                        engine.broker.outbox,
                        engine.broker.courier,
                        engine.ledger,
                        Alarm(settings.alarm_url),
                        lanes=range(settings.lanes),
                        claim_idle_s=settings.claim_idle_s,
                    )
                    loops.create_task(run_relay(relay, stop))

    return main


def keeper() -> None:
    """Make and open rounds, pass on changes, expire unpaid orders, make refunds, rebuild what the gate lost, audit."""
    settings = environment()
    require_production(settings, "keeper")
    run(keeper_role(settings), settings)


def keeper_role(settings: Settings, memory: MemoryStore | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="keeper") as engine:
            catalogue = Catalogue(engine.ledger, engine.gate, engine.sale_ids)
            role = Keeper(engine.gate, engine.transport, engine.ledger, catalogue, settings.lanes)
            afterlife = Afterlife(engine.gate, engine.transport, engine.ledger)
            delays = engine.broker.delays if engine.broker else None
            alarm = Alarm(settings.alarm_url)
            failures = Failures(engine.ledger, alarm, settings.retry_delays_s, delays)
            payments = Payments(engine.ledger.payments, engine.gate, engine.provider, engine.order_ids)
            watchdog = None
            if engine.auditor is not None and settings.audit_every_s:
                desk = OperatorDesk(engine.ledger, engine.gate) if settings.audit_pauses == "on" else None
                watchdog = Watchdog(engine.auditor, alarm, engine.ledger, desk)
            async with present(engine.board, "keeper"):
                await run_keeper(
                    role,
                    afterlife,
                    failures,
                    payments,
                    stop,
                    delays,
                    audit=watchdog.step if watchdog else None,
                    audit_every_s=settings.audit_every_s,
                )

    return main


def migrate() -> None:
    """Bring the database's schema to this version. Harmless to repeat."""
    settings = with_data_folder(environment())
    if not settings.database_url:
        raise SettingsError(["Set SECKILL_DATABASE_URL."])

    async def main(_: Stop) -> None:
        await migrate_ledger(settings.database_url)

    run(main, settings)
    sys.stdout.write("The database is up to date.\n")
