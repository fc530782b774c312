"""Serves a line: entries at the best places are called, and are served when their orders are written.

The gate is only asked for called entries, which cannot leave: so no buyer who has left gets an order. An entry is only
served if its order has a row: so no buyer is told of an order that does not exist, whatever a gate may lose.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace
from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, func, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.end_orders import BURIED
from seckill.backends.sql.line_guests import turned_away
from seckill.backends.sql.line_joining import LineWriters
from seckill.backends.sql.line_rows import change_row, entries_of, items_of, lock_line, to_entry, to_line
from seckill.backends.sql.line_tables import STATES, line_entries, lines
from seckill.backends.sql.sales import to_rounds
from seckill.backends.sql.tables import orders, rounds
from seckill.domain.event import EventType
from seckill.domain.item import NO_ITEM
from seckill.domain.line import OF_LINE, EntryState, LineEntry
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round
from seckill.ports.line import WaitingLine

_e = line_entries.c
# How many entries one transaction passes over: there may be many, if an operator has replaced the list of a long line.
PASSED_OVER_MAX = 2_000
# How often one transaction looks for the next entries. The next transaction goes on behind them.
LOOKS_MAX = 50
_WAITING, _CALLED = STATES[EntryState.WAITING], STATES[EntryState.CALLED]

_SERVED = (
    update(line_entries)
    .where(_e.id == bindparam("entry", type_=BigInteger))
    .values(
        state=STATES[EntryState.SERVED],
        order_id=bindparam("number", type_=BigInteger),
        changed_ms=bindparam("at_ms", type_=BigInteger),
    )
)


async def lines_waiting(connection: AsyncConnection) -> list[WaitingLine]:
    found = (await connection.execute(select(lines).where(lines.c.waiting > 0).order_by(lines.c.round_id))).all()
    if not found:
        return []
    known = {row.round_id: to_line(row) for row in found}
    alive = rounds.c.id.in_(list(known)) & rounds.c.retired_ms.is_(None)
    of = await to_rounds(connection, (await connection.execute(select(rounds).where(alive))).all())
    return [
        WaitingLine(round=round_, line=known[round_.id], called=await _count_called(connection, round_))
        for round_ in sorted(of, key=lambda each: each.id)
    ]


async def _count_called(connection: AsyncConnection, round_: Round) -> int:
    items = [item.id for item in round_.items] or [NO_ITEM]
    these = (_e.round_id == round_.id, _e.item_id.in_(items), _e.state == _CALLED)
    return await connection.scalar(select(func.count()).select_from(line_entries).where(*these)) or 0


async def call_next(
    connection: AsyncConnection,
    use: LineWriters,
    round_id: int,
    token: str,
    lease_s: float,
    units: Mapping[int, int],
    count: int,
) -> Sequence[LineEntry] | None:
    row = await lock_line(connection, round_id)
    now_ms = await now_of(connection, use.database)
    if row is None or (row.lease is not None and row.lease != token and row.lease_ms > now_ms):
        return None
    await change_row(connection, round_id, lease=token, lease_ms=now_ms + int(1000 * lease_s))
    items = await items_of(connection, round_id)
    called = [to_entry(each) for each in await connection.execute(entries_of(round_id).where(_is_called(items)))]
    away = await turned_away(connection, row.sale_id, called)
    called = [replace(entry, reason=away.get(entry.id)) for entry in called]
    line = to_line(row)
    if line.decided and not line.paused:
        left = dict(units)
        for entry in called:
            left[entry.item] = left.get(entry.item, 0) - entry.quantity
        room = count - len(called)
        passed: list[int] = []
        looks = 0
        next_ones = await _next_of_all(connection, round_id, left, room)
        while away := await turned_away(connection, row.sale_id, next_ones):
            looks += 1
            await _end_all(connection, away, now_ms)
            passed += away
            last_look = len(passed) >= PASSED_OVER_MAX or looks >= LOOKS_MAX
            next_ones = await _next_of_all(connection, round_id, left, 0 if last_look else room)
        if next_ones:
            ids = [entry.id for entry in next_ones]
            await connection.execute(
                update(line_entries).where(_e.id.in_(ids)).values(state=_CALLED, changed_ms=now_ms)
            )
            called += [replace(entry, state=EntryState.CALLED, changed_ms=now_ms) for entry in next_ones]
        if passed:
            await change_row(connection, round_id, waiting=row.waiting - len(passed))
            await _tell(connection, use, row, EventType.ENTRY_PASSED_OVER, passed)
    return sorted(called, key=lambda entry: entry.place or 0)


def _is_called(items: Sequence[int]) -> ColumnElement[bool]:
    return and_(_e.item_id.in_(items), _e.state == _CALLED)


async def _next_of_all(
    connection: AsyncConnection, round_id: int, left: Mapping[int, int], count: int
) -> list[LineEntry]:
    """Returns the next entries by place, whichever item they want, as long as the units of each item last."""
    found = [entry for item, units in left.items() for entry in await _next(connection, round_id, item, units, count)]
    return sorted(found, key=lambda entry: entry.place or 0)[:count]


async def _next(connection: AsyncConnection, round_id: int, item: int, left: int, count: int) -> list[LineEntry]:
    """Returns the next entries that want this item, by place, as long as its units last. An entry that wants more units
    than are left keeps its place and does not hold up those behind it."""
    chosen: list[LineEntry] = []
    after = 0
    while left > 0 and len(chosen) < count:
        wanted = (
            entries_of(round_id)
            .where(_e.item_id == item, _e.state == _WAITING, _e.place > after, _e.quantity <= left)
            .order_by(_e.place)
            .limit(min(count - len(chosen), left))
        )
        rows = (await connection.execute(wanted)).all()
        for row in rows:
            if row.quantity <= left:
                left -= row.quantity
                chosen.append(to_entry(row))
            after = row.place
        if not rows:
            break
    return chosen


async def settle_called(
    connection: AsyncConnection,
    use: LineWriters,
    round_id: int,
    token: str,
    called: Sequence[LineEntry],
    refused: Mapping[int, str],
) -> Sequence[LineEntry]:
    row = await lock_line(connection, round_id)
    if row is None or row.lease != token:  # another process serves the line by now
        return ()
    still = await connection.scalars(select(_e.id).where(_e.id.in_([e.id for e in called]), _e.state == _CALLED))
    open_ones = set(still)
    called = [entry for entry in called if entry.id in open_ones]
    written = await _written(connection, round_id, called)
    now_ms = await now_of(connection, use.database)
    if written:
        served = [{"entry": entry, "number": number, "at_ms": now_ms} for entry, number in written.items()]
        await connection.execute(_SERVED, served)
    over = {entry.id: refused[entry.id] for entry in called if entry.id in refused and entry.id not in written}
    await _end_all(connection, over, now_ms)
    if written or over:
        rest = row.waiting - len(written) - len(over)
        await change_row(connection, round_id, waiting=rest, served=row.served + len(written))
        await _tell(connection, use, row, EventType.ENTRY_SERVED, list(written))
        await _tell(connection, use, row, EventType.ENTRY_PASSED_OVER, list(over))
    return [entry for entry in called if entry.id not in written and entry.id not in over]


async def _written(connection: AsyncConnection, round_id: int, called: Sequence[LineEntry]) -> dict[int, int]:
    """Returns the order of each entry. An order that the gate admitted but no worker could write does not count: it has
    failed, and another one follows, which may not be written yet. A buyer has one entry in a round."""
    of_user = {entry.user: entry.id for entry in called}
    wanted = select(orders.c.id, orders.c.user_id).where(
        orders.c.round_id == round_id,
        orders.c.user_id.in_(list(of_user)),
        orders.c.request_id.like(f"{OF_LINE}%"),
        not_(BURIED),
    )
    return {of_user[row.user_id]: row.id for row in await connection.execute(wanted)}


async def buried(connection: AsyncConnection, numbers: Collection[OrderNumber]) -> set[OrderNumber]:
    wanted = select(orders.c.id).where(orders.c.id.in_([int(number) for number in numbers]), BURIED)
    return {OrderNumber.from_int(number) for number in await connection.scalars(wanted)}


async def pass_over(
    connection: AsyncConnection,
    use: LineWriters,
    round_id: int,
    reason: str,
    count: int,
    items: Collection[int] | None,
) -> int:
    row = await lock_line(connection, round_id)
    if row is None:
        return 0
    ids: list[int] = []
    for item in await items_of(connection, round_id) if items is None else items:
        last = select(_e.id).where(_e.round_id == round_id, _e.item_id == item, _e.state == _WAITING)
        ids += await connection.scalars(last.order_by(_e.place.desc()).limit(count - len(ids)))
    if ids:
        await _end(connection, ids, reason, await now_of(connection, use.database))
        if row.seed is not None and row.closed_ms is None:  # like an entry that leaves, it will not be in the list
            await connection.execute(update(line_entries).where(_e.id.in_(ids)).values(place=-_e.id))
        await change_row(connection, round_id, waiting=row.waiting - len(ids))
        await _tell(connection, use, row, EventType.ENTRY_PASSED_OVER, ids)
    return len(ids)


async def _end_all(connection: AsyncConnection, over: Mapping[int, str], now_ms: int) -> None:
    """Ends entries, each with its reason."""
    for reason in sorted(set(over.values())):
        await _end(connection, [entry for entry, why in over.items() if why == reason], reason, now_ms)


async def _end(connection: AsyncConnection, ids: Sequence[int], reason: str, now_ms: int) -> None:
    over = {"state": STATES[EntryState.PASSED_OVER], "reason": reason, "changed_ms": now_ms}
    await connection.execute(update(line_entries).where(_e.id.in_(ids)).values(**over))


async def _tell(
    connection: AsyncConnection, use: LineWriters, line: AnyRow, type_: EventType, ids: Sequence[int]
) -> None:
    if ids:
        await use.entries.line_entries(connection, type_, line, ids)
