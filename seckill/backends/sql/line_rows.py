"""Rows of lines and entries, and the lock that all changes of a line begin with."""

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.line_tables import STATE_OF, line_entries, lines
from seckill.backends.sql.tables import LongText, round_items, rounds
from seckill.domain.beacon import BeaconSource
from seckill.domain.draw import SEED_BYTES
from seckill.domain.event import EventType
from seckill.domain.item import NO_ITEM
from seckill.domain.line import LineEntry, LineOrder, LineRules, RoundLine
from seckill.domain.order_number import OrderNumber
from seckill.failpoints import reached

_source = msgspec.json.Decoder(BeaconSource)
_groups = msgspec.json.Decoder(tuple[str, ...])


async def insert_line(connection: AsyncConnection, sale_id: int, ordinal: int, rules: LineRules) -> None:
    """Inserts the line of a round that is being made. The seed exists before there can be an entry."""
    facts = select(
        rounds.c.id,
        rounds.c.sale_id,
        literal(rules.order.value).label("order_by"),
        literal(secrets.token_hex(SEED_BYTES) if rules.draws else None).label("seed"),
        literal(int(rules.beacon)).label("wants_beacon"),
        literal(rules.serve_per_s).label("serve_per_s"),
        literal(None if rules.beacon_from is None else msgspec.json.encode(rules.beacon_from).decode(), LongText).label(
            "beacon_from"
        ),
    ).where(rounds.c.sale_id == sale_id, rounds.c.ordinal == ordinal)
    columns = ["round_id", *list(facts.selected_columns.keys())[1:]]
    await connection.execute(insert(lines).from_select(columns, facts))


def to_line(row: AnyRow) -> RoundLine:
    return RoundLine(
        round_id=row.round_id,
        sale_id=row.sale_id,
        order=LineOrder(row.order_by),
        seed=row.seed,
        wants_beacon=bool(row.wants_beacon),
        beacon=row.beacon,
        beacon_from=None if row.beacon_from is None else _source.decode(row.beacon_from),
        beacon_round=row.beacon_round,
        beacon_missed_ms=row.beacon_missed_ms,
        listed_ms=row.listed_ms,
        closed_ms=row.closed_ms,
        entries=row.entries,
        list_hash=row.list_hash,
        drawn_ms=row.drawn_ms,
        places=row.places,
        waiting=row.waiting,
        served=row.served,
        paused=bool(row.paused),
        serve_per_s=row.serve_per_s,
    )


def to_entry(row: AnyRow) -> LineEntry:
    return LineEntry(
        id=row.id,
        round_id=row.round_id,
        user=row.user_id,
        quantity=row.quantity,
        item=row.item_id,
        state=STATE_OF[row.state],
        place=row.place if row.place is not None and row.place > 0 else None,
        joined_ms=row.joined_ms,
        changed_ms=row.changed_ms,
        order_number=None if row.order_id is None else OrderNumber.from_int(row.order_id),
        reason=row.reason,
        metadata=row.metadata or "",
        groups=None if row.groups_told is None else _groups.decode(row.groups_told),
        person=row.person or "",
    )


def groups_column(groups: tuple[str, ...]) -> str:
    return msgspec.json.encode(groups).decode()


async def lock_line(connection: AsyncConnection, round_id: int) -> AnyRow | None:
    """Returns the line's row, locked until the commit, or None if the round has no line."""
    found = await connection.execute(select(lines).where(lines.c.round_id == round_id).with_for_update())
    return found.one_or_none()


async def round_now(connection: AsyncConnection, database: Database, round_id: int) -> AnyRow:
    """Returns the round of a locked line, with the time. It is read under the lock, so that no one gets into a draw's
    list after it was closed."""
    c = rounds.c
    wanted = select(database.now_ms.label("now_ms"), c.begins_ms, c.status, c.retired_ms).where(c.id == round_id)
    return (await connection.execute(wanted)).one()


async def close_if_due(connection: AsyncConnection, entries: FeedEntries, row: AnyRow, round_: AnyRow) -> AnyRow:
    """Closes the list if its time has come. Returns the locked row."""
    if row.seed is None or row.closed_ms is not None or round_.now_ms < round_.begins_ms:
        return row
    closed = {"closed_ms": round_.now_ms, "entries": row.waiting, "places": row.waiting}
    await change_row(connection, row.round_id, **closed)
    await entries.other(connection, EventType.LINE_CLOSED, row.sale_id, row.round_id, {"entries": row.waiting})
    reached("line.close.inside")
    return (await connection.execute(select(lines).where(lines.c.round_id == row.round_id))).one()


async def change_row(connection: AsyncConnection, round_id: int, **values: Any) -> None:
    await connection.execute(update(lines).where(lines.c.round_id == round_id).values(**values))


async def items_of(connection: AsyncConnection, round_id: int) -> Sequence[int]:
    """Returns the items, with which the index of waiting entries begins."""
    found = await connection.scalars(select(round_items.c.item_id).where(round_items.c.round_id == round_id))
    return list(found) or [NO_ITEM]


def entries_of(round_id: int) -> Any:
    return select(line_entries).where(line_entries.c.round_id == round_id)
