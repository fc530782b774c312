"""The transport: brings admitted orders to the workers, and news of them to every node."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import msgspec

from seckill.domain.admission import Admission
from seckill.domain.order import States

_ENTRY = attrgetter("lane", "entry_id")


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One order of a queue entry. `admission` is None if it cannot be understood; `problem` then says why. Orders that
    were admitted together may share an entry, which is settled when all `of` them are. Their `payload` is empty, unless
    it is needed to show what cannot be understood."""

    lane: int
    entry_id: str
    payload: bytes
    admission: Admission | None
    problem: str = ""
    of: int = 1


def whole_entries(deliveries: Sequence[Delivery]) -> dict[int, dict[str, int]]:
    """Returns, by lane, the entries whose orders are all there, and how many orders each has."""
    found: dict[int, dict[str, int]] = {}
    of: dict[tuple[int, str], int] = {}
    for (lane, entry_id), these in groupby(deliveries, _ENTRY):  # they come together, so there are few groups
        orders = list(these)
        entries = found.setdefault(lane, {})
        entries[entry_id] = entries.get(entry_id, 0) + len(orders)
        of[lane, entry_id] = orders[-1].of
    return {
        lane: {entry_id: n for entry_id, n in entries.items() if n >= of[lane, entry_id]}
        for lane, entries in found.items()
    }


@dataclass(frozen=True, slots=True)
class Settled:
    """How much was settled, counted in orders."""

    acknowledged: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Queue:
    """A lane's queue: how many entries were ever added to it, and how many are not settled yet. These are entries, not
    orders. If fewer were added than before, the queue was lost."""

    added: int
    waiting: int


@dataclass(frozen=True, slots=True)
class LaneFlow:
    """A lane, counted in orders: how many were admitted in the days that its gate remembers, and how many are not
    settled yet."""

    admitted: int
    waiting: int


class FlowTransport(Protocol):
    async def flow(self, lanes: Collection[int]) -> dict[int, LaneFlow]: ...


class LanesTransport(Protocol):
    async def prepare(self, lanes: Sequence[int]) -> None:
        """Makes sure that no order waiting in these lanes can be missed; harmless to repeat."""


class BacklogTransport(Protocol):
    async def backlog(self, lanes: Collection[int]) -> int:
        """Returns how many orders in these lanes are not settled yet."""


class StatesTransport(Protocol):
    async def publish_states(self, states: States) -> None:
        """Tells all nodes, best effort: a node that misses it reads the ledger."""


class WorkerTransport(LanesTransport, StatesTransport, Protocol):
    """For writing orders. Each is delivered at least once, until it is settled. Those of one entry come together."""

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        """New deliveries, about `count` of each lane, waiting up to `wait_s` for the first."""

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        """Takes over deliveries that another consumer took and did not settle within `idle_s`."""

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        """Must only be called after the ledger has committed: these will never be delivered again. Orders of one entry
        have to be settled together: if one is missing, all are delivered again."""


class QueuesTransport(Protocol):
    async def queues(self, lanes: Collection[int]) -> dict[int, Queue]: ...


class LaneQueuesTransport(LanesTransport, BacklogTransport, Protocol):
    """For looking after the queues."""

    async def retire_consumers(self, idle_s: float) -> int:
        """Forgets consumers that hold nothing and have been silent for `idle_s`."""


class UnwrittenTransport(Protocol):
    """For finding orders on their way."""

    def entries(self, lanes: Collection[int]) -> AsyncIterator[Sequence[Delivery]]:
        """Yields all deliveries that are not settled yet, in portions, including those that a worker is handling.
        Delivers none of them."""


class ReleaseTransport(StatesTransport, Protocol):
    """For telling nodes about orders that are over."""

    async def publish_version(self, round_id: int, version: int) -> None:
        """Tells all nodes that units of the round came back, best effort: a node that misses it asks the gate."""


class NewsTransport(Protocol):
    """For nodes, which listen to announcements."""

    def state_changes(self) -> AsyncIterator[States]: ...

    def version_changes(self) -> AsyncIterator[tuple[int, int]]:
        """Yields announced rounds and versions. They may come late, repeatedly and in any order."""


class Transport(
    WorkerTransport,
    QueuesTransport,
    FlowTransport,
    LaneQueuesTransport,
    UnwrittenTransport,
    ReleaseTransport,
    NewsTransport,
    Protocol,
):
    """Brings admissions to workers and news to nodes: everything that a backend implements. Each use case asks for the
    part that it needs."""

    async def close(self) -> None: ...
