"""Writes orders; with a broker, it also relays them there."""

import asyncio

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.alarms.alarm import LAST_WORDS_S
from seckill.engine.orders.broker_relay import run_relay
from seckill.engine.orders.worker import run_worker
from seckill.loops import Stop
from seckill.operations.presence import present
from seckill.operations.role_health import Vitals, watched
from seckill.settings import Settings
from seckill.telemetry import recorded_here


async def work(engine: Engine, settings: Settings, stop: Stop, vitals: Vitals | None = None) -> None:
    use = UseCases(engine, settings)
    async with (
        watched(vitals, use.readiness),
        present(engine.board, "worker", lambda: {"recorded": recorded_here()}),
        asyncio.TaskGroup() as loops,
    ):
        loops.create_task(run_worker(use.worker(stop), stop))
        if engine.broker:
            loops.create_task(run_relay(use.relay(engine.broker), stop))
    await use.alarm.drain(LAST_WORDS_S)
