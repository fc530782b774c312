"""Watches the database while a strategy sells: how many orders are written, and when the last one was."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from seckill.lab.compare.crowd import Crowd
from seckill.lab.compare.strategy import Strategy
from seckill.loops import Stop

LOOK_EVERY_S = 0.02
# A consumer that does nothing for this long while orders wait is as good as dead.
STUCK_S = 60.0


class CompareWatch:
    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self.written = 0
        self.changed_s = time.monotonic()

    async def look(self) -> None:
        written = await self._strategy.written()
        if written != self.written:
            self.written, self.changed_s = written, time.monotonic()

    async def drained(self, crowd: Crowd) -> None:
        """Waits until everything that was accepted is written, or nothing has been written for a while."""
        began_s = time.monotonic()
        while True:
            await self.look()
            if not await self._missing(crowd):
                return
            quiet_s = time.monotonic() - max(began_s, self.changed_s)
            if quiet_s > STUCK_S or (quiet_s > self._strategy.quiet_s and not await self._strategy.waiting()):
                return
            await asyncio.sleep(LOOK_EVERY_S)

    async def _missing(self, crowd: Crowd) -> set[int]:
        """Compares numbers rather than counts: an order whose buyer got no answer may be written as well, and must not
        pass for another."""
        there = {order for order, _ in await self._strategy.persisted()}
        return set(crowd.tally.accepted) - there - await self._strategy.fallen()


@asynccontextmanager
async def watching(strategy: Strategy) -> AsyncIterator[CompareWatch]:
    watch = CompareWatch(strategy)
    stop = Stop()

    async def look_on() -> None:
        while not await stop.wait(LOOK_EVERY_S):
            await watch.look()

    looking = asyncio.create_task(look_on())
    try:
        yield watch
    finally:
        stop.set()  # not cancelled: a query that is cut off costs its connection
        await looking
