"""How rounds stood at any second, for operators who look back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReading:
    """The figures of a round. Counts include everything there ever was, so any two readings show what happened in
    between."""

    round_id: int
    at_s: int  # by the gate's clock
    fine: bool = True  # deleted after hours, unless it turns out to matter
    available: int | None  # units; None: the gate did not have the round
    accepted: int | None  # units
    persisted: int  # units
    refused: Mapping[str, int] = field(default_factory=dict)  # claims, counted by the processes that ran then
    backlog: int = 0
    lag_ms: int = 0
    p99_us: int | None = None  # of all claims of the system
    unpaid: int | None = None  # units
    paid: int | None = None  # units
    taken_cents: int | None = None
    waiting: int | None = None  # entries of the line


@dataclass(frozen=True, slots=True)
class StockTurn:
    """The moment when the last unit went, or the first came back."""

    round_id: int
    at_s: int
    available: int


class FiguresLedger(Protocol):
    async def note(self, readings: Sequence[RoundReading]) -> int:
        """Notes the first reading of each round and second; others are skipped. Returns how many were new."""

    async def spare(self, round_id: int, since_s: int, until_s: int) -> None:
        """Marks the readings of this time as important: they are no longer `fine`."""

    async def read(
        self, sale_id: int, round_id: int | None, from_s: int, to_s: int, step_s: int, count: int
    ) -> Sequence[RoundReading]:
        """Returns, for each round of the sale or for that one, the last reading in each step of that many seconds, with
        the step's greatest backlog, lag and p99; the oldest `count` of them, in order."""

    async def newest(self, round_ids: Sequence[int], before_s: int | None = None) -> Mapping[int, RoundReading]:
        """Returns the last reading of each round, or the last before that second."""

    async def turns(self, sale_id: int, from_s: int, to_s: int, count: int) -> Sequence[StockTurn]:
        """The newest `count`, newest first."""

    async def refusals(self, round_id: int) -> Mapping[str, int]:
        """Returns the noted refusals by reason. A process that ends takes those of its last second with it."""

    async def prune_fine(self, kept_ms: int, count: int) -> int:
        """Deletes up to `count` readings that are `fine` and older than this. Returns how many."""

    async def prune_all(self, kept_ms: int, count: int) -> int:
        """The same for all others."""
