"""Reads the feed: which entry comes next, and what it says."""

import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import msgspec
from sqlalchemy import BigInteger, bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.end_orders import to_order
from seckill.backends.sql.line_rows import to_entry
from seckill.backends.sql.line_tables import line_entries
from seckill.backends.sql.tables import FEED, feed, meta, order_events, orders
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.event import EventType, as_of, of_change
from seckill.domain.line import LineEntry
from seckill.domain.order import Order, OrderState
from seckill.ports.feed import CursorGone, EventFilter, FeedEvent, FeedPage, SaleEvent

# How many entries one transaction lines up. No other process lines up any meanwhile.
LINED_UP_MAX = 500
# How many entries are looked at together, and how often a reader looks further when none of them is wanted.
PORTION = 200
PORTIONS_MAX = 50
# The family of events about entries of a line, whose numbers are those of the entries.
LINE_FAMILY = "entry"


class SqlFeed:
    """Implements `seckill.ports.feed.Feed`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        waiting = select(feed.c.id, feed.c.events).where(feed.c.first_cursor.is_(None)).order_by(feed.c.id)
        self._any_waiting = waiting.limit(1)
        self._waiting = waiting.limit(LINED_UP_MAX)
        first = bindparam("first", type_=BigInteger)
        self._place = update(feed).where(feed.c.id == bindparam("entry")).values(first_cursor=first)
        self._heads = _select_heads()
        self._entries = select(feed).where(database.among(feed.c.id, "entries")).order_by(feed.c.first_cursor)
        self._orders = select(orders).where(database.among(orders.c.id, "numbers"))
        self._line_entries = select(line_entries).where(database.among(line_entries.c.id, "numbers"))
        self._changes = select(order_events).where(database.among(order_events.c.order_id, "numbers"))
        self._oldest = (
            select(feed.c.id, (feed.c.at_ms < database.now_ms - bindparam("kept_ms", type_=BigInteger)).label("is_old"))
            .where(feed.c.first_cursor.is_not(None))
            .order_by(feed.c.first_cursor)
            .limit(bindparam("count"))
        )
        self._forget = delete(feed).where(database.among(feed.c.id, "entries"))

    @to_the_end
    async def line_up(self) -> int:
        # Looks without the writers' lock, since there is usually nothing to do.
        async with reading(self._database) as connection:
            if (await connection.execute(self._any_waiting)).first() is None:
                return 0
        async with writing(self._database) as connection:
            last = await _lock_cursor(connection)
            waiting = (await connection.execute(self._waiting)).all()
            placed = []
            for entry in waiting:
                placed.append({"entry": entry.id, "first": last + 1})
                last += entry.events
            if placed:
                await connection.execute(self._place, placed)
                await connection.execute(update(meta).where(meta.c.name == FEED).values(value=str(last)))
            return len(placed)

    @to_the_end
    async def read(self, after: int | None, wanted: EventFilter, count: int) -> FeedPage | CursorGone:
        async with reading(self._database) as connection:
            newest, oldest = await _span(connection)
            start = oldest if after is None else after
            page = await self._read_on(connection, start, wanted, count)
            # Asked again after the entries were read, because some of them may have been pruned meanwhile.
            _, oldest = await _span(connection)
        if after is not None and not oldest <= after <= newest:
            return CursorGone(oldest, newest)
        return page

    @to_the_end
    async def of_sale(
        self, sale_id: int, types: Set[EventType], since_ms: int, until_ms: int, count: int
    ) -> list[SaleEvent]:
        these = (
            feed.c.sale_id == sale_id,
            feed.c.type.in_(sorted(types)),
            feed.c.at_ms.between(since_ms, until_ms - 1),
        )
        wanted = select(feed.c.type, feed.c.at_ms, feed.c.round_id, feed.c.facts).where(*these)
        async with reading(self._database) as connection:
            found = await connection.execute(wanted.order_by(feed.c.id.desc()).limit(count))
            return [
                SaleEvent(
                    type=EventType(row.type),
                    at_ms=row.at_ms,
                    round_id=row.round_id,
                    facts={} if row.facts is None else msgspec.json.decode(row.facts),
                )
                for row in found
            ]

    @to_the_end
    async def prune(self, kept_ms: int, count: int) -> int:
        async with reading(self._database) as connection:
            oldest = (await connection.execute(self._oldest, {"kept_ms": kept_ms, "count": count})).all()
        # Only the old entries before the first one to be kept: that one tells readers where the feed begins.
        old = [entry.id for entry in itertools.takewhile(lambda entry: bool(entry.is_old), oldest)]
        if not old:
            return 0
        async with writing(self._database) as connection:
            await connection.execute(self._forget, {"entries": old})
        return len(old)

    async def _read_on(self, connection: AsyncConnection, after: int, wanted: EventFilter, count: int) -> FeedPage:
        found: list[FeedEvent] = []
        for _ in range(PORTIONS_MAX):
            heads = (await connection.execute(self._heads, {"after": after})).all()
            chosen, end = _choose(heads, after, wanted, count - len(found))
            found += [event for event in await self._events(connection, chosen, wanted) if event.cursor > after]
            if len(found) >= count:
                return FeedPage(found[:count], found[count - 1].cursor)
            after = end
            if len(heads) < PORTION and end == _end(heads, after):
                break
        return FeedPage(found, after)

    async def _events(
        self, connection: AsyncConnection, entries: Sequence[int], wanted: EventFilter
    ) -> list[FeedEvent]:
        if not entries:
            return []
        rows = (await connection.execute(self._entries, {"entries": list(entries)})).all()
        numbers = {row.id: msgspec.json.decode(row.numbers, type=list[int]) for row in rows if row.numbers is not None}
        of_line = {row.id for row in rows if EventType(row.type).family == LINE_FAMILY}
        of_orders = await self._of_orders(connection, _all(numbers, [id_ for id_ in numbers if id_ not in of_line]))
        in_lines = await self._of_lines(connection, _all(numbers, of_line))
        found = []
        for row in rows:
            if row.id in of_line:
                found += [_of_line(row, place, in_lines[number]) for place, number in enumerate(numbers[row.id])]
            elif row.id in numbers:
                found += [_of_order(row, place, of_orders[number]) for place, number in enumerate(numbers[row.id])]
            else:
                found.append(_of_other(row))
        return [event for event in found if wanted.sale_id in (None, event.sale_id)]

    async def _of_orders(self, connection: AsyncConnection, numbers: set[int]) -> Mapping[int, "_OrderPast"]:
        these = {"numbers": sorted(numbers)}
        if not numbers:
            return {}
        found = {row.id: _OrderPast(row) for row in await connection.execute(self._orders, these)}
        for row in await connection.execute(self._changes, these):
            found[row.order_id].add(row)
        return found

    async def _of_lines(self, connection: AsyncConnection, numbers: set[int]) -> Mapping[int, LineEntry]:
        if not numbers:
            return {}
        found = await connection.execute(self._line_entries, {"numbers": sorted(numbers)})
        return {row.id: to_entry(row) for row in found}


class _OrderPast:
    """An order and its changes of state."""

    def __init__(self, row: AnyRow) -> None:
        self.order = to_order(row)
        self.changes: dict[EventType, AnyRow] = {}

    def add(self, change: AnyRow) -> None:
        # An order enters each state at most once.
        for type_ in of_change(OrderState(change.from_state), OrderState(change.to_state)):
            self.changes[type_] = change


def _of_order(entry: AnyRow, place: int, past: _OrderPast) -> FeedEvent:
    type_ = EventType(entry.type)
    if type_ is EventType.VOUCHER_GIVEN:
        return _of_gift(entry, place, past.order)
    change = past.changes[type_]
    return FeedEvent(
        cursor=entry.first_cursor + place,
        id=_id(entry, place),
        type=type_,
        at_ms=change.at_ms,
        sale_id=past.order.sale_id,
        round_id=past.order.round_id,
        order=as_of(past.order, OrderState(change.to_state)),
        cause=change.cause,
    )


def _of_gift(entry: AnyRow, place: int, order: Order) -> FeedEvent:
    """The event says how many codes, not which: a code is as good as money, and the feed is kept and passed on for
    weeks."""
    return FeedEvent(
        cursor=entry.first_cursor + place,
        id=_id(entry, place),
        type=EventType.VOUCHER_GIVEN,
        at_ms=entry.at_ms,
        sale_id=order.sale_id,
        round_id=order.round_id,
        facts={"order_number": int(order.number), "buyer": order.user, "codes": order.quantity},
    )


def _of_line(row: AnyRow, place: int, entry: LineEntry) -> FeedEvent:
    """The event shows the entry as it was then. Rows of earlier versions lack that, so their events show the entry as
    it is now. Metadata may be long and is only kept with the entry itself: events from before its buyer joined again
    come without it."""
    type_ = EventType(row.type)
    quantity, reason = entry.quantity, entry.reason
    if row.facts is not None:
        then = msgspec.json.decode(row.facts)
        quantity = then["quantities"].get(str(entry.id), 1)
        reason = then["reason"] if "reason" in then else then["reasons"].get(str(entry.id))
    facts: dict[str, Any] = {"entry_number": entry.id, "buyer": entry.user, "quantity": quantity}
    if type_ is EventType.ENTRY_SERVED:
        facts["order_number"] = None if entry.order_number is None else int(entry.order_number)
    elif type_ is not EventType.ENTRY_JOINED:
        facts["reason"] = reason
    if entry.metadata and row.at_ms >= entry.joined_ms:
        facts["metadata"] = msgspec.json.decode(entry.metadata)
    return FeedEvent(
        cursor=row.first_cursor + place,
        id=_id(row, place),
        type=type_,
        at_ms=row.at_ms,
        sale_id=row.sale_id,
        round_id=row.round_id,
        facts=facts,
    )


def _all(numbers: Mapping[int, Sequence[int]], ids: Iterable[int]) -> set[int]:
    return {number for id_ in ids for number in numbers[id_]}


def _of_other(entry: AnyRow) -> FeedEvent:
    return FeedEvent(
        cursor=entry.first_cursor,
        id=_id(entry, 0),
        type=EventType(entry.type),
        at_ms=entry.at_ms,
        sale_id=entry.sale_id,
        round_id=entry.round_id,
        facts=msgspec.json.decode(entry.facts),
    )


def _id(entry: AnyRow, place: int) -> str:
    """The id contains the time, because a ledger that is an older copy gives out the same ids and cursors again."""
    return f"evt_{entry.at_ms}_{entry.id}_{place}"


def _select_heads() -> AnySelect:
    """Selects the entries with a cursor after this one, in order. The first entry may have begun before it."""
    after = bindparam("after", type_=BigInteger)
    that = feed.alias("that")
    begins = select(func.coalesce(func.max(that.c.first_cursor), 0)).where(that.c.first_cursor <= after + 1)
    return (
        select(feed.c.id, feed.c.first_cursor, feed.c.events, feed.c.type, feed.c.sale_id)
        .where(feed.c.first_cursor >= begins.scalar_subquery(), feed.c.first_cursor + feed.c.events > after + 1)
        .order_by(feed.c.first_cursor)
        .limit(PORTION)
    )


def _choose(heads: Sequence[AnyRow], after: int, wanted: EventFilter, room: int) -> tuple[list[int], int]:
    """Returns the entries that may contain wanted events, until they fill the room, and the last cursor considered."""
    chosen = []
    for head in heads:
        after, before = head.first_cursor + head.events - 1, after
        if wanted.types is not None and head.type not in wanted.types:
            continue
        if wanted.sale_id is not None and head.sale_id not in (None, wanted.sale_id):
            continue
        chosen.append(head.id)
        room -= after - max(before, head.first_cursor - 1)
        if room <= 0:
            break
    return chosen, after


def _end(heads: Sequence[AnyRow], after: int) -> int:
    return heads[-1].first_cursor + heads[-1].events - 1 if heads else after


async def _span(connection: AsyncConnection) -> tuple[int, int]:
    """Returns the last cursor given out, and the one before the oldest cursor kept."""
    newest = select(meta.c.value).where(meta.c.name == FEED).scalar_subquery()
    oldest = select(func.min(feed.c.first_cursor)).scalar_subquery()
    row = (await connection.execute(select(newest.label("newest"), oldest.label("oldest")))).one()
    return int(row.newest), int(row.newest) if row.oldest is None else row.oldest - 1


async def _lock_cursor(connection: AsyncConnection) -> int:
    """Returns the last cursor given out, with its row locked until the commit, so that cursors become visible in
    order."""
    found = await connection.scalars(select(meta.c.value).where(meta.c.name == FEED).with_for_update())
    return int(found.one())
