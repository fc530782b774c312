"""The role that is the clockwork."""

from seckill.afterlife import Afterlife
from seckill.alarms import Alarm
from seckill.catalogue import Catalogue
from seckill.cli.configuring import environment
from seckill.cli.running import Role, run
from seckill.failures import Failures
from seckill.keeper import Keeper, run_keeper
from seckill.loops import Stop
from seckill.memory_store import MemoryStore
from seckill.operator_desk import OperatorDesk
from seckill.payments import Payments
from seckill.presence import present
from seckill.settings import Settings, require_production
from seckill.watchdog import Watchdog
from seckill.wiring import open_engine


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
