"""The feed of all committed events, in order, for shops that follow it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from seckill.engine.orders.buyer_orders import stays
from seckill.ports.feed import CursorGone, EventFilter, Feed, FeedPage

# How long a reader that waits for news leaves the ledger alone between two looks.
LOOK_EVERY_S = 0.2
PRUNED_AT_ONCE = 500
DAY_MS = 86_400_000


class EventFeed:
    def __init__(self, feed: Feed, kept_days: int) -> None:
        self._feed = feed
        self._kept_ms = kept_days * DAY_MS
        self._closing = False

    async def read(
        self,
        after: int | None,
        wanted: EventFilter,
        count: int,
        wait_s: float = 0.0,
        gone: Callable[[], Awaitable[None]] = stays,
    ) -> FeedPage | CursorGone:
        """Returns the wanted events that have been committed. If there are none yet, waits for the first, and returns
        nothing when the time is over. Stops looking once the reader is `gone`."""
        give_up_s = time.monotonic() + wait_s
        leaving = asyncio.ensure_future(gone())
        try:
            while True:
                await self.line_up()
                page = await self._feed.read(after, wanted, count)
                left_s = give_up_s - time.monotonic()
                if isinstance(page, CursorGone) or page.events or left_s <= 0 or self._closing:
                    return page
                after = page.next
                await asyncio.wait({leaving}, timeout=min(left_s, LOOK_EVERY_S))
                if leaving.done():
                    return page
        finally:
            leaving.cancel()

    async def keep(self) -> int:
        """Lines up events even while nobody reads the feed, and forgets those that are too old. Returns how many it
        forgot."""
        await self.line_up()
        return await self._feed.prune(self._kept_ms, PRUNED_AT_ONCE)

    async def line_up(self) -> None:
        while await self._feed.line_up():
            pass

    def close(self) -> None:
        """Answers all waiting readers at once."""
        self._closing = True
