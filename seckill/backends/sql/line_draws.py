"""A draw in the ledger: its list is closed once, and each entry gets a place once."""

from collections.abc import Sequence

from sqlalchemy import BigInteger, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import Database
from seckill.backends.sql.dead_letters import now_of
from seckill.backends.sql.line_joining import LineWriters
from seckill.backends.sql.line_rows import change_row, close_if_due, lock_line, round_now, to_line
from seckill.backends.sql.line_tables import line_entries, lines
from seckill.backends.sql.tables import rounds
from seckill.domain.event import EventType
from seckill.domain.line import RoundLine
from seckill.domain.sale import RoundStatus

_e = line_entries.c


class Places:
    """Gives places. The statement is made once and serves thousands of entries at a time."""

    def __init__(self, database: Database) -> None:
        self._rows = database.rows("placed", {"entry": BigInteger(), "given": BigInteger()})
        placed = self._rows.table.c
        self._give = update(line_entries).where(_e.id == placed.entry, _e.place.is_(None)).values(place=placed.given)

    async def give(self, connection: AsyncConnection, places: Sequence[tuple[int, int]]) -> None:
        await connection.execute(self._give, self._rows.bind(places))


async def draws_due(connection: AsyncConnection, database: Database) -> list[RoundLine]:
    wanted = (
        select(lines)
        .join(rounds, rounds.c.id == lines.c.round_id)
        .where(lines.c.seed.is_not(None), lines.c.drawn_ms.is_(None), rounds.c.retired_ms.is_(None))
        .where(rounds.c.begins_ms <= database.now_ms)
        .where(or_(rounds.c.status != RoundStatus.CLOSED, lines.c.closed_ms.is_not(None)))
        .order_by(lines.c.round_id)
    )
    return [to_line(row) for row in await connection.execute(wanted)]


async def close_list(connection: AsyncConnection, use: LineWriters, round_id: int) -> RoundLine | None:
    row = await lock_line(connection, round_id)
    if row is None:
        return None
    round_ = await round_now(connection, use.database, round_id)
    row = await close_if_due(connection, use.entries, row, round_)
    return None if row.closed_ms is None else to_line(row)


async def listed(connection: AsyncConnection, line: RoundLine, after: str, count: int) -> Sequence[tuple[str, int]]:
    """Reads the list in the order of names, because an index begins with them. Some entries may have places already, if
    the draw was interrupted."""
    in_draw = or_(_e.place.is_(None), _e.place.between(1, line.entries))
    wanted = select(_e.user_id, _e.id).where(_e.round_id == line.round_id, _e.user_id > after, in_draw)
    return [(row.user_id, row.id) for row in await connection.execute(wanted.order_by(_e.user_id).limit(count))]


async def unplaced(connection: AsyncConnection, round_id: int, after: int, count: int) -> Sequence[int] | None:
    wanted = select(_e.id).where(_e.round_id == round_id, _e.place.is_(None), _e.id > after)
    found = list(await connection.scalars(wanted.order_by(_e.place, _e.id).limit(count)))
    # Asked afterwards, because entries that have got a place meanwhile are missing. Places are given from the first on.
    first = select(_e.id).join(lines, lines.c.round_id == _e.round_id)
    begun = await connection.scalar(first.where(_e.round_id == round_id, _e.place == 1, lines.c.entries > 0).limit(1))
    return found if begun is None else None


async def note_list(connection: AsyncConnection, use: LineWriters, round_id: int, list_hash: str) -> None:
    """Notes the hash of the list. A published hash never changes."""
    row = await lock_line(connection, round_id)
    if row is not None and row.listed_ms is None:  # an earlier version did not note the time
        listed_ms = await now_of(connection, use.database)
        await change_row(connection, round_id, list_hash=row.list_hash or list_hash, listed_ms=listed_ms)


async def note_beacon(connection: AsyncConnection, round_id: int, number: int, value: str) -> None:
    line = await _waiting_for_beacon(connection, round_id)
    if line is not None and line.beacon_from is not None and number == line.beacon_from.number_after(_listed_ms(line)):
        await change_row(connection, round_id, beacon=value, beacon_round=number)


async def miss_beacon(connection: AsyncConnection, use: LineWriters, round_id: int) -> bool:
    line = await _waiting_for_beacon(connection, round_id)
    now_ms = await now_of(connection, use.database)
    if line is None or line.beacon_from is None or now_ms < line.beacon_from.given_up_ms(_listed_ms(line)):
        return False
    await change_row(connection, round_id, beacon_missed_ms=now_ms)
    return True


async def _waiting_for_beacon(connection: AsyncConnection, round_id: int) -> RoundLine | None:
    """Returns the line, locked, or None if it has its beacon or needs none."""
    row = await lock_line(connection, round_id)
    line = None if row is None else to_line(row)
    return line if line is not None and line.listed_ms is not None and line.waits_for_beacon else None


def _listed_ms(line: RoundLine) -> int:
    assert line.listed_ms is not None
    return line.listed_ms


async def mark_drawn(connection: AsyncConnection, use: LineWriters, round_id: int) -> None:
    row = await lock_line(connection, round_id)
    if row is None or row.drawn_ms is not None:
        return
    await change_row(connection, round_id, drawn_ms=await now_of(connection, use.database))
    facts = {"entries": row.entries, "list_hash": row.list_hash, "seed": row.seed, "beacon": row.beacon}
    if row.beacon_from is not None:
        facts |= {"beacon_round": row.beacon_round, "beacon_missed": row.beacon_missed_ms is not None}
    await use.entries.other(connection, EventType.LINE_DRAWN, row.sale_id, round_id, facts)
