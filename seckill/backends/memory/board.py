"""The board in this process's memory, for `memory://`."""

from collections.abc import Collection

from seckill.backends.memory.store import MemoryStore
from seckill.ports.board import LaneBacklog, NodeReport, Seen, Turn


class MemoryBoard:
    """Implements `seckill.ports.board.Board`. Only this process sees it, so no report outlives its process."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def post(self, report: NodeReport) -> None:
        self._store.reports[report.node] = Seen(report, self._store.now_ms())

    async def remove(self, node: str) -> None:
        self._store.reports.pop(node, None)

    async def reports(self) -> tuple[int, list[Seen]]:
        found = sorted(self._store.reports.values(), key=lambda one: (one.report.role, one.report.node))
        return self._store.now_ms(), found

    async def waiting(self, lanes: Collection[int]) -> dict[int, LaneBacklog]:
        found = {}
        for lane in sorted(lanes):
            entries = self._store.lane(lane).entries
            # An entry's id begins with the time at which it was added.
            oldest = next((int(entry_id.split("-")[0]) for entry_id in entries), None)
            found[lane] = LaneBacklog(self._store.backlog(lane), oldest)
        return found

    async def turn_to_tell(self, about: str, message: str, teller: str, within_s: float) -> Turn:
        """Always gives this keeper the turn: there is no other."""
        return Turn.GO

    async def told(self, about: str, message: str, for_s: float) -> None:
        pass

    async def close(self) -> None:
        """Does nothing: others use the store, too."""
