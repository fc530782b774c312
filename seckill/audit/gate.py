"""The gate as the auditor reads it. Every record is read as it stands there, by a reader of our own."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import msgspec
from redis import exceptions

from seckill.audit.gate_client import close_client, open_client
from seckill.errors import GateUnavailable
from seckill.gates import keys

# Neither the server nor this process is held up for longer than a portion takes.
PORTION = 500

PREPARING = "preparing"

_SOURCE = (files("seckill.audit") / "lua" / "read_round.lua").read_text()
_FIELDS = ("total", "available", "admitted", "released", "limit", "epoch", "revision", "opened_ms", "begins_ms")
# seconds:counter:quantity:slot:request_id:live, none with more digits than it can have
_HELD = re.compile(r"([0-9]{1,10}):([0-9]{1,8}):([0-9]{1,18}):([0-9]{1,18}):([^: ]*):([01])")
_SENT, _GOT = "sent:", "got:"
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_MOVED = re.compile(rf"(?:{_SENT}|{_GOT})[0-9]{{1,3}}")
_SECONDS_END, _COUNTER_END = 1 << 31, 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRound:
    """A round's counters, or those of its share in a lane, all of one instant."""

    lane: int
    now_ms: int
    buyers: int
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
    dealt: int  # units, by the ledger; others may have come from other lanes or gone there
    sent: dict[int, int]  # lane → units ever sent there
    got: dict[int, int]  # lane → units ever got from there

    @property
    def preparing(self) -> bool:
        """Not open to anybody: being opened, fenced or rebuilt. Its counters mean nothing yet."""
        return self.status == PREPARING


@dataclass(frozen=True, slots=True)
class Absent:
    """Why there are no counters. `missing`: the gate answers, and does not have the round."""

    reason: str
    missing: bool = False


class Held(msgspec.Struct, frozen=True, gc=False):
    """One order in a buyer's record."""

    number: int
    quantity: int
    slot: int
    request_id: str
    live: bool


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


def put_together(seconds: int, lane: int, counter: int) -> int:
    """An order number: 31 bits of seconds, 8 of lane, 24 of counter."""
    return seconds << 32 | lane << 24 | counter


def read_record(lane: int, record: str) -> list[Held] | None:
    """None if it is not a buyer's record."""
    found = []
    for part in record.split(" "):
        match = _HELD.fullmatch(part)
        if match is None:
            return None
        seconds, counter, quantity, slot, request_id, live = match.groups()
        if int(seconds) >= _SECONDS_END or int(counter) >= _COUNTER_END:  # no order has such a number
            return None
        number = put_together(int(seconds), lane, int(counter))
        found.append(Held(number, int(quantity), int(slot), request_id, live == "1"))
    return found


def read_entry(entry_id: str, text: str) -> Entry:
    try:
        read = msgspec.json.decode(text, type=_Entry)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Entry(entry_id, text)
    number = put_together(read.seconds, read.lane, read.counter)
    return Entry(entry_id, text, number, read.round, read.epoch, read.user, read.quantity, read.slot, read.request)


class GateReader:
    def __init__(self, url: str) -> None:
        self._client = open_client(url)
        self._sha = ""

    async def ledger(self) -> str | None:
        """Which ledger this gate serves; None if none has been bound yet."""
        async with _translated():
            bound: Any = await self._client.get(keys.LEDGER)
        return None if bound is None else bound.decode(errors="replace")

    async def rounds(self, refs: Sequence[keys.RoundRef]) -> list[GateRound | Absent]:
        """In their order."""
        async with _translated():
            if not self._sha:
                self._sha = await self._client.script_load(_SOURCE)
            replies = await self._read_all(refs)
            if any(isinstance(reply, exceptions.NoScriptError) for reply in replies):
                self._sha = await self._client.script_load(_SOURCE)
                replies = await self._read_all(refs)
        return [_to_round(ref, reply) for ref, reply in zip(refs, replies, strict=True)]

    async def _read_all(self, refs: Sequence[keys.RoundRef]) -> list[Any]:
        if not refs:
            return []
        async with self._client.pipeline(transaction=False) as pipeline:
            for ref in refs:
                names = (keys.round_(ref), keys.buyers(ref), keys.orders(ref.lane))
                pipeline.execute_command("EVALSHA_RO", self._sha, len(names), *names)
            replies = await pipeline.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, exceptions.ConnectionError | exceptions.TimeoutError):
                raise reply
        return list(replies)

    async def records(self, ref: keys.RoundRef, users: Sequence[str]) -> dict[str, str]:
        """As they stand there, of those users that have one."""
        if not users:
            return {}
        async with _translated():
            found: Any = await self._client.hmget(keys.buyers(ref), list(users))
        return {
            user: record.decode(errors="replace")
            for user, record in zip(users, found, strict=True)
            if record is not None
        }

    async def all_records(self, ref: keys.RoundRef) -> AsyncIterator[dict[str, str]]:
        """In portions. Complete for all who were there at the start; a buyer may come twice."""
        cursor = 0
        while True:
            async with _translated():
                reply: Any = await self._client.hscan(keys.buyers(ref), cursor, count=PORTION)
            cursor, portion = reply
            yield {user.decode(errors="replace"): record.decode(errors="replace") for user, record in portion.items()}
            if int(cursor) == 0:
                return

    async def entries(self, lane: int) -> AsyncIterator[list[Entry]]:
        """All that are in the lane's stream, settled ones excepted, in portions."""
        after = "-"
        while True:
            async with _translated():
                found: Any = await self._client.xrange(keys.orders(lane), after, "+", count=PORTION)
            if not found:
                return
            yield [
                read_entry(entry_id.decode(), (fields or {}).get(b"order", b"").decode(errors="replace"))
                for entry_id, fields in found
            ]
            after = f"({found[-1][0].decode()}"

    async def close(self) -> None:
        await close_client(self._client)


def _to_round(ref: keys.RoundRef, reply: Any) -> GateRound | Absent:
    if isinstance(reply, exceptions.ResponseError):
        return Absent(f"the gate cannot read round {ref.id} ({reply})")
    now_ms, buyers, backlog, oldest, *pairs = reply
    if not pairs:
        return Absent(f"the gate does not have round {ref.id}", missing=True)
    texts: list[str] = [text.decode(errors="replace") for text in pairs]
    values = dict(zip(texts[::2], texts[1::2], strict=True))
    if values.get("status") == PREPARING:
        values = dict.fromkeys(_FIELDS, "0") | values
    unread = [name for name in _FIELDS if not _NUMBER.fullmatch(values.get(name, ""))]
    moved = {name: value for name, value in values.items() if name.startswith((_SENT, _GOT)) or name == "dealt"}
    unread += [name for name, value in moved.items() if not _NUMBER.fullmatch(value)]
    if unread:
        return Absent(f"round {ref.id} has no number as its {unread[0]} in the gate")
    astray = [name for name in moved if name != "dealt" and not _MOVED.fullmatch(name)]
    if astray:
        return Absent(f"round {ref.id} has {astray[0]} in the gate, which names no lane")
    return GateRound(
        lane=ref.lane,
        now_ms=now_ms,
        buyers=buyers,
        backlog=backlog,
        oldest_entry_ms=int(oldest.split(b"-")[0]) if oldest else None,
        status=values.get("status", ""),
        dealt=int(values.get("dealt", values["total"])),
        sent=_by_lane(_SENT, moved),
        got=_by_lane(_GOT, moved),
        **{name: int(values[name]) for name in _FIELDS},
    )


def _by_lane(prefix: str, moved: dict[str, str]) -> dict[int, int]:
    return {int(name.removeprefix(prefix)): int(units) for name, units in moved.items() if name.startswith(prefix)}


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    # RuntimeError: what uvloop says of a connection that the other side has reset.
    except (
        exceptions.RedisError,
        exceptions.RedisClusterException,
        TimeoutError,
        OSError,
        RuntimeError,
    ) as error:
        raise GateUnavailable(f"The gate does not answer ({type(error).__name__}: {error}).") from error
