"""The feed: every committed change once, each with a cursor that grows."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from seckill.domain.event import EventType
from seckill.domain.order import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    cursor: int
    id: str  # never that of another event, even if the ledger is replaced by an older copy
    type: EventType
    at_ms: int
    sale_id: int
    round_id: int | None
    order: Order | None = None  # as it was then
    cause: str | None = None  # of a change of an order's state
    # Of everything else. Names that end in `_ms` are times, those that end in `_number` are numbers of orders.
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
    """Which events; None: all."""

    types: Set[EventType] | None = None
    sale_id: int | None = None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`next`: read on after this cursor. It grows also when nothing that was wanted has happened."""

    events: Sequence[FeedEvent]
    next: int


@dataclass(frozen=True, slots=True)
class CursorGone:
    """The feed cannot be read on from there: what follows has been pruned, or was never given out."""

    oldest: int  # a cursor from which it can
    newest: int


class Feed(Protocol):
    async def line_up(self) -> int:
        """Gives cursors to what has been committed and has none yet. An event of a transaction that was committed
        before another one wrote has the smaller cursor, and cursors become visible in their order: a reader that goes
        on after the last one it has seen passes over nothing. Returns how many entries it was; some may be left."""

    async def read(self, after: int | None, wanted: EventFilter, count: int) -> FeedPage | CursorGone:
        """Up to `count` events that have a cursor after this one, or from the oldest that is kept."""

    async def of_sale(
        self, sale_id: int, types: Set[EventType], since_ms: int, until_ms: int, count: int
    ) -> Sequence[SaleEvent]:
        """The newest `count` in that time, newest first, lined up or not. `types`: none that happen to orders."""

    async def prune(self, kept_ms: int, count: int) -> int:
        """Forgets the oldest, as far as they are older than this, up to `count` entries. Returns how many it was."""
