"""Takes the endpoints that have something to do, with one sitting for each. Keepers share them by leases."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

import structlog

from seckill.engine.webhooks.endpoint_delivery import Sitting, SittingParts
from seckill.errors import SeckillError
from seckill.loops import Stop, repeat
from seckill.ports.webhook import Lease
from seckill.telemetry import WEBHOOK_LAG, WEBHOOKS_FAILING, WEBHOOKS_WAITING

log = structlog.get_logger()

# How many endpoints one keeper sends to at a time. There can be no more than this, so none waits for another.
SITTINGS_MAX = 50
LOOK_EVERY_S = 0.5
MEASURE_EVERY_S = 5.0
PRUNE_EVERY_S = 60.0
PRUNED_AT_ONCE = 500
DAY_MS = 86_400_000


class WebhookDispatcher:
    def __init__(self, parts: SittingParts, kept_days: int) -> None:
        self._parts = parts
        self._kept_ms = kept_days * DAY_MS
        self._sittings: set[asyncio.Task[None]] = set()
        self._measured_s = self._pruned_s = float("-inf")

    async def run(self, stop: Stop) -> None:
        """Runs until `stop`, then waits for the sittings under way."""
        try:
            await repeat("webhooks", partial(self._look, stop), stop, every_s=LOOK_EVERY_S)
            if self._sittings:
                await asyncio.wait(self._sittings)
        finally:
            for sitting in self._sittings:
                sitting.cancel()

    async def _look(self, stop: Stop) -> None:
        for lease, taken_s in await self._take():
            self._begin(lease, taken_s, stop)
        await self._tidy()

    async def _take(self) -> Sequence[tuple[Lease, float]]:
        room = SITTINGS_MAX - len(self._sittings)
        await self._parts.feed.line_up()  # an event without a cursor would not be noticed as new
        asked_s = time.monotonic()  # taken before asking, so that the lease is not overestimated
        taken = await self._parts.ledger.take_webhooks(room, self._parts.lease_s) if room > 0 else []
        return [(lease, asked_s) for lease in taken]

    def _begin(self, lease: Lease, taken_s: float, stop: Stop) -> None:
        sitting = asyncio.create_task(self._sit(lease, taken_s, stop))
        self._sittings.add(sitting)
        sitting.add_done_callback(self._sittings.discard)

    async def _sit(self, lease: Lease, taken_s: float, stop: Stop) -> None:
        try:
            await Sitting(self._parts, lease, taken_s, stop).run()
        except SeckillError as error:  # the lease runs out, and another sitting goes on from what was noted
            log.warning("sending to a webhook was broken off", webhook=lease.webhook.id, reason=str(error))
        except Exception:  # one endpoint must not stop the others
            log.exception("sending to a webhook failed", webhook=lease.webhook.id)

    async def _tidy(self) -> None:
        now_s = time.monotonic()
        if now_s > self._measured_s + MEASURE_EVERY_S:
            self._measured_s = now_s
            lag = await self._parts.ledger.webhook_lag()
            WEBHOOK_LAG.set(lag.age_ms / 1000)
            WEBHOOKS_WAITING.set(lag.waiting)
            WEBHOOKS_FAILING.set(lag.failing)
        if now_s > self._pruned_s + PRUNE_EVERY_S:
            self._pruned_s = now_s
            await self._parts.ledger.prune_deliveries(self._kept_ms, PRUNED_AT_ONCE)
