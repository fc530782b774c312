"""Checks of lines: every served entry has its order, none was called before a better place that waits, and no unit is
idle while a buyer waits for it.

Everything about a line is read in one snapshot: entries change under its lock, so no snapshot shows half of a change.
Checks that count all entries are made as often as they take a hundredth of the time.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import BigInteger, and_, bindparam, case, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.audit.counter_checks import Reading
from seckill.audit.database import AnyRow, AnySelect, ReadOnlyDatabase
from seckill.audit.gate import Absent, GateRound
from seckill.audit.report import Finding, Notes
from seckill.backends.sql.line_tables import line_entries, lines
from seckill.backends.sql.tables import orders

# The states as numbers in a row.
WAITING, CALLED, SERVED = 0, 1, 2
# Enough to see what it is about.
NAMED_MAX = 20
# A unit that comes back goes to the next place within a second. After a minute, no keeper is serving the line.
IDLE_MS = 60_000
# After counting, a line is left alone for this many times as long as the counting took.
PAUSE_TIMES = 100

_e, _o = line_entries.c, orders.c
_round = bindparam("round", type_=BigInteger)


class LineAudit:
    def __init__(self, database: ReadOnlyDatabase, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._monotonic = monotonic
        self._again_s: dict[int, float] = {}  # round → when all its entries are counted again
        self._lines = select(lines).where(database.among(lines.c.round_id, "ids"))
        # Round → how far its line had come, and since when it has come no farther although it has units, by the gate's
        # clock. It takes a minute to be sure.
        self._idle_since: dict[int, tuple[object, int]] = {}

    def count_all_now(self) -> None:
        self._again_s.clear()

    async def judge(self, readings: Sequence[Reading], notes: Notes) -> None:
        ids = [reading.id for reading in readings]
        found = await self._database.rows(self._lines, {"ids": self._database.listed(ids)}) if ids else []
        known = {row.round_id: row for row in found}
        for reading in readings:
            if reading.id in known:
                await self._judge_line(reading, known[reading.id], notes)
        self._idle_since = {id_: since for id_, since in self._idle_since.items() if id_ in known}

    async def _judge_line(self, reading: Reading, line: AnyRow, notes: Notes) -> None:
        notes.count("lines")
        about = {"round": reading.id}
        async with self._database.snapshot() as connection:
            for row in await connection.execute(_SERVED_WITHOUT, about):
                says = "was served, and has no order of this buyer for as many units"
                notes.add(_finding(reading, "served", says, row.user_id, row.order_id))
            for row in await connection.execute(_ORDER_WITHOUT, about):
                says = "has an order by the line, and an entry that was not served"
                notes.add(_finding(reading, "order", says, row.user_id, row.id))
            if self._monotonic() >= self._again_s.get(reading.id, 0.0):
                began_s, before = self._monotonic(), len(notes.findings)
                await _judge_all(connection, reading, notes)
                if len(notes.findings) == before:  # otherwise it is checked again at once
                    self._again_s[reading.id] = began_s + PAUSE_TIMES * (self._monotonic() - began_s)
            if line.seed is None or line.drawn_ms is not None:
                await self._judge_waiting(connection, reading, line, notes)

    async def _judge_waiting(self, connection: AsyncConnection, reading: Reading, line: AnyRow, notes: Notes) -> None:
        first: dict[int, AnyRow] = {}
        for row in await connection.execute(_NEXT, {"round": reading.id}):
            first.setdefault(row.item_id, row)
            wanted = {"round": reading.id, "item": row.item_id, "place": row.place, "quantity": row.quantity}
            for overtaking in await connection.execute(_OVERTAKING, wanted):
                says = f"got a unit at place {overtaking.place}, while place {row.place} waits for no more than that"
                notes.add(_finding(reading, "overtaken", says, overtaking.user_id, overtaking.order_id))
        self._judge_idle(reading, line, list(first.values()), notes)

    def _judge_idle(self, reading: Reading, line: AnyRow, first: Sequence[AnyRow], notes: Notes) -> None:
        gate = reading.gate
        if isinstance(gate, Absent) or line.paused or not _has_units_for(gate, first):
            self._idle_since.pop(reading.id, None)
            return
        # A long line, or a slow one, has units and people who wait for hours, and goes on all the same.
        reached = line.served, [row.place for row in first]
        known, since_ms = self._idle_since.get(reading.id, (None, 0))
        if reached != known:
            since_ms = gate.now_ms
            self._idle_since[reading.id] = reached, since_ms
        if gate.now_ms - since_ms > IDLE_MS:
            says = "has had units for more than a minute that no one was given, while people wait: is a keeper running?"
            notes.add(_finding(reading, "idle", says, invariant="progress"))


async def _judge_all(connection: AsyncConnection, reading: Reading, notes: Notes) -> None:
    about = {"round": reading.id}
    for row in await connection.execute(_TWICE, about):
        says = f"place {row.place} of the line is there {row.entries} times"
        notes.add(_finding(reading, "place", says))
    counted = (await connection.execute(_COUNTED, about)).one()
    line = (await connection.execute(_LINE, about)).one()
    if (counted.waiting or 0, counted.served or 0) != (line.waiting, line.served):
        says = f"the line counts {line.waiting} waiting and {line.served} served; its entries are others"
        notes.add(_finding(reading, "counters", says))


def _has_units_for(gate: GateRound, first: Sequence[AnyRow]) -> bool:
    """Whether the round is on and has enough units for one of these entries."""
    left = {item: stock.available for item, stock in gate.items.items()} or {0: gate.available}
    on = gate.status == "line" and gate.begins_ms <= gate.now_ms < gate.ends_ms
    return on and any(row.quantity <= left.get(row.item_id, 0) for row in first)


def _finding(
    reading: Reading,
    kind: str,
    says: str,
    user: str | None = None,
    number: int | None = None,
    invariant: str = "line",
) -> Finding:
    return Finding(
        invariant=invariant,
        kind=kind,
        says=says,
        round_id=reading.id,
        sale_id=reading.after.sale_id,
        number=number,
        user=user,
    )


def _served_without() -> AnySelect:
    same = and_(_o.round_id == _e.round_id, _o.user_id == _e.user_id, _o.quantity == _e.quantity)
    return (
        select(_e.user_id, _e.order_id)
        .outerjoin(orders, _o.id == _e.order_id)
        .where(_e.round_id == _round, _e.state == SERVED, or_(_o.id.is_(None), ~same))
        .limit(NAMED_MAX)
    )


def _order_without() -> AnySelect:
    entry = select(_e.id).where(_e.round_id == _o.round_id, _e.user_id == _o.user_id, _e.state.in_((CALLED, SERVED)))
    return (
        select(_o.id, _o.user_id)
        .where(_o.round_id == _round, _o.request_id.like("line-%"), ~entry.exists())
        # An order that could not be written belongs to no one.
        .where(or_(_o.expires_ms.is_not(None), _o.paid_ms.is_not(None)))
        .limit(NAMED_MAX)
    )


_SERVED_WITHOUT = _served_without()
_ORDER_WITHOUT = _order_without()
_TWICE = (
    select(_e.place, func.count().label("entries"))
    .where(_e.round_id == _round, _e.place > 0)
    .group_by(_e.place)
    .having(func.count() > 1)
    .limit(NAMED_MAX)
)
_COUNTED = select(
    func.sum(case((_e.state.in_((WAITING, CALLED)), 1), else_=0)).label("waiting"),
    func.sum(case((_e.state == SERVED, 1), else_=0)).label("served"),
).where(_e.round_id == _round)
_LINE = select(lines.c.waiting, lines.c.served).where(lines.c.round_id == _round)
# The first waiting entries: the line is served from there.
_NEXT = (
    select(_e.item_id, _e.place, _e.quantity)
    .where(_e.round_id == _round, _e.state == WAITING, _e.place > 0)
    .order_by(_e.place)
    .limit(NAMED_MAX)
)
_OVERTAKING = (
    select(_e.user_id, _e.place, _e.order_id)
    .where(_e.round_id == _round, _e.item_id == bindparam("item", type_=BigInteger))
    .where(_e.state.in_((CALLED, SERVED)), _e.place > bindparam("place", type_=BigInteger))
    .where(_e.quantity >= bindparam("quantity"))
    .limit(NAMED_MAX)
)
