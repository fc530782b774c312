"""Tells buyers who wait at their page when their entry changes. One query a second serves all of them on this node. How
places move is part of the line's figures, which all pages share."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from seckill.domain.line import EntryState, LineEntry
from seckill.ports.line import LineDeskLedger

LOOK_UP_MAX = 1000

# What has to change for a watcher to be told.
Seen = tuple[EntryState, int | None]


def seen_in(entry: LineEntry) -> Seen:
    return entry.state.shown, entry.place


class EntryWatches:
    def __init__(self, ledger: LineDeskLedger) -> None:
        self._ledger = ledger
        self._waiting: dict[int, dict[asyncio.Event, Seen]] = {}
        self._closing = False

    @asynccontextmanager
    async def watch(self, entry: LineEntry) -> AsyncIterator[asyncio.Event]:
        """Sets the event when the entry differs from the given one, and when the node stops."""
        changed = asyncio.Event()
        watches = self._waiting.setdefault(entry.id, {})
        watches[changed] = seen_in(entry)
        if self._closing:
            changed.set()
        try:
            yield changed
        finally:
            del watches[changed]
            if not watches:
                self._waiting.pop(entry.id, None)

    @property
    def closing(self) -> bool:
        return self._closing

    async def look(self) -> int:
        """Returns how many entries are watched."""
        watched = list(self._waiting)
        for start in range(0, len(watched), LOOK_UP_MAX):
            await self._look(watched[start : start + LOOK_UP_MAX])
        return len(watched)

    async def _look(self, entry_ids: Sequence[int]) -> None:
        for entry in await self._ledger.entries(entry_ids):
            for changed, seen in self._waiting.get(entry.id, {}).items():
                if seen_in(entry) != seen:
                    changed.set()

    def close(self) -> None:
        """Ends all waiting: every buyer gets the entry as it is."""
        self._closing = True
        for watches in self._waiting.values():
            for changed in watches:
                changed.set()
