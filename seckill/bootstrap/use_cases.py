"""Builds the use cases of a process, each here and nowhere else."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from seckill.backends.door.beacon_reader import HttpBeacon
from seckill.backends.door.captcha_and_risk import open_check, open_risk
from seckill.bootstrap.engine import Engine
from seckill.domain.admission import Answer
from seckill.domain.door import PassKind
from seckill.engine.access.access_book import AccessBook
from seckill.engine.access.access_desk import AccessDesk
from seckill.engine.access.record_desk import RecordDesk
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.desk import AlarmDesk
from seckill.engine.alarms.notes import AlarmNotes
from seckill.engine.buyer_data import BuyerData
from seckill.engine.claims.admission_desk import AdmissionDesk
from seckill.engine.claims.claim_batches import do_nothing, tell_nobody
from seckill.engine.claims.live_figures import LiveFigures
from seckill.engine.claims.sold_out import SoldOutFlags
from seckill.engine.claims.unpaid_units import UnpaidUnits
from seckill.engine.claims.writing_pace import WritingPace
from seckill.engine.door.audience_check import Invitations
from seckill.engine.door.audience_desk import AudienceDesk
from seckill.engine.door.audience_lists import AudienceLists
from seckill.engine.door.late_guests import LateGuests
from seckill.engine.door.pass_desk import PassDesk
from seckill.engine.event_feed import EventFeed
from seckill.engine.keeper import Keeper
from seckill.engine.line.beacons import Beacons
from seckill.engine.line.drawing import Drawing
from seckill.engine.line.drawn_list import DrawnList
from seckill.engine.line.figures import LineFigures
from seckill.engine.line.joining import LineDesk
from seckill.engine.line.serving import Serving
from seckill.engine.line.watching import EntryWatches
from seckill.engine.money.checkouts import Checkouts
from seckill.engine.money.late_payments import LatePayments
from seckill.engine.money.payments import Payments
from seckill.engine.money.refunds import RefundDesk
from seckill.engine.orders.broker_relay import Relay
from seckill.engine.orders.buyer_actions import BuyerActions
from seckill.engine.orders.buyer_orders import BuyerOrders
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.lane_queues import LaneQueues
from seckill.engine.orders.lapse_alarm import Lapses
from seckill.engine.orders.missing_orders import MissingOrders
from seckill.engine.orders.operator_actions import OperatorActions
from seckill.engine.orders.order_recovery import Unwritten, note, raise_alarm
from seckill.engine.orders.order_search import OrderSearch
from seckill.engine.orders.orders_on_the_way import OrdersOnTheWay
from seckill.engine.orders.releases import ReleaseDesk
from seckill.engine.orders.worker import Worker
from seckill.engine.pictures import PictureDesk
from seckill.engine.readiness import Readiness
from seckill.engine.retention import Retention
from seckill.engine.rounds.failover import LaneFailover
from seckill.engine.rounds.figure_keeping import FigureKeeping
from seckill.engine.rounds.lane_damage import LaneDamage
from seckill.engine.rounds.looking_back import LookingBack
from seckill.engine.rounds.losses import LossDetection
from seckill.engine.rounds.opening import RefusedRounds, RoundOpener
from seckill.engine.rounds.operator_changes import OperatorDesk
from seckill.engine.rounds.rebuild import Rebuilder, Tell
from seckill.engine.rounds.rebuild_queue import RoundRecovery
from seckill.engine.rounds.repeating import RoundRepeater
from seckill.engine.rounds.retirement import Retirement
from seckill.engine.rounds.round_records import RoundRecords
from seckill.engine.rounds.sale_figures import SaleFigures
from seckill.engine.rounds.story import Stories
from seckill.engine.rounds.summary import SaleSummaries
from seckill.engine.rounds.timeline import Timelines
from seckill.engine.sale_cache import SaleCache
from seckill.engine.traces.traced_desk import TracedDesk
from seckill.engine.traces.traced_worker import TracedCourier, TracedWorker
from seckill.engine.vouchers import VoucherDesk
from seckill.engine.webhooks.desk import WebhookDesk, WebhookTests
from seckill.engine.webhooks.dispatcher import WebhookDispatcher
from seckill.engine.webhooks.endpoint_delivery import SittingParts
from seckill.engine.webhooks.message import Describe
from seckill.loops import Stop
from seckill.ports.broker import Broker, Delays
from seckill.ports.door import RiskDecision
from seckill.settings import Settings

# What replaces a captcha service that is away; None: nothing does.
_CHECK_FALLBACKS = {"work": PassKind.WORK, "allow": PassKind.NONE, "refuse": None}


class UseCases:
    """Objects with a state of their own, such as the catalogue, are made when they are first needed and shared by all
    callers."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        alarm: Alarm | None = None,
        before_answers: Callable[[Sequence[Answer]], None] = tell_nobody,
        after_answers: Callable[[], None] = do_nothing,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine = engine
        self.settings = settings
        notes = AlarmNotes(engine.ledger.alarm_book)
        self.alarm = alarm or Alarm(settings.alarm_url, board=engine.board, notes=notes)
        self._around_answers = before_answers, after_answers
        self._monotonic = monotonic

    @cached_property
    def sale_cache(self) -> SaleCache:
        return SaleCache(self.engine.ledger, self.engine.gate, self.engine.sale_ids, self._monotonic)

    @cached_property
    def admission(self) -> AdmissionDesk:
        gate, tracer = self.engine.gate, self.engine.tracer
        settings = self.settings
        pace = WritingPace(self.engine.transport, settings.pace_after_s, settings.backlog_max, self._monotonic)
        parts = gate, self.sale_cache, SoldOutFlags(gate), pace, *self._around_answers
        return AdmissionDesk(*parts) if tracer is None else TracedDesk(tracer, *parts)

    @cached_property
    def access_book(self) -> AccessBook:
        return AccessBook(self.engine.ledger.access, self.sale_cache.now_ms, self._monotonic)

    @cached_property
    def access_desk(self) -> AccessDesk:
        access = self.engine.ledger.access
        return AccessDesk(access, access, self.engine.ledger.lines, self.access_book)

    @cached_property
    def alarm_desk(self) -> AlarmDesk:
        return AlarmDesk(self.engine.ledger.alarm_book)

    @cached_property
    def record_desk(self) -> RecordDesk:
        return RecordDesk(self.engine.ledger.book)

    @cached_property
    def audience_lists(self) -> AudienceLists:
        return AudienceLists(self.engine.ledger.audience, self.sale_cache)

    @cached_property
    def audience_desk(self) -> AudienceDesk:
        return AudienceDesk(self.engine.ledger.audience)

    @cached_property
    def buyer_data(self) -> BuyerData:
        return BuyerData(self.engine.ledger.buyer_data, self.engine.gate)

    @cached_property
    def retention(self) -> Retention:
        settings = self.settings
        return Retention(
            self.engine.ledger.retention,
            letters_days=settings.letters_kept_days,
            lines_days=settings.lines_kept_days,
            events_days=settings.events_kept_days,
            figures_days=settings.figures_kept_days,
            figures=self.engine.ledger.figures,
            alarms=self.engine.ledger.alarm_book,
        )

    @cached_property
    def invitations(self) -> Invitations:
        return Invitations(self.audience_lists)

    @cached_property
    def passes(self) -> PassDesk:
        settings = self.settings
        return PassDesk(
            self.engine.door_key,
            self.sale_cache.now_ms,
            lasts_s=settings.pass_s,
            check=open_check(settings),
            check_fallback=_CHECK_FALLBACKS[settings.check_fallback],
            risk=open_risk(settings),
            risk_fallback=RiskDecision(settings.risk_fallback),
            monotonic=self._monotonic,
        )

    @cached_property
    def line_desk(self) -> LineDesk:
        return LineDesk(self.engine.ledger.lines, self.engine.ledger, self.engine.gate, self.sale_cache)

    @cached_property
    def entry_watches(self) -> EntryWatches:
        return EntryWatches(self.engine.ledger.lines)

    @cached_property
    def drawn_list(self) -> DrawnList:
        return DrawnList(self.engine.ledger.lines, self.engine.entry_ids)

    @cached_property
    def line_figures(self) -> LineFigures:
        engine = self.engine
        return LineFigures(engine.ledger.lines, engine.ledger, self.sale_cache, self._monotonic)

    @cached_property
    def drawing(self) -> Drawing:
        lines = self.engine.ledger.lines
        beacons = Beacons(lines, HttpBeacon(), self.alarm, monotonic=self._monotonic)
        return Drawing(lines, self.engine.entry_ids, beacons)

    @cached_property
    def serving(self) -> Serving:
        return Serving(self.engine.ledger.lines, self.engine.ledger, self.engine.gate, self._monotonic)

    @cached_property
    def unpaid_units(self) -> UnpaidUnits:
        return UnpaidUnits(self.engine.ledger, self.sale_cache, self.admission.sold_out)

    @cached_property
    def operator_desk(self) -> OperatorDesk:
        return OperatorDesk(self.engine.ledger, self.engine.gate)

    @cached_property
    def orders(self) -> BuyerOrders:
        return BuyerOrders(self.engine.ledger, self.engine.gate, self.sale_cache)

    @cached_property
    def buyer_actions(self) -> BuyerActions:
        return BuyerActions(self.engine.ledger, self.engine.provider, self.engine.order_ids)

    @cached_property
    def operator_actions(self) -> OperatorActions:
        return OperatorActions(self.engine.ledger.actions)

    @cached_property
    def order_search(self) -> OrderSearch:
        return OrderSearch(self.engine.ledger, self.engine.history, self.orders)

    @cached_property
    def round_records(self) -> RoundRecords:
        return RoundRecords(self.engine.ledger, self.engine.gate, self.engine.history)

    @cached_property
    def stories(self) -> Stories:
        engine = self.engine
        return Stories(
            engine.ledger, engine.ledger.lines, engine.ledger, engine.board, self.sale_cache, self._monotonic
        )

    @cached_property
    def live_figures(self) -> LiveFigures:
        return LiveFigures(self.engine.board, self.engine.ledger, self.sale_cache)

    @cached_property
    def readiness(self) -> Readiness:
        return Readiness(self.engine.gate, self.engine.ledger)

    @cached_property
    def payments(self) -> Payments:
        late = LatePayments(self.engine.ledger.payments, self.engine.gate, LateGuests(self.engine.ledger))
        return Payments(self.engine.ledger.payments, late, self.on_the_way)

    @cached_property
    def on_the_way(self) -> OrdersOnTheWay:
        return OrdersOnTheWay(self.sale_cache)

    @cached_property
    def checkouts(self) -> Checkouts:
        engine = self.engine
        return Checkouts(
            engine.ledger.checkouts,
            engine.ledger,
            engine.provider,
            self.payments,
            engine.order_ids,
            public_url=self.settings.public_url,
        )

    @cached_property
    def refunds(self) -> RefundDesk:
        return RefundDesk(self.engine.ledger.payments, self.engine.provider, self.engine.order_ids, self.alarm)

    @cached_property
    def failures(self) -> DeadLetterDesk:
        return DeadLetterDesk(self.engine.ledger, self.alarm, self.settings.retry_delays_s, self.delays)

    @cached_property
    def release_desk(self) -> ReleaseDesk:
        return ReleaseDesk(self.engine.gate, self.engine.transport, self.engine.ledger)

    @cached_property
    def lapses(self) -> Lapses:
        return Lapses(self.alarm, share=self.settings.lapse_alarm_share, orders=self.settings.lapse_alarm_orders)

    @cached_property
    def sale_figures(self) -> SaleFigures:
        ledger = self.engine.ledger
        return SaleFigures(ledger, ledger.lines, self.sale_cache, self.lapses, self.figure_keeping.tallied)

    @cached_property
    def figure_keeping(self) -> FigureKeeping:
        ledger = self.engine.ledger
        return FigureKeeping(ledger.figures, ledger, self.live_figures, self.sale_cache, self._monotonic)

    @cached_property
    def looking_back(self) -> LookingBack:
        return LookingBack(self.engine.ledger.figures, self.sale_cache)

    @cached_property
    def sale_summaries(self) -> SaleSummaries:
        ledger = self.engine.ledger
        return SaleSummaries(ledger, ledger, ledger.figures, ledger.takings, self.sale_cache, self._monotonic)

    @cached_property
    def timelines(self) -> Timelines:
        ledger = self.engine.ledger
        return Timelines(ledger.feed, ledger.book, ledger.figures, ledger.alarm_book, self.engine.history, ledger)

    @cached_property
    def event_feed(self) -> EventFeed:
        return EventFeed(self.engine.ledger.feed, self.settings.events_kept_days)

    @cached_property
    def webhooks(self) -> WebhookDesk:
        return WebhookDesk(self.engine.ledger.webhooks)

    @cached_property
    def webhook_tests(self) -> WebhookTests:
        return WebhookTests(self.engine.ledger.webhooks)

    def webhook_dispatcher(self, describe: Describe) -> WebhookDispatcher:
        """`describe`: turns an event into a document with the names of the API."""
        parts = SittingParts(
            ledger=self.engine.ledger.webhooks,
            feed=self.event_feed,
            sender=self.engine.webhook_sender,
            describe=describe,
            alarm=self.alarm,
            private=self.settings.webhook_private == "on",
            tracer=self.engine.tracer,
        )
        return WebhookDispatcher(parts, self.settings.events_kept_days)

    @cached_property
    def vouchers(self) -> VoucherDesk:
        engine = self.engine
        return VoucherDesk(engine.ledger.vouchers, engine.ledger.vouchers, engine.ledger, engine.gate, self.sale_cache)

    @cached_property
    def pictures(self) -> PictureDesk:
        return PictureDesk(self.engine.ledger.pictures, self.engine.make_picture)

    @cached_property
    def unwritten(self) -> Unwritten:
        return Unwritten(self.engine.gate, self.engine.transport, self.engine.ledger)

    @cached_property
    def moving(self) -> LaneFailover:
        return LaneFailover(self.engine.gate, self.engine.ledger, self.sale_cache, self._monotonic)

    @cached_property
    def retirement(self) -> Retirement:
        return Retirement(self.engine.gate, self.engine.transport, self.engine.ledger)

    @cached_property
    def repeater(self) -> RoundRepeater:
        return RoundRepeater(self.engine.ledger, self.sale_cache, self.settings.lanes)

    @cached_property
    def refused_rounds(self) -> RefusedRounds:
        return RefusedRounds()

    @cached_property
    def opener(self) -> RoundOpener:
        return RoundOpener(self.engine.gate, self.engine.ledger, self.refused_rounds)

    @cached_property
    def losses(self) -> LossDetection:
        return LossDetection(self.engine.gate, self.engine.ledger, self.sale_cache, self.opener, self.alarm)

    @cached_property
    def lane_damage(self) -> LaneDamage:
        return LaneDamage(self.engine.gate, self.engine.ledger, self.alarm)

    @cached_property
    def recovery(self) -> RoundRecovery:
        rebuilder = self.rebuilder(partial(raise_alarm, self.alarm))
        return RoundRecovery(self.losses, self.moving, rebuilder, self.sale_cache, self.refused_rounds)

    @cached_property
    def queues(self) -> LaneQueues:
        return LaneQueues(self.engine.transport, self.engine.ledger, self.lane_damage)

    @cached_property
    def missing_orders(self) -> MissingOrders:
        engine = self.engine
        return MissingOrders(engine.gate, engine.transport, engine.ledger, self.sale_cache, self.unwritten, self.alarm)

    @cached_property
    def keeper(self) -> Keeper:
        return Keeper(
            sale_cache=self.sale_cache,
            repeater=self.repeater,
            opener=self.opener,
            recovery=self.recovery,
            lane_damage=self.lane_damage,
            retirement=self.retirement,
            queues=self.queues,
            missing_orders=self.missing_orders,
            release_desk=self.release_desk,
            failures=self.failures,
            payments=self.payments,
            refunds=self.refunds,
            checkouts=self.checkouts,
            event_feed=self.event_feed,
            retention=self.retention,
            vouchers=self.vouchers,
            pictures=self.pictures,
            drawing=self.drawing,
            serving=self.serving,
            figure_keeping=self.figure_keeping,
            delays=self.delays,
        )

    @property
    def delays(self) -> Delays | None:
        return self.engine.broker.delays if self.engine.broker else None

    def rebuilder(self, tell: Tell = note) -> Rebuilder:
        """Makes a new rebuilder each time, because it remembers since when it has waited for the workers."""
        engine = self.engine
        return Rebuilder(engine.gate, engine.transport, engine.ledger, self.unwritten, self._monotonic, tell)

    def worker(self, stop: Stop, lanes: Sequence[int] | None = None) -> Worker:
        """Makes a worker for all lanes over which new rounds are spread, or for `lanes`."""
        stores = self.engine.transport, self.engine.ledger, stop
        more: dict[str, Any] = {
            "lanes": range(self.settings.lanes) if lanes is None else lanes,
            "claim_idle_s": self.settings.claim_idle_s,
            "retry_delay_s": self.settings.retry_delays_s[0],
            "delays": self.delays,
        }
        tracer = self.engine.tracer
        return Worker(*stores, **more) if tracer is None else TracedWorker(tracer, *stores, **more)

    def relay(self, broker: Broker) -> Relay:
        tracer = self.engine.tracer
        return Relay(
            broker.source,
            broker.courier if tracer is None else TracedCourier(tracer, broker.courier),
            self.engine.ledger,
            self.alarm,
            lanes=range(self.settings.lanes),
            claim_idle_s=self.settings.claim_idle_s,
        )
