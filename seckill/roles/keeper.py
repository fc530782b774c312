"""The keeper: everything that has to happen without a request."""

from contextlib import suppress
from functools import partial

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.alarms.alarm import LAST_WORDS_S
from seckill.engine.keeper import FIGURES_EVERY_S, SERVERS_EVERY_S, KeeperStep, run_schedule
from seckill.errors import SeckillError
from seckill.loops import Stop
from seckill.operations.audit_watchdog import Watchdog
from seckill.operations.outage_alarm import EVERY_S as OUTAGES_EVERY_S
from seckill.operations.outage_alarm import OutageAlarm
from seckill.operations.presence import present
from seckill.operations.role_health import Vitals, watched
from seckill.operations.server_alarm import ServerAlarm
from seckill.operations.space_alarm import EVERY_S as SPACE_EVERY_S
from seckill.operations.space_alarm import SpaceAlarm
from seckill.settings import Settings
from seckill.web.sales.item_ids import ItemIds
from seckill.web.webhooks.event_feed import EventNames, event_document


async def keep(engine: Engine, settings: Settings, stop: Stop, vitals: Vitals | None = None) -> None:
    use = UseCases(engine, settings)
    steps = use.keeper.schedule(stop)
    steps.append(KeeperStep("servers", ServerAlarm(engine.gate, use.alarm).step, SERVERS_EVERY_S))
    outages = OutageAlarm(use.readiness, engine.ledger, use.losses.undamaged, use.alarm)
    steps.append(KeeperStep("outages", outages.step, OUTAGES_EVERY_S))
    steps.append(KeeperStep("space", SpaceAlarm(engine.gate, engine.ledger, use.alarm).step, SPACE_EVERY_S))
    steps.append(KeeperStep("figures", use.sale_figures.look, FIGURES_EVERY_S))
    dispatcher = use.webhook_dispatcher(partial(event_document, event_names(use)))
    steps.append(KeeperStep("webhooks", partial(dispatcher.run, stop), 0.0, lasting=True))
    if engine.auditor is not None and settings.audit_every_s:
        pauses = settings.audit_pauses == "on"
        watchdog = Watchdog(engine.auditor, use.alarm, engine.ledger, use.operator_desk, pauses=pauses)
        steps.append(KeeperStep("audit", watchdog.step, settings.audit_every_s))
    async with watched(vitals, use.readiness), present(engine.board, "keeper"):
        await run_schedule(steps, stop)
    with suppress(SeckillError):
        await use.figure_keeping.write()
    await use.alarm.drain(LAST_WORDS_S)


def event_names(use: UseCases) -> EventNames:
    """The names of events as the API has them: a webhook says the same as the feed."""
    engine = use.engine
    return EventNames(
        sale_ids=engine.sale_ids,
        order_ids=engine.order_ids,
        entry_ids=engine.entry_ids,
        item_ids=ItemIds(engine.item_ids),
        sale_cache=use.sale_cache,
    )
