"""The keeper's schedule: everything that has to happen without a request, and how often."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from seckill.engine.event_feed import EventFeed
from seckill.engine.line.drawing import Drawing
from seckill.engine.line.serving import Serving
from seckill.engine.money.checkouts import Checkouts
from seckill.engine.money.payments import Payments
from seckill.engine.money.refunds import RefundDesk
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.lane_queues import LaneQueues
from seckill.engine.orders.missing_orders import MissingOrders
from seckill.engine.orders.releases import BATCH_MAX, ReleaseDesk
from seckill.engine.pictures import PictureDesk
from seckill.engine.retention import Retention
from seckill.engine.rounds.figure_keeping import FigureKeeping
from seckill.engine.rounds.lane_damage import LaneDamage
from seckill.engine.rounds.opening import RoundOpener
from seckill.engine.rounds.rebuild_queue import RoundRecovery
from seckill.engine.rounds.repeating import RoundRepeater
from seckill.engine.rounds.retirement import Retirement
from seckill.engine.sale_cache import SaleCache
from seckill.engine.vouchers import VoucherDesk
from seckill.loops import Stop, gets_on, repeat
from seckill.ports.broker import Delays, Due

EVERY_S = 1.0
EXPIRE_EVERY_S = 1.0
RETRY_EVERY_S = 0.5
RETRY_IDLE_S = 1.0
BETWEEN_BATCHES_S = 0.05
# How long the keeper listens to a broker's delay queues before it checks whether it has to stop.
HEED_S = 0.5
# A unit that comes back should be on sale again within a second.
PASS_ON_EVERY_S = 0.2
PASS_ON_IDLE_S = 0.4
LATE_EVERY_S = 0.2
LATE_IDLE_S = 0.5
# Everyone in a draw looks at the page when it is made, and a unit that comes back goes to the next in line.
DRAW_EVERY_S = 0.5
DRAW_IDLE_S = 1.0
SERVE_EVERY_S = 0.2
SERVE_IDLE_S = 0.5
REFUND_EVERY_S = 1.0
# A courtesy to buyers who still have the page open.
CALL_OFF_EVERY_S = 1.0
# When a lane has moved to another server, its buyers are waiting.
LANES_EVERY_S = 0.5
# No round of a lane can sell while a foreign value stands under one of its keys.
DAMAGE_EVERY_S = 1.0
# Checks that the servers are set up as they must be.
SERVERS_EVERY_S = 0.5
# Readers of the feed line it up as well.
FEED_EVERY_S = 1.0
# Clears away what a broken upload of codes has left, and opens rounds that wait for codes which an earlier round did
# not need.
VOUCHERS_EVERY_S = 5.0
# Pictures are kept for days, so this is not urgent.
PICTURES_EVERY_S = 600.0
RETENTION_EVERY_S = 600.0
# Nothing waits for it.
RETIRE_EVERY_S = 10.0
# Charts have a point for each second.
CHARTS_EVERY_S = 1.0
# Each look counts the orders of every round that is on.
FIGURES_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class KeeperStep:
    name: str
    take: Callable[[], Awaitable[object]]
    every_s: float
    idle_s: float = 0.0  # after a step that found nothing to do, if that is longer
    lasting: bool = False  # runs until the whole keeper stops


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Runs the steps of these use cases, each at its own interval."""

    sale_cache: SaleCache
    repeater: RoundRepeater
    opener: RoundOpener
    recovery: RoundRecovery
    lane_damage: LaneDamage
    retirement: Retirement
    queues: LaneQueues
    missing_orders: MissingOrders
    release_desk: ReleaseDesk
    failures: DeadLetterDesk
    payments: Payments
    refunds: RefundDesk
    checkouts: Checkouts
    event_feed: EventFeed
    retention: Retention
    vouchers: VoucherDesk
    pictures: PictureDesk
    drawing: Drawing
    serving: Serving
    figure_keeping: FigureKeeping
    delays: Delays | None  # a broker's, which wake it earlier

    def schedule(self, stop: Stop) -> list[KeeperStep]:
        expire = partial(self._expire, stop)
        steps = [
            KeeperStep("keeper", self._look_after_rounds, EVERY_S),
            KeeperStep("lanes", self.recovery.look_after_lanes, LANES_EVERY_S),
            KeeperStep("damage", self.lane_damage.discard, DAMAGE_EVERY_S),
            KeeperStep("expiry", expire, EXPIRE_EVERY_S),
            KeeperStep("retries", self.failures.retry_due, RETRY_EVERY_S, RETRY_IDLE_S),
            KeeperStep("retirement", self._tidy, RETIRE_EVERY_S),
            KeeperStep("releases", self.release_desk.pass_on, PASS_ON_EVERY_S, PASS_ON_IDLE_S),
            KeeperStep("late payments", self.payments.late.decide_due, LATE_EVERY_S, LATE_IDLE_S),
            KeeperStep("draws", self.drawing.step, DRAW_EVERY_S, DRAW_IDLE_S),
            KeeperStep("lines", partial(self._serve, stop), SERVE_EVERY_S, SERVE_IDLE_S),
            KeeperStep("refunds", self.refunds.make_due, REFUND_EVERY_S),
            KeeperStep("feed", self.event_feed.keep, FEED_EVERY_S),
            KeeperStep("vouchers", self.vouchers.tidy, VOUCHERS_EVERY_S),
            KeeperStep("pictures", self.pictures.forget_unused, PICTURES_EVERY_S),
            KeeperStep("retention", self.retention.step, RETENTION_EVERY_S),
            KeeperStep("charts", self.figure_keeping.step, CHARTS_EVERY_S),
        ]
        if self.checkouts.offered:
            steps.append(KeeperStep("checkouts", self.checkouts.call_off_due, CALL_OFF_EVERY_S))
        if self.delays is not None:
            steps.insert(0, KeeperStep("reminders", partial(self._heed, self.delays, expire), 0.0))
        return steps

    async def _look_after_rounds(self) -> None:
        await self.repeater.step()
        await self.opener.step()
        await self.queues.measure_backlog()
        await self.recovery.rebuild_losses()
        await self.missing_orders.write()
        await self.queues.retire_consumers()

    async def _tidy(self) -> None:
        await self.recovery.rebuild_what_is_over()
        await self.retirement.step(await self.sale_cache.gate_time_ms())

    async def _expire(self, stop: Stop) -> None:
        # A pause after each batch: payments write to the same database.
        while await self.release_desk.expire() == BATCH_MAX and not stop.is_set():
            gets_on()
            await stop.wait(BETWEEN_BATCHES_S)

    async def _serve(self, stop: Stop) -> bool:
        """Returns whether any buyer waits in a line."""
        while await self.serving.step() and not stop.is_set():
            gets_on()
        return self.serving.lines > 0

    async def _heed(self, delays: Delays, expire: Callable[[], Awaitable[object]]) -> None:
        for due in await delays.due(HEED_S):
            await (expire() if due is Due.EXPIRY else self.failures.retry_due())


async def run_schedule(steps: Sequence[KeeperStep], stop: Stop) -> None:
    async with asyncio.TaskGroup() as loops:
        for step in steps:
            loops.create_task(
                repeat(step.name, step.take, stop, step.every_s, idle_s=step.idle_s, lasting=step.lasting)
            )
