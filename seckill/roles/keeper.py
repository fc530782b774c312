"""The clockwork: everything that has to happen although nobody asks for it."""

from seckill.afterlife import Afterlife
from seckill.alarms import Alarm
from seckill.catalogue import Catalogue
from seckill.failures import Failures
from seckill.keeper import Keeper, run_keeper
from seckill.loops import Stop
from seckill.operator_desk import OperatorDesk
from seckill.payments import Payments
from seckill.presence import present
from seckill.settings import Settings
from seckill.watchdog import Watchdog
from seckill.wiring import Engine


async def keep(engine: Engine, settings: Settings, stop: Stop) -> None:
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
