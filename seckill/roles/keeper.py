"""The clockwork: everything that has to happen without a request."""

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.keeper import LAPSES_EVERY_S, SERVERS_EVERY_S, KeeperStep, run_schedule
from seckill.loops import Stop
from seckill.operations.presence import present
from seckill.operations.server_alarm import ServerAlarm
from seckill.operations.watchdog import Watchdog
from seckill.settings import Settings


async def keep(engine: Engine, settings: Settings, stop: Stop) -> None:
    use = UseCases(engine, settings)
    steps = use.keeper.schedule(stop)
    steps.append(KeeperStep("servers", ServerAlarm(engine.gate, use.alarm).step, SERVERS_EVERY_S))
    steps.append(KeeperStep("lapses", use.lapses.look, LAPSES_EVERY_S))
    if engine.auditor is not None and settings.audit_every_s:
        pauses = settings.audit_pauses == "on"
        watchdog = Watchdog(engine.auditor, use.alarm, engine.ledger, use.operator_desk, pauses=pauses)
        steps.append(KeeperStep("audit", watchdog.step, settings.audit_every_s))
    async with present(engine.board, "keeper"):
        await run_schedule(steps, stop)
