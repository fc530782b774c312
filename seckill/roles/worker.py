"""Writes orders; with a broker, it also relays them there."""

import asyncio

from seckill.alarms import Alarm
from seckill.fulfilment import Worker, run_worker
from seckill.loops import Stop
from seckill.presence import present
from seckill.relaying import Relay, run_relay
from seckill.settings import Settings
from seckill.telemetry import recorded_here
from seckill.wiring import Engine


async def work(engine: Engine, settings: Settings, stop: Stop) -> None:
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
