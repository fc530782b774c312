"""Moments at which a process stands still, so that a flaw in that place shows itself reliably."""

import asyncio
from collections.abc import Callable, Collection


class Moments:
    """Counts how often the strategy has come between a write and its commit, and stands still at the given counts."""

    def __init__(self, stand_at: Collection[int] = (), announce: Callable[[], None] = lambda: None) -> None:
        self._stand_at = frozenset(stand_at)
        self._announce = announce
        self._count = 0
        self._go_on = asyncio.Event()

    @property
    def armed(self) -> bool:
        return bool(self._stand_at)

    async def reached(self) -> None:
        self._count += 1
        if self._count in self._stand_at:
            self._go_on.clear()
            self._announce()
            await self._go_on.wait()

    def go_on(self) -> None:
        """Lets the process go on to the next moment."""
        self._go_on.set()

    def at_ease(self) -> None:
        """Stands still at no moment from now on."""
        self._stand_at = frozenset()
        self._go_on.set()
