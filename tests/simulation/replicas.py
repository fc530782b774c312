"""A server whose replica lags and takes its place, and the gate on it: what `RedisGate` does with Sentinel, in memory.

The replica has what the primary was at some moment: it is copied as a whole, a while after something was written. A
gate that is `strict` answers for an order only when the copy has it. A lane on a server that nobody has vouched for is
closed, as the gate's `home` keys say, which are copied with everything else.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from seckill.backends.memory.gate import MemoryGate, _day
from seckill.backends.memory.store import Contents, Lane, MemoryStore, Pending, Travel
from seckill.backends.memory.transport import MemoryTransport
from seckill.backends.redis.keys import COMPARED_ONCE
from seckill.domain.admission import Claim
from seckill.domain.item import NO_ITEM
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef
from seckill.errors import GateUnavailable, GateUnclear, TransportUnavailable
from seckill.ports.gate import GateReply, MovedLane, Opening
from seckill.ports.transport import Delivery

# The time within which the replica must confirm, and the numbers of its day that a new server passes over.
COPIED_WITHIN_S = 0.4
NUMBERS_PASSED_OVER = 65_536


def copied(contents: Contents) -> Contents:
    """Two levels deep: what lies below is replaced and never changed, but for the lanes."""
    return Contents(**{each.name: _copied(getattr(contents, each.name)) for each in fields(contents)})


def _copied(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _lane(each) if isinstance(each, Lane) else _copied(each) for key, each in value.items()}


def _lane(lane: Lane) -> Lane:
    pending = {entry_id: Pending(held.consumer, held.since_ms) for entry_id, held in lane.pending.items()}
    return Lane(dict(lane.entries), deque(lane.new), pending, dict(lane.consumers), orders=dict(lane.orders))


@dataclass
class _Copy:
    contents: Contents = field(default_factory=Contents)
    homes: dict[int, str] = field(default_factory=dict)
    offset: int = 0


class Replicated:
    """The primary's contents are the store's. `look` is called whenever something was written, at that moment: until
    its writer has waited for the replica, the clock has gone on. `later` calls something after that many seconds;
    `delay_s` draws how long the next copy takes."""

    def __init__(
        self,
        store: MemoryStore,
        look: Callable[[], None],
        later: Callable[..., object],
        delay_s: Callable[[], float],
    ) -> None:
        self._store = store
        self._look = look
        self._later = later
        self._delay_s = delay_s
        self._copy: _Copy | None = _Copy()  # None if the primary has no replica at present
        self._offset = 0
        self._on_its_way = False
        self._waiting: dict[asyncio.Future[bool], int] = {}
        self._servers = 1
        self.homes: dict[int, str] = {}  # lane → the server that a keeper has vouched for

    @property
    def name(self) -> str:
        return f"server-{self._servers}"

    def wrote(self) -> int:
        """Something may have changed. Returns how far the replica must be to have it."""
        self._look()
        self._offset += 1
        if not self._on_its_way:
            self._on_its_way = True
            self._later(self._delay_s(), self._arrive, self._servers)
        return self._offset

    def _arrive(self, server: int) -> None:
        if server != self._servers:
            return
        self._on_its_way = False
        self._copy = _Copy(copied(self._store.contents), dict(self.homes), self._offset)
        for waiting, offset in list(self._waiting.items()):
            if offset <= self._offset:
                self._tell(waiting, has_it=True)

    async def has(self, offset: int) -> bool:
        """WAIT: whether the replica has so much, as soon as it has; False if it has not in time."""
        if self._copy is not None and self._copy.offset >= offset:
            return True
        waiting: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = offset
        self._later(COPIED_WITHIN_S, self._tell, waiting)
        return await waiting

    def _tell(self, waiting: "asyncio.Future[bool]", *, has_it: bool = False) -> None:
        self._waiting.pop(waiting, None)
        if not waiting.done():
            waiting.set_result(has_it)

    def can_fail_over(self) -> bool:
        return self._copy is not None

    def fail_over(self) -> Contents:
        """The replica takes the primary's place with what it has. Callers that wait for an answer get none."""
        copy = self._copy
        assert copy is not None
        self._servers += 1
        self._copy = None
        self._on_its_way = False
        self.homes = copy.homes
        for waiting in list(self._waiting):
            self._tell(waiting)
        return copy.contents

    def lose(self) -> None:
        """Everything is gone, also which servers were vouched for."""
        self.homes = {}


class ReplicatedGate(MemoryGate):
    def __init__(
        self, store: MemoryStore, server: Replicated, *, backlog_max: int, strict: bool, travel: Travel
    ) -> None:
        super().__init__(store, backlog_max=backlog_max, travel=travel)
        self._server = server
        self._strict = strict

    async def admit(self, ref: RoundRef, claims: Sequence[Claim]) -> GateReply:
        async with self._reached():
            self._must_be_home(ref.lane)
            reply = self._decide(ref, claims)
            told = any(answer.holdings for answer in reply.answers)
            wrote = any(answer.outcome is Outcome.ADMITTED for answer in reply.answers)
            has_it = not told or await self._has_it(wrote=wrote)
        _require(has_it)
        return reply

    async def give(self, ref: RoundRef, epoch: int, to: int, sent: int, units: int, item: int = NO_ITEM) -> int | None:
        return await self._carry(ref, lambda: self._give(ref, epoch, to, sent, units, item))

    async def take(self, ref: RoundRef, epoch: int, origin: int, sent: int, item: int = NO_ITEM) -> int | None:
        return await self._carry(ref, lambda: self._take(ref, epoch, origin, sent, item))

    async def _carry(self, ref: RoundRef, step: Callable[[], int | None]) -> int | None:
        async with self._reached():
            self._must_be_home(ref.lane)
            units = step()
            has_it = await self._has_it(wrote=True)
        _require(has_it)
        return units

    async def standing(self, lanes: Collection[int]) -> Mapping[int, str]:
        async with self._reached():
            return dict.fromkeys(lanes, self._server.name)

    async def assure(self, lanes: Collection[int], standing: Mapping[int, str]) -> None:
        async with self._reached():
            has_it = await self._has_it(wrote=True)
            stands = all(standing[lane] == self._server.name for lane in lanes)
        _require(has_it and (stands or not self._strict))

    async def _has_it(self, *, wrote: bool) -> bool:
        """All that was written until now, by this call or by one whose answer was lost."""
        offset = self._server.wrote()
        return not self._strict or await self._server.has(offset)

    def _must_be_home(self, lane: int) -> None:
        name = self._server.name
        if self._server.homes.get(lane, name) not in (name, name + COMPARED_ONCE):
            raise GateUnavailable("The gate's data is on another server now, which the keeper has to compare first.")

    async def open_round(self, round_: Round, opened_ms: int = 0) -> Opening:
        await self._settle_in(round_.lane)
        return await super().open_round(round_, opened_ms)

    async def begin_rebuild(self, round_: Round, token: str) -> bool:
        await self._settle_in(round_.lane)
        return await super().begin_rebuild(round_, token)

    async def _settle_in(self, lane: int) -> None:
        async with self._reached():
            self._server.homes.setdefault(lane, self._server.name)

    async def moved_lanes(self, lanes: Collection[int]) -> dict[int, MovedLane]:
        async with self._reached():
            name, homes = self._server.name, self._server.homes
            elsewhere = [lane for lane in sorted(lanes) if homes.get(lane) != name]
            return {lane: MovedLane(name, compared=homes.get(lane) == name + COMPARED_ONCE) for lane in elsewhere}

    async def vouch(self, lane: int, server: str, *, for_good: bool) -> None:
        async with self._reached():
            if self._server.name == server and for_good:
                self._server.homes[lane] = server
            elif self._server.name == server:
                now_ms = self._store.now_ms()
                counter = self._store.contents.days.get(lane, {}).get(_day(now_ms), 0)
                self._count(lane, _day(now_ms), counter + NUMBERS_PASSED_OVER, now_ms)
                self._server.homes[lane] = server + COMPARED_ONCE


class ReplicatedTransport(MemoryTransport):
    """A transport that, with `strict`, gives an entry out when the replica has it."""

    def __init__(self, store: MemoryStore, server: Replicated, *, strict: bool, travel: Travel) -> None:
        super().__init__(store, travel=travel)
        self._server = server
        self._strict = strict

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        server = self._server.name
        return await self._replicated(server, await super().read(count, wait_s))

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        server = self._server.name
        return await self._replicated(server, await super().take_over(idle_s, count))

    async def _replicated(self, server: str, found: list[Delivery]) -> list[Delivery]:
        """The server that was asked must be the one that waits: another, which has taken over meanwhile, knows nothing
        of what was read from it. A call to a server that is gone fails."""
        if found and self._strict:
            async with self._reached():
                has_it = await self._server.has(self._server.wrote())
            if not has_it or self._server.name != server:
                raise TransportUnavailable("The replica does not have it.")
        return found


def _require(has_it: bool) -> None:
    if not has_it:
        raise GateUnclear("The replica does not have it.")
