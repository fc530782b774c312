"""Serving a line: those at the best places are called, and are served when their orders are written.

The gate is asked only for entries that are called, which cannot leave: nobody who has left gets an order. And an entry
is served only if its order has a row: whatever a gate may lose, nobody is told of an order that is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.access_tables import buyer_standings
from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.line_joining import LineWriters
from seckill.backends.sql.line_rows import change_row, entries_of, items_of, lock_line, to_entry, to_line
from seckill.backends.sql.line_tables import STATES, line_entries, lines
from seckill.backends.sql.sales import to_rounds
from seckill.backends.sql.tables import orders, rounds
from seckill.domain.event import EventType
from seckill.domain.item import NO_ITEM
from seckill.domain.line import EntryState, LineEntry
from seckill.domain.order import OrderState
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round
from seckill.ports.line import WaitingLine

_e = line_entries.c
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
    line = to_line(row)
    if line.decided and not line.paused:
        blocked: list[int] = []
        for item in items:
            left = units.get(item, 0) - sum(entry.quantity for entry in called if entry.item == item)
            next_ones = await _next(connection, round_id, item, left, count - len(called))
            while out := await _blocked(connection, next_ones):
                await _end(connection, out, Outcome.BLOCKED.value, now_ms)
                blocked += out
                next_ones = await _next(connection, round_id, item, left, count - len(called))
            if next_ones:
                ids = [entry.id for entry in next_ones]
                await connection.execute(
                    update(line_entries).where(_e.id.in_(ids)).values(state=_CALLED, changed_ms=now_ms)
                )
                called += [replace(entry, state=EntryState.CALLED, changed_ms=now_ms) for entry in next_ones]
        if blocked:
            await change_row(connection, round_id, waiting=row.waiting - len(blocked))
            await _tell(connection, use, row, EventType.ENTRY_PASSED_OVER, blocked)
    return sorted(called, key=lambda entry: entry.place or 0)


async def _blocked(connection: AsyncConnection, entries: Sequence[LineEntry]) -> list[int]:
    """Those whose buyer was blocked since: one who joined by a process that had not heard of it is still here."""
    standing = buyer_standings.c
    users = [entry.user for entry in entries]
    wanted = select(standing.user_id).where(standing.user_id.in_(users), standing.blocked_ms.is_not(None))
    found = set(await connection.scalars(wanted)) if users else set()
    return [entry.id for entry in entries if entry.user in found]


def _is_called(items: Sequence[int]) -> ColumnElement[bool]:
    return and_(_e.item_id.in_(items), _e.state == _CALLED)


async def _next(connection: AsyncConnection, round_id: int, item: int, left: int, count: int) -> list[LineEntry]:
    """By place, as long as what is left is enough. Who wants more than that keeps the place, and does not hold up
    those behind."""
    chosen: list[LineEntry] = []
    after = 0
    while left > 0 and len(chosen) < count:
        wanted = (
            entries_of(round_id)
            .where(_e.item_id == item, _e.state == _WAITING, _e.place > after, _e.quantity <= left)
            .order_by(_e.place)
            .limit(count - len(chosen))
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
    if row is None or row.lease != token:  # another process serves it by now
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
    for reason in sorted(set(over.values())):
        await _end(connection, [entry for entry, why in over.items() if why == reason], reason, now_ms)
    if written or over:
        rest = row.waiting - len(written) - len(over)
        await change_row(connection, round_id, waiting=rest, served=row.served + len(written))
        await _tell(connection, use, row, EventType.ENTRY_SERVED, list(written))
        await _tell(connection, use, row, EventType.ENTRY_PASSED_OVER, list(over))
    return [entry for entry in called if entry.id not in written and entry.id not in over]


async def _written(connection: AsyncConnection, round_id: int, called: Sequence[LineEntry]) -> dict[int, int]:
    """Entry → the order that it was admitted with, by the request id. After a gate has forgotten an order there may be
    two: the one that it forgot, which has failed, and the one that it gave then. That one counts."""
    by_request = {entry.request_id: entry for entry in called}
    wanted = select(orders.c.id, orders.c.request_id).where(
        orders.c.round_id == round_id,
        orders.c.user_id.in_([entry.user for entry in called]),
        orders.c.request_id.in_(list(by_request)),
    )
    wanted = wanted.order_by(case((orders.c.state == OrderState.FAILED, 0), else_=1))  # the last one stays
    return {by_request[row.request_id].id: row.id for row in await connection.execute(wanted)}


async def pass_over(connection: AsyncConnection, use: LineWriters, round_id: int, reason: str, count: int) -> int:
    row = await lock_line(connection, round_id)
    if row is None:
        return 0
    ids: list[int] = []
    for item in await items_of(connection, round_id):
        last = select(_e.id).where(_e.round_id == round_id, _e.item_id == item, _e.state == _WAITING)
        ids += await connection.scalars(last.order_by(_e.place.desc()).limit(count - len(ids)))
    if ids:
        await _end(connection, ids, reason, await now_of(connection, use.database))
        await change_row(connection, round_id, waiting=row.waiting - len(ids))
        await _tell(connection, use, row, EventType.ENTRY_PASSED_OVER, ids)
    return len(ids)


async def _end(connection: AsyncConnection, ids: Sequence[int], reason: str, now_ms: int) -> None:
    over = {"state": STATES[EntryState.PASSED_OVER], "reason": reason, "changed_ms": now_ms}
    await connection.execute(update(line_entries).where(_e.id.in_(ids)).values(**over))


async def _tell(
    connection: AsyncConnection, use: LineWriters, line: AnyRow, type_: EventType, ids: Sequence[int]
) -> None:
    if ids:
        await use.entries.line_entries(connection, type_, line, ids)
