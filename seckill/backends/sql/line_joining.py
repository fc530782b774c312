"""Joining and leaving a line. One transaction writes all requests that have come meanwhile, under the lock of the
line's row."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import BigInteger, Integer, String, Text, and_, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import TypeEngine

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.line_rows import (
    change_row,
    close_if_due,
    groups_column,
    items_of,
    lock_line,
    round_now,
    to_entry,
    to_line,
)
from seckill.backends.sql.line_tables import STATE_OF, STATES, line_entries, lines
from seckill.backends.sql.operator_record import note
from seckill.domain.event import EventType
from seckill.domain.line import EntryState, LineEntry, RoundLine, may_come_again
from seckill.domain.sale import RoundStatus
from seckill.failpoints import reached
from seckill.ports.line import Joining, NoEntry, Standing

_e = line_entries.c
_IN_LINE = (STATES[EntryState.WAITING], STATES[EntryState.CALLED])
_OUT_OF_LINE = [number for number in STATE_OF if number not in _IN_LINE]
_OF = bindparam("of", type_=BigInteger)
# The columns of new entries. Not every database accepts NULL in such rows, so a missing value is `_NOTHING`.
_NEW: dict[str, TypeEngine[Any]] = {
    "user_id": String(128),
    "quantity": Integer(),
    "item_id": BigInteger(),
    "groups_told": Text(),
    "place": BigInteger(),
    "metadata": Text(),
    "person": String(128),
}
_NOTHING: dict[str, int | str] = {"place": 0, "metadata": "", "person": ""}
_MOVE = (
    update(line_entries)
    .where(_e.id == bindparam("entry", type_=BigInteger))
    .values(place=bindparam("to", type_=BigInteger))
)


@dataclass(frozen=True, slots=True)
class LineWriters:
    database: Database
    entries: FeedEntries


class Joins:
    """The statements, made once. They are the same for any number of buyers."""

    def __init__(self, use: LineWriters) -> None:
        self._use = use
        self._known = select(line_entries).where(_e.round_id == _OF, use.database.among(_e.user_id, "asked"))
        self._new = use.database.rows("new", _NEW)
        new = self._new.table.c
        source = select(
            _OF.label("round_id"),
            bindparam("at_ms", type_=BigInteger).label("joined_ms"),
            *[new[name] for name in ("user_id", "quantity", "item_id", "groups_told")],
            *[func.nullif(new[name], nothing).label(name) for name, nothing in _NOTHING.items()],
        ).where(new.item_id >= 0)  # SQLite takes the ON of ON CONFLICT for a join's if there is no WHERE
        key = ["round_id", "user_id"]
        self._insert = use.database.insert_missing(line_entries, key, source, returning=["id", "user_id"])

    async def join(
        self, connection: AsyncConnection, round_id: int, joinings: Sequence[Joining]
    ) -> Sequence[Standing] | NoEntry:
        row = await lock_line(connection, round_id)
        if row is None:
            return NoEntry.NO_LINE
        round_ = await round_now(connection, self._use.database, round_id)
        if round_.status == RoundStatus.CLOSED or round_.retired_ms is not None:
            return NoEntry.OVER
        row = await close_if_due(connection, self._use.entries, row, round_)
        # if a buyer asks twice, the first request counts
        wanted = {joining.user: joining for joining in reversed(joinings)}
        fresh, known = await self._write(connection, row, round_.now_ms, list(reversed(wanted.values())))
        line = to_line(row)
        if fresh:
            places = line.places + (len(fresh) if _gives_places(row) else 0)
            line = replace(line, places=places, waiting=line.waiting + len(fresh))
            await change_row(connection, round_id, places=line.places, waiting=line.waiting)
            quantities = {entry.id: entry.quantity for entry in fresh.values()}
            await self._use.entries.joined(connection, row, quantities)
            reached("line.join.inside")
        entries = [fresh.get(each.user) or to_entry(known[each.user]) for each in joinings]
        return await _standings(connection, line, entries, fresh.keys())

    async def _write(
        self, connection: AsyncConnection, row: AnyRow, now_ms: int, asked: Sequence[Joining]
    ) -> tuple[dict[str, LineEntry], dict[str, AnyRow]]:
        """Writes new entries, and changes the rows of buyers who have been in the line before. Nearly all are new, so
        the insert comes first, and only those that it skipped are looked up. Places follow the order in which buyers
        came; in a draw that is not closed there are none yet."""
        places = range(row.places + 1, row.places + 1 + len(asked)) if _gives_places(row) else [0] * len(asked)
        rows = [
            (each.user, each.quantity, each.item, groups_column(each.groups), place, each.metadata, each.person)
            for each, place in zip(asked, places, strict=True)
        ]
        values = {"of": row.round_id, "at_ms": now_ms, **self._new.bind(rows)}
        ids = {user: number for number, user in await self._insert.run(connection, values)}
        known: dict[str, AnyRow] = {}
        if len(ids) < len(asked):
            missing = {"of": row.round_id, "asked": [each.user for each in asked if each.user not in ids]}
            known = {each.user_id: each for each in await connection.execute(self._known, missing)}
        again = [each for each in asked if each.user in known and _may_come_again(known[each.user], row)]
        come = [each for each in asked if each.user in ids] + again
        ids |= {each.user: known[each.user].id for each in again}
        written = {
            each.user: _entry(ids[each.user], row, each, place or None, now_ms)
            for each, place in zip(come, places, strict=False)
        }
        given = dict(zip([each.user for each in asked], places, strict=True))
        if moved := [
            {"entry": written[each.user].id, "to": written[each.user].place}
            for each in come
            if each.user not in known and given[each.user] != (written[each.user].place or 0)
        ]:
            await connection.execute(_MOVE, moved)  # into the gaps left by those who had an entry already
        for each in again:
            anew = _columns(written[each.user])
            await connection.execute(update(line_entries).where(_e.id == written[each.user].id).values(**anew))
        return written, known

    async def standings_of(self, connection: AsyncConnection, asked: Sequence[tuple[int, str]]) -> list[Standing]:
        """Returns the standings that exist, with one query for all who ask about the same line."""
        users: defaultdict[int, list[str]] = defaultdict(list)
        for round_id, user in asked:
            users[round_id].append(user)
        rows: list[AnyRow] = []
        for round_id, of_round in users.items():
            rows += await connection.execute(self._known, {"of": round_id, "asked": of_round})
        return await _in_their_lines(connection, rows)


def _entry(number: int, line: AnyRow, joining: Joining, place: int | None, now_ms: int) -> LineEntry:
    return LineEntry(
        id=number,
        round_id=line.round_id,
        user=joining.user,
        quantity=joining.quantity,
        item=joining.item,
        place=place,
        joined_ms=now_ms,
        metadata=joining.metadata,
        groups=joining.groups,
        person=joining.person,
    )


def _gives_places(line: AnyRow) -> bool:
    return line.seed is None or line.closed_ms is not None


def _columns(entry: LineEntry) -> dict[str, Any]:
    """The columns that change when a buyer joins again."""
    return {
        "quantity": entry.quantity,
        "item_id": entry.item,
        "place": entry.place,
        "joined_ms": entry.joined_ms,
        "metadata": entry.metadata or None,
        "groups_told": groups_column(entry.groups or ()),
        "person": entry.person or None,
        "state": STATES[entry.state],
        "changed_ms": None,
        "reason": None,
    }


async def leave(
    connection: AsyncConnection, use: LineWriters, entry_id: int, user: str | None, reason: str | None
) -> Standing | NoEntry:
    round_id = await connection.scalar(select(_e.round_id).where(_e.id == entry_id))
    row = None if round_id is None else await lock_line(connection, round_id)
    if row is None:
        return NoEntry.UNKNOWN
    round_ = await round_now(connection, use.database, row.round_id)
    row = await close_if_due(connection, use.entries, row, round_)
    entry = (await connection.execute(select(line_entries).where(_e.id == entry_id))).one()
    if user is not None and entry.user_id != user:
        return NoEntry.UNKNOWN
    state = STATE_OF[entry.state]
    if state in (EntryState.CALLED, EntryState.SERVED):
        return NoEntry.SERVED
    if state is EntryState.WAITING:
        values: dict[str, Any] = {"state": STATES[EntryState.LEFT], "reason": reason}
        values["changed_ms"] = round_.now_ms
        if row.seed is not None and row.closed_ms is None:
            values["place"] = -entry_id  # so it will not be in the list
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
    return next(iter(await read_standings(connection, [entry_id])), NoEntry.UNKNOWN)


async def read_standings(connection: AsyncConnection, entry_ids: Sequence[int]) -> list[Standing]:
    """Returns the standings of the entries that exist."""
    rows = await connection.execute(select(line_entries).where(_e.id.in_(entry_ids)))
    return await _in_their_lines(connection, rows)


async def _in_their_lines(connection: AsyncConnection, rows: Iterable[AnyRow]) -> list[Standing]:
    entries: defaultdict[int, list[LineEntry]] = defaultdict(list)
    for row in rows:
        entries[row.round_id].append(to_entry(row))
    found: list[Standing] = []
    # An entry without a line is being pruned: the line is deleted first, then its entries.
    for line in (await connection.execute(select(lines).where(lines.c.round_id.in_(entries)))).all():
        found += await _standings(connection, to_line(line), entries[line.round_id], ())
    return found


async def _standings(
    connection: AsyncConnection, line: RoundLine, entries: Sequence[LineEntry], fresh: Collection[str]
) -> list[Standing]:
    """Makes standings. A buyer who has just joined is behind all others, so no counting is needed."""
    known = {entry.place for entry in entries if entry.user not in fresh and entry.state.shown is EntryState.WAITING}
    ahead = await _ahead_of(connection, line, sorted(place for place in known if place is not None))
    places = sorted({entry.place for entry in entries if entry.user in fresh and entry.place is not None})
    behind = {place: line.waiting - len(places) + i for i, place in enumerate(places)}
    return [
        Standing(
            entry=entry,
            line=line,
            ahead=behind.get(entry.place or 0) if entry.user in fresh else ahead.get(entry.place or 0),
            new=entry.user in fresh,
        )
        for entry in entries
    ]


async def first_place(connection: AsyncConnection, line: RoundLine) -> int | None:
    """Returns the best place at which a buyer waits, with one look into the index for each item and state."""
    found: list[int] = []
    for item in await items_of(connection, line.round_id):
        for state in _IN_LINE:
            wanted = select(func.min(_e.place)).where(
                _e.round_id == line.round_id, _e.item_id == item, _e.state == state, _e.place > 0
            )
            place = await connection.scalar(wanted)
            found += [] if place is None else [place]
    return min(found, default=None)


async def _ahead_of(connection: AsyncConnection, line: RoundLine, places: Sequence[int]) -> dict[int, int]:
    """For each of these places, which are sorted and at which buyers wait: how many buyers are ahead. That is the
    number of places from the first one to it, less the abandoned ones. Those are counted because they are few: the line
    is served from its beginning. For many places they are read once, not counted for each."""
    first = await first_place(connection, line) if places else None
    if first is None:
        return dict.fromkeys(places, 0)
    gone_from_line = and_(
        _e.round_id == line.round_id,
        _e.item_id.in_(await items_of(connection, line.round_id)),
        _e.state.in_(_OUT_OF_LINE),
        _e.place > first,
        _e.place < places[-1],
    )
    if len(places) == 1:
        gone = await connection.scalar(select(func.count()).where(gone_from_line))
        return {places[0]: max(0, places[0] - first - (gone or 0))}
    empty = sorted(await connection.scalars(select(_e.place).where(gone_from_line)))
    return {place: max(0, place - first - bisect_left(empty, place)) for place in places}


def _may_come_again(entry: AnyRow, line: AnyRow) -> bool:
    state = STATE_OF[entry.state]
    drawn = line.closed_ms is not None and (entry.place is None or 0 < entry.place <= line.entries)
    removed = state is EntryState.LEFT and entry.reason is not None
    return may_come_again(state, drawn=drawn, removed=removed)
