"""The role that writes orders."""

import asyncio

from seckill.alarms import Alarm
from seckill.cli.configuring import environment
from seckill.cli.running import Role, run
from seckill.fulfilment import Worker, run_worker
from seckill.loops import Stop
from seckill.memory_store import MemoryStore
from seckill.presence import present
from seckill.relaying import Relay, run_relay
from seckill.settings import Settings, require_production
from seckill.telemetry import recorded_here
from seckill.wiring import open_engine


def worker() -> None:
    """Write admitted orders to the ledger."""
    settings = environment()
    require_production(settings, "worker")
    run(worker_role(settings), settings)


def worker_role(settings: Settings, memory: MemoryStore | None = None) -> Role:
    async def main(stop: Stop) -> None:
        async with open_engine(settings, memory, role="worker", audits=False) as engine:
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
