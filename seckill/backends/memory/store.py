"""What a Valkey server would hold, in this process instead: shared by all gates and transports that are given it.

Its contents are gone when the process ends. The caller passes in the clock and the way that calls take there and back,
so that a test can decide how time passes, which calls are delayed, and which answers are lost. The store uses no
threads and no randomness.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from seckill.domain.admission import Holding, Record
from seckill.domain.sale import RoundRef
from seckill.errors import SeckillError
from seckill.ports.board import Seen
from seckill.ports.gate import GateStatus, ItemView

T = TypeVar("T")

# How many messages a listener may leave unread. It misses any further ones, which is allowed for announcements.
UNREAD_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRound:
    """A round in the store. It is replaced and never changed, so that a step is done completely or not at all."""

    epoch: int
    total: int
    available: int
    limit_per_buyer: int
    cool_down_s: int = 0
    begins_ms: int
    ends_ms: int
    version: int
    opened_ms: int | None
    status: GateStatus = GateStatus.PREPARING
    revision: int = 0
    admitted: int = 0
    released: int = 0
    buyers: int = 0  # how many have a record; if there are fewer records, some are lost
    past: int = 0  # the same for orders that have ended
    persons: int = 0  # the same for persons
    siblings: tuple[int, ...] = ()  # rounds that share its limit
    dealt: int
    sent: Mapping[int, int] = field(default_factory=dict)  # lane → units ever sent there
    got: Mapping[int, int] = field(default_factory=dict)  # lane → units ever got from there
    items: Mapping[int, ItemView] = field(default_factory=dict)
    sold_out_ms: int | None = None  # when the last unit went
    rebuild: str | None = None  # the token of the rebuild that is under way
    begun_s: int = 0  # when that rebuild began


@dataclass(slots=True)
class Pending:
    consumer: str
    since_ms: int


@dataclass(slots=True)
class Lane:
    """The queue of a lane, with one group of consumers."""

    entries: dict[str, bytes] = field(default_factory=dict)  # all that are not settled, in order
    new: deque[str] = field(default_factory=deque)  # those that no consumer has got yet
    pending: dict[str, Pending] = field(default_factory=dict)  # those that a consumer holds
    consumers: dict[str, int] = field(default_factory=dict)  # name → when it was last heard of
    added: int = 0  # entries, ever
    orders: dict[str, int] = field(default_factory=dict)  # entry → number of orders, if it has several
    traces: dict[str, str] = field(default_factory=dict)  # entry → trace, if it is traced

    def add(self, entry_id: str, payload: bytes, *, orders: int = 1, trace: str = "") -> None:
        self.added += 1
        self.entries[entry_id] = payload
        if trace:
            self.traces[entry_id] = trace
        self.new.append(entry_id)
        if orders > 1:
            self.orders[entry_id] = orders

    def settle(self, entry_id: str) -> tuple[bool, bool]:
        """Returns whether a consumer had taken it, and whether it was there."""
        held = self.pending.pop(entry_id, None) is not None
        self.orders.pop(entry_id, None)
        self.traces.pop(entry_id, None)
        return held, self.entries.pop(entry_id, None) is not None

    def take_new(self, count: int) -> list[str]:
        taken: list[str] = []
        while self.new and len(taken) < count:
            entry_id = self.new.popleft()
            # a consumer may have got it from contents that were lost since, and settled it
            if entry_id in self.entries:
                taken.append(entry_id)
        return taken

    def is_busy(self, consumer: str) -> bool:
        return any(pending.consumer == consumer for pending in self.pending.values())


@dataclass(slots=True)
class Contents:
    """Everything that would be lost with a server. It can be copied, compared and put back."""

    rounds: dict[RoundRef, HeldRound] = field(default_factory=dict)
    buyers: dict[RoundRef, dict[str, Record]] = field(default_factory=dict)
    # Orders that have ended, by user and request id (or by order number if they have no request id).
    past: dict[RoundRef, dict[tuple[str, str], tuple[Holding, ...]]] = field(default_factory=dict)
    # Person → users who have bought as that person, where the limit counts more than users.
    persons: dict[RoundRef, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)
    days: dict[int, dict[str, int]] = field(default_factory=dict)  # lane → YYYYMMDD → orders admitted on that UTC day
    ledger: str | None = None  # which ledger this store serves


class Way(StrEnum):
    THERE = "there"
    BACK = "back"


Travel = Callable[[Way], Awaitable[None]]


async def at_once(_: Way) -> None:
    """The way without a test's interference: lets other tasks run, as a call to a real server would."""
    await asyncio.sleep(0)


@asynccontextmanager
async def one_call(
    travel: Travel, unreached: type[SeckillError], unanswered: type[SeckillError]
) -> AsyncIterator[None]:
    """Makes its body one call: a single step, as long as the body awaits nothing. If the way there is cut, it raises
    `unreached`, and nothing has happened. If the way back is cut, it raises `unanswered`, and the step is done."""
    await _cross(travel, Way.THERE, unreached)
    yield
    await _cross(travel, Way.BACK, unanswered)


async def _cross(travel: Travel, way: Way, cut: type[SeckillError]) -> None:
    try:
        await travel(way)
    except ConnectionError as error:
        raise cut(f"The store in memory does not answer ({error}).") from error


class MemoryStore:
    """`together`: orders that one call has admitted share an entry."""

    def __init__(self, now_ms: Callable[[], int], *, together: bool = False) -> None:
        self.now_ms = now_ms
        self.together = together
        self.contents = Contents()
        self.reports: dict[str, Seen] = {}  # reports of this process's roles
        self._added = 0
        self._consumers = 0
        # Dictionaries used as ordered sets, so that readers are always woken in the same order.
        self._readers: dict[asyncio.Event, None] = {}
        self._listeners: dict[str, dict[asyncio.Queue[object], None]] = {}

    def lane(self, lane: int) -> Lane:
        return self.contents.lanes.setdefault(lane, Lane())

    def backlog(self, lane: int) -> int:
        queue = self.contents.lanes.get(lane, Lane())
        return len(queue.entries) + sum(queue.orders.values()) - len(queue.orders)

    def add_entries(self, lane: int, payloads: Sequence[bytes], traces: Sequence[str] = ()) -> None:
        """Adds entries of one order each."""
        for payload, trace in zip(payloads, traces or [""] * len(payloads), strict=True):
            self.lane(lane).add(self._next_id(), payload, trace=trace)
        self._wake_readers()

    def add_shared(self, lane: int, payload: bytes, orders: int) -> None:
        """Adds one entry that several orders share."""
        self.lane(lane).add(self._next_id(), payload, orders=orders)
        self._wake_readers()

    def _next_id(self) -> str:
        # The store does the counting, not its contents, so no id is given a second time even after the contents were
        # lost.
        self._added += 1
        return f"{self.now_ms()}-{self._added}"

    def _wake_readers(self) -> None:
        for reader in self._readers:
            reader.set()

    def new_consumer(self) -> str:
        self._consumers += 1
        return f"consumer-{self._consumers}"

    async def take(self, found: Callable[[], list[T]], wait_s: float) -> list[T]:
        """Returns what `found` finds as soon as it finds something, or nothing when the time is over."""
        reader = asyncio.Event()
        self._readers[reader] = None
        try:
            async with asyncio.timeout(wait_s):
                while not (taken := found()):
                    reader.clear()
                    await reader.wait()
                return taken
        except TimeoutError:
            return []
        finally:
            del self._readers[reader]

    def publish(self, channel: str, message: object) -> None:
        for listener in self._listeners.get(channel, ()):
            if not listener.full():
                listener.put_nowait(message)

    async def published(self, channel: str) -> AsyncGenerator[object]:
        listener: asyncio.Queue[object] = asyncio.Queue(UNREAD_MAX)
        listeners = self._listeners.setdefault(channel, {})
        listeners[listener] = None
        try:
            while True:
                yield await listener.get()
        finally:
            del listeners[listener]
