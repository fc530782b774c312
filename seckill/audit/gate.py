"""Reads the gate for the auditor. Records are read raw and parsed by the auditor's own code."""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import msgspec
from redis import exceptions

from seckill.audit.gate_servers import AuditedNode, open_servers
from seckill.audit.sale_rules import Rules
from seckill.backends.redis import keys
from seckill.errors import GateUnavailable

# Neither the server nor this process is held up for longer than one portion takes.
PORTION = 500
# How many stream entries make a portion; each may have some hundred orders.
ENTRIES = 100

PREPARING = "preparing"
_STATUSES = (PREPARING, "open", "line", "paused", "closed")

_SOURCE = (files("seckill.audit") / "lua" / "read_round.lua").read_text()
_SHA = hashlib.sha1(_SOURCE.encode(), usedforsecurity=False).hexdigest()
_FIELDS = (
    *("total", "dealt", "available", "admitted", "released", "limit", "cool_down_s"),
    *("epoch", "revision", "opened_ms", "begins_ms", "ends_ms"),
)
_OF_ITEM = ("total", "dealt", "available", "admitted", "released")
# seconds:counter:quantity:slot:request_id:live, none with more digits than it can have; an item stands after the slot
_HELD = re.compile(r"([0-9]{1,10}):([0-9]{1,8}):([0-9]{1,18}):([0-9]{1,18}):(?:([0-9]{1,18}):)?([^: ]*):([01])")
# units:lapses:lapsed_ms of orders that are over and stand elsewhere
_NOTE = re.compile(r"~([0-9]{1,18}):([0-9]{1,18}):([0-9]{1,18})")
# Fields that an earlier version did not have.
_COUNTS = ("buyers", "past")
_SENT, _GOT = "sent:", "got:"
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_MOVED = re.compile(rf"(?:{_SENT}|{_GOT})[0-9]{{1,3}}(?::[0-9]{{1,18}})?")
_ITEMS = re.compile(r"[0-9]{1,18}(?: [0-9]{1,18})*")
# The slot of a key moves: it is elsewhere already, or not all that belongs together is in one place.
_ON_THE_WAY = (exceptions.AskError, exceptions.MovedError, exceptions.TryAgainError)
_SECONDS_END, _COUNTER_END = 1 << 31, 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class GateItem:
    """The counters of one item of a `GateRound`; see there."""

    total: int
    dealt: int
    available: int
    admitted: int
    released: int
    sent: dict[int, int]
    got: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRound:
    """The counters of a round, or of its share in a lane, all from one instant."""

    lane: int
    now_ms: int
    buyers: int
    buyers_gone: int  # how many fewer records there are than the gate itself has counted
    backlog: int
    oldest_entry_ms: int | None
    status: str
    total: int
    available: int
    admitted: int
    released: int
    limit: int
    epoch: int
    revision: int
    opened_ms: int
    begins_ms: int
    ends_ms: int
    cool_down_s: int
    dealt: int  # units, by the ledger; others may have come from other lanes or gone there
    sent: dict[int, int]  # lane → units ever sent there
    got: dict[int, int]  # lane → units ever got from there
    items: dict[int, GateItem]

    @property
    def rules(self) -> Rules:
        return Rules(self.limit, self.cool_down_s, self.begins_ms, self.ends_ms, self.status)

    @property
    def preparing(self) -> bool:
        """Whether the round is not open to buyers: it is being opened, fenced or rebuilt, and its counters mean nothing
        yet."""
        return self.status == PREPARING


@dataclass(frozen=True, slots=True)
class Absent:
    """Says why there are no counters. `missing`: the gate answers, but does not have the round, or not all of it.
    `damaged`: there is a value that no gate writes."""

    reason: str
    missing: bool = False
    damaged: bool = False


class Held(msgspec.Struct, frozen=True, gc=False):
    """One order in a buyer's record or in `past`."""

    number: int
    quantity: int
    slot: int
    request_id: str
    live: bool
    item: int = 0  # none

    def place(self, user: str) -> str:
        """Returns the order's field in `past`, once it is over."""
        return keys.past_field(user, self.request_id, self.number >> 32, self.number & 0xFFFFFF)


class Note(msgspec.Struct, frozen=True, gc=False):
    """What a record says about orders that are over."""

    units: int
    lapses: int  # how many of them the buyer has cancelled or not paid in time
    lapsed_ms: int  # when the last of those was given back


class BuyerRecord(msgspec.Struct, frozen=True, gc=False):
    """The gate's record of a buyer."""

    orders: list[Held]
    note: Note | None


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One queue entry. `number` is None if it cannot be read."""

    entry_id: str
    text: str
    number: int | None = None
    round_id: int = 0
    epoch: int = 0
    user: str = ""
    quantity: int = 0
    slot: int = 0
    request_id: str = ""
    item: int = 0

    def held(self) -> Held:
        return Held(self.number or 0, self.quantity, self.slot, self.request_id, live=True, item=self.item)


class _Entry(msgspec.Struct):
    v: int
    round: int
    epoch: int
    lane: int
    seconds: int
    counter: int
    quantity: int
    slot: int
    user: str
    request: str
    item: int = 0


_SEVERAL = 2  # the version of an entry with several orders
_TOGETHER = tuple[
    int, int, int, int, int, int, int, list[str], list[int], list[int], list[str], list[str], list[int], list[str]
]


def put_together(seconds: int, lane: int, counter: int) -> int:
    """An order number: 31 bits of seconds, 8 of lane, 24 of counter."""
    return seconds << 32 | lane << 24 | counter


def read_record(lane: int, text: str) -> BuyerRecord | None:
    """Returns None if the text is not a buyer's record."""
    note, _, rest = text.partition(" ")
    match = _NOTE.fullmatch(note)
    if match is None:
        orders = read_orders(lane, text)
        return None if orders is None else BuyerRecord(orders, None)
    orders = read_orders(lane, rest) if rest else []
    return None if orders is None else BuyerRecord(orders, Note(*map(int, match.groups())))


def read_orders(lane: int, text: str) -> list[Held] | None:
    """Returns None if one of the orders cannot be read."""
    found = []
    for part in text.split(" "):
        match = _HELD.fullmatch(part)
        if match is None:
            return None
        seconds, counter, quantity, slot, item, request_id, live = match.groups()
        if int(seconds) >= _SECONDS_END or int(counter) >= _COUNTER_END:  # no order has such a number
            return None
        number = put_together(int(seconds), lane, int(counter))
        found.append(Held(number, int(quantity), int(slot), request_id, live == "1", int(item or 0)))
    return found


def read_entry(entry_id: str, text: str) -> Entry:
    try:
        read = msgspec.json.decode(text, type=_Entry)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Entry(entry_id, text)
    number = put_together(read.seconds, read.lane, read.counter)
    content = (read.user, read.quantity, read.slot, read.request, read.item)
    return Entry(entry_id, text, number, read.round, read.epoch, *content)


def read_together(entry_id: str, packed: bytes) -> list[Entry]:
    """An entry of several orders: version, round, epoch, lane, seconds, ms, the first counter, and lists of users,
    quantities, slots, request ids, metadata, items and persons; some of these may be empty."""
    try:
        version, round_id, epoch, lane, seconds, _, first, *lists = msgspec.msgpack.decode(packed, type=_TOGETHER)
        users, quantities, slots, request_ids, _, items, _ = lists
        if version != _SEVERAL or not users:
            raise ValueError(version)
        return [
            Entry(
                entry_id,
                "",
                put_together(seconds, lane, first + place),
                round_id,
                epoch,
                user,
                quantities[place],
                slots[place],
                request_ids[place] if request_ids else "",
                items[place] if items else 0,
            )
            for place, user in enumerate(users)
        ]
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, IndexError):
        return [Entry(entry_id, packed.decode(errors="replace"))]


class GateReader:
    def __init__(self, url: str) -> None:
        self._servers = open_servers(url)
        self.lasting = self._servers.lasting  # nothing ever takes the place of the server

    @property
    def standing(self) -> int:
        """Changes when a server has replaced another: readings from before and after it do not belong together."""
        return self._servers.standing

    async def look_up(self) -> None:
        """Finds out which server has which keys, from those that decide it."""
        async with _translated():
            await self._servers.look_up()

    async def must_stand(self, standing: int) -> None:
        """Raises if anything read since then may come from a server that was replaced meanwhile."""
        await self.look_up()
        if self.standing != standing:
            raise GateUnavailable("Another server has taken over a part of the gate while it was read.")

    async def drop_connections(self) -> None:
        """Makes the next questions go over new connections."""
        await self._servers.drop_connections()

    async def ledger(self) -> str | None:
        """Returns which ledger this gate serves, or None if none has been bound yet."""
        async with _translated():
            bound: Any = await self._on(keys.LEDGER).get(keys.LEDGER)
        return None if bound is None else bound.decode(errors="replace")

    def _on(self, key: str) -> Any:
        """Returns the client for the server that has the key. It follows no redirection: keys that are being moved can
        be read when they have arrived."""
        return self._servers.of(key).client

    async def rounds(self, refs: Sequence[keys.KeyedRound]) -> list[GateRound | Absent]:
        """Returns the rounds in order. One on a server that does not answer is absent, and does not hold up the
        others."""
        found: dict[int, GateRound | Absent] = {}
        groups: dict[AuditedNode, list[int]] = {}
        for i, ref in enumerate(refs):
            try:
                async with _translated():
                    groups.setdefault(self._servers.of(keys.round_(ref)), []).append(i)
            except GateUnavailable as error:
                found[i] = Absent(str(error))
        for server, places in groups.items():
            try:
                async with _translated():
                    there = await self._rounds_on(server, [refs[i] for i in places])
            except GateUnavailable as error:
                there = [Absent(str(error))] * len(places)
            found |= zip(places, there, strict=True)
        return [found[i] for i in range(len(refs))]

    async def _rounds_on(self, server: AuditedNode, refs: Sequence[keys.KeyedRound]) -> list[GateRound | Absent]:
        replies = await self._ask_rounds(server, refs)
        if any(isinstance(reply, exceptions.NoScriptError) for reply in replies):
            await server.client.script_load(_SOURCE)
            replies = await self._ask_rounds(server, refs)
        return [_to_round(ref, server.name, reply) for ref, reply in zip(refs, replies, strict=True)]

    async def _ask_rounds(self, server: AuditedNode, refs: Sequence[keys.KeyedRound]) -> list[Any]:
        async with server.client.pipeline(transaction=False) as pipeline:
            for ref in refs:
                of_lane = (keys.orders(ref.lane), keys.days(ref.lane), keys.home(ref.lane), keys.queue(ref.lane))
                names = (*_own_keys(ref), *of_lane)
                pipeline.execute_command("EVALSHA_RO", _SHA, len(names), *names)
            replies = await pipeline.execute(raise_on_error=False)
        for reply in replies:  # an error reply concerns one round, any other error the server
            if isinstance(reply, Exception) and not isinstance(reply, exceptions.ResponseError):
                raise reply
        return list(replies)

    async def records(self, ref: keys.KeyedRound, users: Sequence[str]) -> dict[str, str]:
        """Returns the raw records of the users that have one."""
        return await self._get(keys.buyers(ref), users)

    async def past(self, ref: keys.KeyedRound, places: Sequence[str]) -> dict[str, str]:
        """Returns the orders that are over at these places, where there are any."""
        return await self._get(keys.past(ref), places)

    async def _get(self, key: str, fields: Sequence[str]) -> dict[str, str]:
        if not fields:
            return {}
        async with _translated():
            found: Any = await self._on(key).hmget(key, list(fields))
        return {
            field: value.decode(errors="replace")
            for field, value in zip(fields, found, strict=True)
            if value is not None
        }

    def all_records(self, ref: keys.KeyedRound) -> AsyncIterator[dict[str, str]]:
        """Yields the records in portions. They include every buyer who was there at the start; a buyer may come
        twice."""
        return _without_persons(self._scan(keys.buyers(ref)))

    def all_past(self, ref: keys.KeyedRound) -> AsyncIterator[dict[str, str]]:
        """Like `all_records`, for orders that are over, by place."""
        return self._scan(keys.past(ref))

    async def _scan(self, key: str) -> AsyncIterator[dict[str, str]]:
        cursor = 0
        while True:
            async with _translated():
                reply: Any = await self._on(key).hscan(key, cursor, count=PORTION)
            cursor, portion = reply
            yield {field.decode(errors="replace"): value.decode(errors="replace") for field, value in portion.items()}
            if int(cursor) == 0:
                return

    async def entries(self, lane: int) -> AsyncIterator[list[Entry]]:
        """Yields all entries of the lane's stream except settled ones, in portions."""
        after = "-"
        while True:
            async with _translated():
                found: Any = await self._on(keys.orders(lane)).xrange(keys.orders(lane), after, "+", count=ENTRIES)
            if not found:
                return
            orders = [each for entry_id, fields in found for each in _orders_in(entry_id.decode(), fields or {})]
            for start in range(0, len(orders), PORTION):
                yield orders[start : start + PORTION]
            after = f"({found[-1][0].decode()}"

    async def close(self) -> None:
        await self.drop_connections()


def _orders_in(entry_id: str, fields: dict[bytes, bytes]) -> list[Entry]:
    if b"orders" in fields:
        return read_together(entry_id, fields[b"orders"])
    return [read_entry(entry_id, fields.get(b"order", b"").decode(errors="replace"))]


async def _without_persons(portions: AsyncIterator[dict[str, str]]) -> AsyncIterator[dict[str, str]]:
    """Leaves out fields that begin with a line feed: those say which users count as one person."""
    async for portion in portions:
        yield {user: text for user, text in portion.items() if not user.startswith("\n")}


def _own_keys(ref: keys.KeyedRound) -> tuple[str, str, str]:
    return keys.round_(ref), keys.buyers(ref), keys.past(ref)


def _to_round(ref: keys.KeyedRound, server: str, reply: Any) -> GateRound | Absent:
    if isinstance(reply, _ON_THE_WAY):
        return Absent(f"round {ref.id} is on its way to another server of the cluster")
    if isinstance(reply, exceptions.ResponseError):
        return Absent(f"the gate cannot read round {ref.id} ({reply})")
    now_ms, damaged, *rest = reply
    if damaged:
        own = damaged.decode() in _own_keys(ref)
        return Absent(f"something else stands under {damaged.decode()} in the gate", missing=own, damaged=True)
    buyers, backlog, oldest, home, replication_id, *pairs = rest
    # A server that has taken over may lack the newest orders, and admits no one until the keeper has compared it. One
    # that was replaced and takes over again has, under its old name, the data of the server that had replaced it.
    reign, vouched = f"{server} {replication_id.decode()}", home.decode(errors="replace")
    if server and vouched == reign + keys.COMPARED_ONCE:
        return Absent(f"lane {ref.lane} moved to another server a moment ago, and the keeper compares it once more")
    if server and vouched and vouched != reign:
        return Absent(f"lane {ref.lane} is on another server than before, which the keeper has to compare first")
    if not pairs:
        return Absent(f"the gate does not have round {ref.id}", missing=True)
    texts: list[str] = [text.decode(errors="replace") for text in pairs]
    values = dict(zip(texts[::2], texts[1::2], strict=True))
    if values.get("status") == PREPARING:
        values = dict.fromkeys(_FIELDS, "0") | values
    items = values.get("items", "").split()
    of_items = [f"{name}:{item}" for item in items for name in _OF_ITEM]
    unread = [name for name in (*_FIELDS, *of_items) if not _NUMBER.fullmatch(values.get(name, ""))]
    unread += [] if _ITEMS.fullmatch(values.get("items", "0")) else ["items"]
    moved = {name: value for name, value in values.items() if name.startswith((_SENT, _GOT)) or name in _COUNTS}
    unread += [name for name, value in moved.items() if not _NUMBER.fullmatch(value)]
    unread += [] if values.get("status", PREPARING) in _STATUSES else ["status"]
    if unread:
        damaged = unread[0] in values
        reason = f"round {ref.id} has {'something else as its' if damaged else 'no'} {unread[0]} in the gate"
        return Absent(reason, missing=True, damaged=damaged)
    astray = [name for name in moved if name not in _COUNTS and not _MOVED.fullmatch(name)]
    if astray:
        return Absent(f"round {ref.id} has {astray[0]} in the gate, which names no lane", missing=True, damaged=True)
    return GateRound(
        lane=ref.lane,
        now_ms=now_ms,
        buyers=buyers,
        buyers_gone=max(0, int(values.get("buyers", "0")) - buyers),
        backlog=backlog,
        oldest_entry_ms=int(oldest.split(b"-")[0]) if oldest else None,
        status=values.get("status", ""),
        sent=_by_lane(_SENT, moved),
        got=_by_lane(_GOT, moved),
        items={int(item): _to_item(item, values) for item in items},
        **{name: int(values[name]) for name in _FIELDS},
    )


def _to_item(item: str, values: dict[str, str]) -> GateItem:
    mine = {name.removesuffix(f":{item}"): value for name, value in values.items() if name.endswith(f":{item}")}
    return GateItem(
        **{name: int(mine[name]) for name in _OF_ITEM}, sent=_by_lane(_SENT, mine), got=_by_lane(_GOT, mine)
    )


def _by_lane(prefix: str, moved: dict[str, str]) -> dict[int, int]:
    """Returns the units by lane, summed over all items."""
    found: dict[int, int] = {}
    for name, units in moved.items():
        if name.startswith(prefix):
            lane = int(name.removeprefix(prefix).partition(":")[0])
            found[lane] = found.get(lane, 0) + int(units)
    return found


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except _ON_THE_WAY as error:
        raise GateUnavailable("A part of the gate is on its way to another server of the cluster.") from error
    # RuntimeError is what uvloop raises for a connection that the other side has reset.
    except (exceptions.RedisError, TimeoutError, OSError, RuntimeError) as error:
        raise GateUnavailable(f"The gate does not answer ({type(error).__name__}: {error}).") from error
