"""Joining and leaving a line. One transaction writes all that have come meanwhile, under the lock of the line's row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.line_rows import (
    change_row,
    close_if_due,
    entries_of,
    groups_column,
    items_of,
    lock_line,
    to_entry,
    to_line,
)
from seckill.backends.sql.line_tables import STATE_OF, STATES, line_entries, lines
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.tables import rounds
from seckill.domain.event import EventType
from seckill.domain.line import EntryState, LineEntry, RoundLine
from seckill.domain.sale import RoundStatus
from seckill.failpoints import reached
from seckill.ports.line import Joining, NoEntry, Standing

_e = line_entries.c
_IN_LINE = (STATES[EntryState.WAITING], STATES[EntryState.CALLED])
_OUT_OF_LINE = [number for number in STATE_OF if number not in _IN_LINE]


@dataclass(frozen=True, slots=True)
class LineWriters:
    database: Database
    entries: FeedEntries


async def join(
    connection: AsyncConnection, use: LineWriters, round_id: int, joinings: Sequence[Joining]
) -> Sequence[Standing] | NoEntry:
    row = await lock_line(connection, round_id)
    if row is None:
        return NoEntry.NO_LINE
    if await _is_over(connection, round_id):
        return NoEntry.OVER
    row = await close_if_due(connection, use.database, use.entries, row)
    known = await _of_users(connection, round_id, joinings)
    wanted = {joining.user: joining for joining in reversed(joinings)}  # of one who asks twice, the first counts
    new = [joining for user, joining in reversed(wanted.items()) if user not in known]
    again = [known[user] for user in reversed(wanted) if user in known and _may_come_again(known[user], row)]
    if new or again:
        await _write(connection, use, row, new, [(each, wanted[each.user_id]) for each in again])
        known = await _of_users(connection, round_id, joinings)
    line = to_line((await connection.execute(select(lines).where(lines.c.round_id == round_id))).one())
    fresh = {joining.user for joining in new} | {each.user_id for each in again}
    return await _standings(connection, line, [known[joining.user] for joining in joinings], fresh)


async def _write(
    connection: AsyncConnection,
    use: LineWriters,
    row: AnyRow,
    new: Sequence[Joining],
    again: Sequence[tuple[AnyRow, Joining]],
) -> None:
    """Places follow each other in the order in which people came; in a draw that is not closed, there are none yet."""
    now_ms = await now_of(connection, use.database)
    placed = row.seed is None or row.closed_ms is not None
    last = row.places
    rows: list[dict[str, Any]] = []
    for joining in (*new, *(joining for _, joining in again)):
        last += placed
        rows.append(
            {
                "user_id": joining.user,
                "quantity": joining.quantity,
                "item_id": joining.item,
                "place": last if placed else None,
                "joined_ms": now_ms,
                "metadata": joining.metadata or None,
                "groups_told": groups_column(joining.groups),
                "person": joining.person or None,
            }
        )
    if new:
        await connection.execute(
            insert(line_entries), [{"round_id": row.round_id, **each} for each in rows[: len(new)]]
        )
    for (known, _), values in zip(again, rows[len(new) :], strict=True):
        anew = {**values, "state": STATES[EntryState.WAITING], "changed_ms": None, "reason": None}
        await connection.execute(update(line_entries).where(_e.id == known.id).values(**anew))
    await change_row(connection, row.round_id, places=last, waiting=row.waiting + len(rows))
    written = select(_e.id).where(_e.round_id == row.round_id, _e.user_id.in_([each["user_id"] for each in rows]))
    ids = list(await connection.scalars(written))
    await use.entries.line_entries(connection, EventType.ENTRY_JOINED, row, ids)
    reached("line.join.inside")


async def leave(
    connection: AsyncConnection, use: LineWriters, entry_id: int, user: str | None, reason: str | None
) -> Standing | NoEntry:
    round_id = await connection.scalar(select(_e.round_id).where(_e.id == entry_id))
    row = None if round_id is None else await lock_line(connection, round_id)
    if row is None:
        return NoEntry.UNKNOWN
    row = await close_if_due(connection, use.database, use.entries, row)
    entry = (await connection.execute(select(line_entries).where(_e.id == entry_id))).one()
    if user is not None and entry.user_id != user:
        return NoEntry.UNKNOWN
    state = STATE_OF[entry.state]
    if state in (EntryState.CALLED, EntryState.SERVED):
        return NoEntry.SERVED
    if state is EntryState.WAITING:
        values: dict[str, Any] = {"state": STATES[EntryState.LEFT], "reason": reason}
        values["changed_ms"] = await now_of(connection, use.database)
        if row.seed is not None and row.closed_ms is None:
            values["place"] = -entry_id  # and so it is not in the list when that is closed
        await connection.execute(update(line_entries).where(_e.id == entry_id).values(**values))
        await change_row(connection, row.round_id, waiting=row.waiting - 1)
        await use.entries.line_entries(connection, EventType.ENTRY_LEFT, row, [entry_id])
        if user is None:
            await note(
                connection,
                use.database,
                "entry.removed",
                entry_id,
                sale_id=row.sale_id,
                why=reason,
                before={"state": EntryState.WAITING},
                after={"state": EntryState.LEFT},
            )
    return (await read_standing(connection, entry_id)) or NoEntry.UNKNOWN


async def read_standing(connection: AsyncConnection, entry_id: int) -> Standing | None:
    entry = (await connection.execute(select(line_entries).where(_e.id == entry_id))).one_or_none()
    if entry is None:
        return None
    line = (await connection.execute(select(lines).where(lines.c.round_id == entry.round_id))).one_or_none()
    if line is None:  # it is being pruned: the line first, then its entries
        return None
    return (await _standings(connection, to_line(line), [entry], frozenset()))[0]


async def _standings(
    connection: AsyncConnection, line: RoundLine, rows: Sequence[AnyRow], fresh: "set[str] | frozenset[str]"
) -> list[Standing]:
    """Whoever has just come is behind all others, so nobody need be counted for them."""
    entries = [to_entry(row) for row in rows]
    ahead: dict[int, int] = {}
    known = [entry for entry in entries if entry.user not in fresh and _counts(entry)]
    if known:
        first = await first_place(connection, line)
        ahead = {entry.id: await _ahead_of(connection, line, entry, first) for entry in known}
    places = sorted({entry.place for entry in entries if entry.user in fresh and entry.place is not None})
    behind = {place: line.waiting - len(places) + i for i, place in enumerate(places)}
    return [
        Standing(
            entry=entry,
            line=line,
            ahead=behind.get(entry.place or 0) if entry.user in fresh else ahead.get(entry.id),
            new=entry.user in fresh,
        )
        for entry in entries
    ]


def _counts(entry: LineEntry) -> bool:
    return entry.place is not None and entry.state.shown is EntryState.WAITING


async def first_place(connection: AsyncConnection, line: RoundLine) -> int | None:
    """The best at which somebody waits. One look into the index for each item and state."""
    found: list[int] = []
    for item in await items_of(connection, line.round_id):
        for state in _IN_LINE:
            wanted = select(func.min(_e.place)).where(
                _e.round_id == line.round_id, _e.item_id == item, _e.state == state, _e.place > 0
            )
            place = await connection.scalar(wanted)
            found += [] if place is None else [place]
    return min(found, default=None)


async def _ahead_of(connection: AsyncConnection, line: RoundLine, entry: LineEntry, first: int | None) -> int:
    """Places between the first and this one, less those that nobody waits at any more. These are counted and not
    those who wait: they are few, because the line is served from its beginning."""
    assert entry.place is not None
    if first is None or first >= entry.place:
        return 0
    gone = await connection.scalar(
        select(func.count()).where(
            _e.round_id == line.round_id,
            _e.item_id.in_(await items_of(connection, line.round_id)),
            _e.state.in_(_OUT_OF_LINE),
            _e.place > first,
            _e.place < entry.place,
        )
    )
    return entry.place - first - (gone or 0)


async def _of_users(connection: AsyncConnection, round_id: int, joinings: Sequence[Joining]) -> dict[str, AnyRow]:
    users = sorted({joining.user for joining in joinings})
    found = await connection.execute(entries_of(round_id).where(_e.user_id.in_(users)))
    return {row.user_id: row for row in found}


def _may_come_again(entry: AnyRow, line: AnyRow) -> bool:
    """Not into a draw that was closed with it: its place there is published. And not if an operator has removed it."""
    state = STATE_OF[entry.state]
    drawn = line.closed_ms is not None and (entry.place is None or 0 < entry.place <= line.entries)
    removed = state is EntryState.LEFT and entry.reason is not None
    return state in (EntryState.LEFT, EntryState.PASSED_OVER) and not drawn and not removed


async def _is_over(connection: AsyncConnection, round_id: int) -> bool:
    row = (await connection.execute(select(rounds.c.status, rounds.c.retired_ms).where(rounds.c.id == round_id))).one()
    return row.status == RoundStatus.CLOSED or row.retired_ms is not None
