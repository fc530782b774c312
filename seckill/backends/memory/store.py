"""What a Valkey server would hold, in this process instead: shared by all gates and transports that are given it.

It keeps nothing: what it holds is gone with the process. The clock is given, and so is the way that a caller's calls
take there and back, so that a test can decide how time passes, what is delayed, and which answers are lost. There is no
thread and no chance in it.
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

# Messages that one listener may leave unread; it misses what comes on top, as announcements may be missed.
UNREAD_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRound:
    """A round as the store has it. Replaced, never changed, so that a step is done completely or not at all."""

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
    buyers: int = 0  # how many have a record: with fewer, some are lost
    past: int = 0  # the same of orders that are over
    persons: int = 0  # the same of persons
    siblings: tuple[int, ...] = ()  # rounds that share its limit
    dealt: int
    sent: Mapping[int, int] = field(default_factory=dict)  # lane → units ever sent there
    got: Mapping[int, int] = field(default_factory=dict)  # lane → units ever got from there
    items: Mapping[int, ItemView] = field(default_factory=dict)
    sold_out_ms: int | None = None  # when the last unit went
    rebuild: str | None = None  # the token of the rebuild that is under way
    begun_s: int = 0  # and when it began


@dataclass(slots=True)
class Pending:
    consumer: str
    since_ms: int


@dataclass(slots=True)
class Lane:
    """The queue of a lane, with one group of consumers."""

    entries: dict[str, bytes] = field(default_factory=dict)  # all that are not settled, in their order
    new: deque[str] = field(default_factory=deque)  # those of them that no consumer has got yet
    pending: dict[str, Pending] = field(default_factory=dict)  # and those that a consumer has
    consumers: dict[str, int] = field(default_factory=dict)  # name → when it was last heard of
    added: int = 0  # entries, ever
    orders: dict[str, int] = field(default_factory=dict)  # how many an entry has, if several
    traces: dict[str, str] = field(default_factory=dict)  # of entries that are traced

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
            if entry_id in self.entries:  # a consumer that got it from contents that were lost may have settled it
                taken.append(entry_id)
        return taken

    def is_busy(self, consumer: str) -> bool:
        return any(pending.consumer == consumer for pending in self.pending.values())


@dataclass(slots=True)
class Contents:
    """All that would be lost with a server. It can be copied, compared and put back."""

    rounds: dict[RoundRef, HeldRound] = field(default_factory=dict)
    buyers: dict[RoundRef, dict[str, Record]] = field(default_factory=dict)
    # Orders that are over, by user and request id (or order number, where there is none).
    past: dict[RoundRef, dict[tuple[str, str], tuple[Holding, ...]]] = field(default_factory=dict)
    # Who has bought as which person, where the limit counts by more than the user.
    persons: dict[RoundRef, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    lanes: dict[int, Lane] = field(default_factory=dict)
    days: dict[int, dict[str, int]] = field(default_factory=dict)  # lane → YYYYMMDD → orders admitted on that UTC day
    ledger: str | None = None  # which ledger this store serves


class Way(StrEnum):
    THERE = "there"
    BACK = "back"


Travel = Callable[[Way], Awaitable[None]]


async def at_once(_: Way) -> None:
    """When no test interferes: others get their turn, as they would with a real server."""
    await asyncio.sleep(0)


@asynccontextmanager
async def one_call(
    travel: Travel, unreached: type[SeckillError], unanswered: type[SeckillError]
) -> AsyncIterator[None]:
    """What is done inside is one step, as long as it awaits nothing. A way that is cut before it raises `unreached`:
    nothing has happened. One that is cut after it raises `unanswered`, and it has."""
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
        self.reports: dict[str, Seen] = {}  # what the roles of this process say of themselves
        self._added = 0
        self._consumers = 0
        # Dictionaries as sets that keep an order, so that all are woken in the same order each time.
        self._readers: dict[asyncio.Event, None] = {}
        self._listeners: dict[str, dict[asyncio.Queue[object], None]] = {}

    def lane(self, lane: int) -> Lane:
        return self.contents.lanes.setdefault(lane, Lane())

    def backlog(self, lane: int) -> int:
        queue = self.contents.lanes.get(lane, Lane())
        return len(queue.entries) + sum(queue.orders.values()) - len(queue.orders)

    def add_entries(self, lane: int, payloads: Sequence[bytes], traces: Sequence[str] = ()) -> None:
        """Of one order each."""
        for payload, trace in zip(payloads, traces or [""] * len(payloads), strict=True):
            self.lane(lane).add(self._next_id(), payload, trace=trace)
        self._wake_readers()

    def add_shared(self, lane: int, payload: bytes, orders: int) -> None:
        """One of several orders."""
        self.lane(lane).add(self._next_id(), payload, orders=orders)
        self._wake_readers()

    def _next_id(self) -> str:
        # The store counts, not its contents: even after they were lost, no id is given a second time.
        self._added += 1
        return f"{self.now_ms()}-{self._added}"

    def _wake_readers(self) -> None:
        for reader in self._readers:
            reader.set()

    def new_consumer(self) -> str:
        self._consumers += 1
        return f"consumer-{self._consumers}"

    async def take(self, found: Callable[[], list[T]], wait_s: float) -> list[T]:
        """What `found` finds, as soon as it finds something; nothing when the time is over."""
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
