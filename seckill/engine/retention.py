"""Deletes old data: orders stay for good, the data around them for a while.

Events and deliveries are deleted in steps of their own, because they are read all the time.
"""

import asyncio
from collections.abc import Awaitable, Callable

from seckill.ports.alarm_book import AlarmBook
from seckill.ports.figures import FiguresLedger
from seckill.ports.retention import RetentionLedger

DAY_MS = 86_400_000
# After this time, figures of seconds in which nothing particular happened are thinned out to one for each minute.
FINE_MS = 2 * 3_600_000
PRUNED_AT_ONCE = 500
# A pause between batches, because buyers and workers write to the same database.
BETWEEN_BATCHES_S = 0.05


class Retention:
    def __init__(
        self,
        ledger: RetentionLedger,
        *,
        figures: FiguresLedger,
        alarms: AlarmBook,
        letters_days: int,
        lines_days: int,
        events_days: int,
        figures_days: int,
    ) -> None:
        self._ledger = ledger
        self._figures = figures
        self._alarms = alarms
        self._figures_ms = figures_days * DAY_MS
        self._letters_ms = letters_days * DAY_MS
        # A line's events are read from its entries, so these stay as long.
        self._lines_ms = max(lines_days, events_days) * DAY_MS

    async def step(self) -> None:
        await self._all(self._ledger.prune_letters, self._letters_ms)
        await self._all(self._ledger.prune_lines, self._lines_ms)
        await self._all(self._figures.prune_fine, min(FINE_MS, self._figures_ms))
        await self._all(self._figures.prune_all, self._figures_ms)
        await self._all(self._alarms.prune_alarms, self._figures_ms)

    async def _all(self, prune: Callable[[int, int], Awaitable[int]], kept_ms: int) -> None:
        more = True
        while more:
            more = await prune(kept_ms, PRUNED_AT_ONCE) == PRUNED_AT_ONCE
            await asyncio.sleep(BETWEEN_BATCHES_S if more else 0)
