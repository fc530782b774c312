"""The clockwork: everything that has to happen without a request."""

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.keeper import run_keeper
from seckill.loops import Stop
from seckill.operations.presence import present
from seckill.operations.server_alarm import ServerAlarm
from seckill.operations.watchdog import Watchdog
from seckill.settings import Settings


async def keep(engine: Engine, settings: Settings, stop: Stop) -> None:
    use = UseCases(engine, settings)
    watchdog = None
    if engine.auditor is not None and settings.audit_every_s:
        pauses = settings.audit_pauses == "on"
        watchdog = Watchdog(engine.auditor, use.alarm, engine.ledger, use.operator_desk, pauses=pauses)
    async with present(engine.board, "keeper"):
        await run_keeper(
            use.keeper,
            use.release_desk,
            use.failures,
            use.payments,
            use.refunds,
            stop,
            use.delays,
            lapses=use.lapses,
            audit=watchdog.step if watchdog else None,
            audit_every_s=settings.audit_every_s,
            watch_servers=ServerAlarm(engine.gate, use.alarm).step,
        )
