"""The feed: every committed change once, each with a cursor that grows."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from seckill.domain.event import EventType
from seckill.domain.order import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    cursor: int
    id: str  # no other event ever gets it, even if the ledger is replaced by an older copy
    type: EventType
    at_ms: int
    sale_id: int
    round_id: int | None
    order: Order | None = None  # as it was then
    cause: str | None = None  # of a change of an order's state
    # For all other events. Names that end in `_ms` are times, those that end in `_number` are order numbers.
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleEvent:
    """What happened to a sale, a round or a line, and to no order."""

    type: EventType
    at_ms: int
    round_id: int | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are wanted; None: all."""

    types: Set[EventType] | None = None
    sale_id: int | None = None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`next`: the cursor after which to read on. It grows even if no wanted event has happened."""

    events: Sequence[FeedEvent]
    next: int


@dataclass(frozen=True, slots=True)
class CursorGone:
    """The feed cannot be read from this cursor: what follows has been pruned, or was never given out."""

    oldest: int  # a cursor from which it can be read
    newest: int


class Feed(Protocol):
    async def line_up(self) -> int:
        """Gives cursors to committed events that have none yet. If one transaction was committed before another one
        wrote, its events have the smaller cursors, and cursors become visible in order: a reader that goes on after the
        last one it has seen misses nothing. Returns how many entries it lined up; some may be left."""

    async def read(self, after: int | None, wanted: EventFilter, count: int) -> FeedPage | CursorGone:
        """Up to `count` events that have a cursor after this one, or from the oldest that is kept."""

    async def of_sale(
        self, sale_id: int, types: Set[EventType], since_ms: int, until_ms: int, count: int
    ) -> Sequence[SaleEvent]:
        """Returns the newest `count` events in that time, newest first, lined up or not. `types`: may not be about
        orders."""

    async def prune(self, kept_ms: int, count: int) -> int:
        """Forgets the oldest entries, up to `count`, that are older than this. Returns how many."""
