"""Writes admitted orders: one transaction for a whole batch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Insert,
    Integer,
    String,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import TypeEngine

from seckill.backends.sql.database import AnyRow, AnySelect, Database, NewOrders, OrderRow, Rows, item_of, kind_of
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.tables import items, order_events, orders, round_items, rounds, sales
from seckill.backends.sql.voucher_gifts import VoucherGifts
from seckill.domain.admission import Admission
from seckill.domain.item import NO_ITEM
from seckill.domain.order import OrderState, States
from seckill.errors import EpochOver, LedgerRefused
from seckill.failpoints import reached
from seckill.ports.ledger import Recorded

_CAUSE = "recorded"

# As in `OrderRow`: the number, the content that a repeat must have as well, and the time. An item is part of the
# content.
_COLUMNS: Mapping[str, TypeEngine[Any]] = {
    "id": BigInteger(),
    "round_id": BigInteger(),
    "user_id": String(),
    "quantity": Integer(),
    "slot": Integer(),
    "request_id": String(),
    "epoch": Integer(),
    "created_ms": BigInteger(),
}


class Recording:
    """The statements, made once; `run` executes them in the caller's transaction.

    A batch with items has a statement of its own, so that other batches cost no more because of them."""

    def __init__(self, database: Database, entries: FeedEntries, gifts: VoucherGifts) -> None:
        self._database = database
        self._gifts = gifts
        self._batch = database.rows("batch", _COLUMNS)
        self._batch_with_items = database.rows("batch", {**_COLUMNS, "item_id": BigInteger()})
        # In a separate SELECT the time is computed once and not for every row.
        now_ms = select(database.now_ms).scalar_subquery()
        self._insert_orders = database.insert_orders(_new_orders(self._batch, now_ms), _events_of, entries)
        self._insert_with_items = database.insert_orders(
            _new_orders_with_items(self._batch_with_items, now_ms), _events_of, entries
        )
        self._select_orders = select(orders).where(database.among(orders.c.id, "numbers"))
        units = bindparam("units", type_=BigInteger)
        take_units = (
            update(rounds)
            .where(rounds.c.id == bindparam("round"), rounds.c.epoch == bindparam("of_epoch"))
            .where(rounds.c.sold + units <= rounds.c.total, rounds.c.retired_ms.is_(None))
            .values(sold=rounds.c.sold + units, written=rounds.c.written + units)
        )
        # Orders of a round with items must name one, and those of any other round must not.
        self._take_units = take_units.where(rounds.c.item_count == 0)
        self._take_units_of_items = take_units.where(rounds.c.item_count > 0)
        self._take_item = (
            update(round_items)
            .where(round_items.c.round_id == bindparam("round"), round_items.c.item_id == bindparam("item"))
            .where(round_items.c.sold + units <= round_items.c.total)
            .values(sold=round_items.c.sold + units)
        )

    async def run(self, connection: AsyncConnection, admissions: Sequence[Admission]) -> Recorded:
        return await self._database.together(connection, lambda there: self._write(there, admissions))

    async def _write(self, connection: AsyncConnection, admissions: Sequence[Admission]) -> Recorded:
        if any(map(_item, admissions)):
            rows = _distinct(admissions, with_items=True)
            new = await self._insert_with_items.run(connection, self._batch_with_items.bind(rows), rows)
        else:
            rows = _distinct(admissions, with_items=False)
            new = await self._insert_orders.run(connection, self._batch.bind(rows), rows)
        written = sum(group.orders for group in new)
        if written == len(rows):
            states = _states(rows, {(group.round_id, group.item): group.state for group in new})
        else:
            states = await self._compare(connection, rows)
        await note_more(connection, admissions)
        for round_id in sorted({group.round_id for group in new if group.state == OrderState.PAID}):
            await self._gifts.give_to_new(connection, round_id, [row[0] for row in rows if row[1] == round_id])
        # Comes last, because from here to the commit every worker that writes orders of the round waits for its row.
        await self._count(connection, new)
        reached("ledger.record.inside")
        return Recorded(new=written, repeated=len(admissions) - written, states=states)

    async def _compare(self, connection: AsyncConnection, rows: Sequence[OrderRow]) -> States:
        """Returns the orders' states when some of them existed already, after checking that these are the same
        orders."""
        found = await connection.execute(self._select_orders, {"numbers": [number for number, *_ in rows]})
        present: Mapping[int, AnyRow] = {row.id: row for row in found}
        states: dict[str, list[int]] = {}
        for each in rows:
            number, *same, epoch, item = *each[:7], item_of(each)
            row = present.get(number)
            if row is None:  # neither existing nor inserted: it has no row to join with
                of_item = f" or item, {item}" if item else ""
                raise LedgerRefused(f"Order {number} belongs to an unknown round, {each[1]}{of_item}.")
            is_same = same == [row.round_id, row.user_id, row.quantity, row.slot, row.request_id]
            # A rebuild may have kept the order and written it under a later epoch than that of its entry.
            if not is_same or item != (row.item_id or NO_ITEM) or epoch > row.epoch:
                raise LedgerRefused(f"Order {number} is in the ledger already, with different content.")
            states.setdefault(row.state, []).append(number)
        return states

    async def _count(self, connection: AsyncConnection, new: Iterable[NewOrders]) -> None:
        """Counts round after round, always in the same order, so that no two workers wait for each other."""
        counted: dict[tuple[int, int], Counter[int]] = {}
        for group in new:
            counted.setdefault((group.round_id, group.epoch), Counter())[group.item] += group.units
        for (round_id, epoch), of_items in sorted(counted.items()):
            take_units = self._take_units if NO_ITEM in of_items else self._take_units_of_items
            units = of_items.total()
            taken = await connection.execute(take_units, {"round": round_id, "of_epoch": epoch, "units": units})
            if taken.rowcount != 1:
                raise await _why_not(connection, round_id, epoch, units)
            for item, units_of_item in sorted(of_items.items()) if NO_ITEM not in of_items else ():
                wanted = {"round": round_id, "item": item, "units": units_of_item}
                if (await connection.execute(self._take_item, wanted)).rowcount != 1:
                    raise LedgerRefused(f"Item {item} of round {round_id} does not have {units_of_item} units left.")


# The first metadata of an order stays.
_NOTE_METADATA = (
    update(orders)
    .where(orders.c.id == bindparam("number", type_=BigInteger), orders.c.metadata.is_(None))
    .values(metadata=bindparam("said"))
)


_NOTE_PERSON = (
    update(orders).where(orders.c.id == bindparam("number", type_=BigInteger)).values(person=bindparam("bought_as"))
)


_NOTE_TRACE = (
    update(orders)
    .where(orders.c.id == bindparam("number", type_=BigInteger), orders.c.trace.is_(None))
    .values(trace=bindparam("traced_under"))
)


async def note_more(connection: AsyncConnection, admissions: Sequence[Admission]) -> None:
    """Writes metadata, persons and traces in statements of their own, so that orders without any cost no more because
    of them."""
    noted = [{"number": int(each.number), "said": each.metadata} for each in admissions if each.metadata]
    if noted:
        await connection.execute(_NOTE_METADATA, noted)
    persons = [{"number": int(each.number), "bought_as": each.person} for each in admissions if each.person]
    if persons:
        await connection.execute(_NOTE_PERSON, persons)
    traces = [{"number": int(each.number), "traced_under": each.trace} for each in admissions if each.trace]
    if traces:
        await connection.execute(_NOTE_TRACE, traces)


_item = attrgetter("item")


def _distinct(admissions: Sequence[Admission], *, with_items: bool) -> list[OrderRow]:
    """Returns each order once, sorted by number, so that no two batches with common orders wait for each other."""
    rows: list[OrderRow] = sorted(
        [
            (
                int(each.number),
                each.round_id,
                each.user,
                each.quantity,
                each.slot,
                each.request_id,
                each.epoch,
                each.admitted_ms,
            )
            for each in admissions
        ]
    )
    if with_items:
        item_of = {int(each.number): each.item for each in admissions}
        rows = [(*row, item_of[row[0]]) for row in rows]
    if "\0" in "".join([row[2] + row[5] for row in rows]):  # PostgreSQL refuses NUL, and SQLite drops the text after it
        number = next(row[0] for row in rows if "\0" in row[2] + row[5])
        raise LedgerRefused(f"Order {number} has a NUL character in its text.")
    distinct: dict[int, OrderRow] = {row[0]: row for row in rows}
    if len(distinct) == len(rows):
        return rows
    if len({(int(each.number), each.item) for each in admissions}) > len(distinct):
        raise LedgerRefused("An order is twice in one batch, with different items.")
    for row in rows:
        if row[:7] != distinct[row[0]][:7]:
            raise LedgerRefused(f"Order {row[0]} is twice in one batch, with different content.")
    return list(distinct.values())


def _states(rows: Sequence[OrderRow], of_round: Mapping[tuple[int, int], str]) -> States:
    states: dict[str, list[int]] = {state: [] for state in of_round.values()}
    for kind, group in groupby(rows, kind_of(rows)):  # they mostly come together, so there are few groups
        round_id, _, *item = kind
        states[of_round[round_id, item[0] if item else NO_ITEM]].extend([row[0] for row in group])
    return states


def _new_orders_with_items(batch: Rows, now_ms: ColumnElement[int]) -> AnySelect:
    """Selects new orders, which may include some without an item. An order with another sale's item is left out."""
    item = batch.table.c.item_id
    return (
        _new_orders(batch, now_ms, func.coalesce(items.c.price_cents, sales.c.price_cents))
        .add_columns(items.c.id.label("item_id"))
        .outerjoin(items, and_(items.c.id == item, items.c.sale_id == rounds.c.sale_id))
        .where(or_(item == NO_ITEM, items.c.id.is_not(None)))
    )


def _new_orders(
    batch: Rows, now_ms: ColumnElement[int], price_cents: ColumnElement[int] = sales.c.price_cents
) -> AnySelect:
    new = batch.table.c
    free = price_cents == 0
    return (
        select(
            new.id,
            new.round_id,
            rounds.c.sale_id,
            new.user_id,
            new.quantity,
            case((free, literal(OrderState.PAID)), else_=literal(OrderState.UNPAID)).label("state"),
            new.slot.label("active_slot"),
            new.slot,
            new.request_id,
            new.epoch,
            (price_cents * new.quantity).label("price_cents"),
            sales.c.currency,
            new.created_ms,
            now_ms.label("recorded_ms"),
            case((free, null()), else_=now_ms + sales.c.pay_within_s * literal(1000, BigInteger)).label("expires_ms"),
            case((free, now_ms), else_=null()).label("paid_ms"),
        )
        .select_from(batch.table)
        .join(rounds, rounds.c.id == new.round_id)
        .join(sales, sales.c.id == rounds.c.sale_id)
        .where(true())  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's
        .order_by(new.id)
    )


def _events_of(written: FromClause) -> Insert:
    happened = select(
        written.c.id.label("order_id"),
        literal(OrderState.QUEUED).label("from_state"),
        written.c.state.label("to_state"),
        written.c.recorded_ms.label("at_ms"),
        literal(_CAUSE).label("cause"),
    )
    return insert(order_events).from_select(happened.selected_columns.keys(), happened)


async def _why_not(connection: AsyncConnection, round_id: int, epoch: int, units: int) -> LedgerRefused:
    found = await connection.execute(select(rounds).where(rounds.c.id == round_id))
    row = found.one()
    if row.epoch != epoch:
        return EpochOver(f"Round {round_id} is in epoch {row.epoch}, and orders of epoch {epoch} are void.")
    if row.retired_ms is not None:
        return LedgerRefused(f"Round {round_id} has been over for long, and nothing is written to it any more.")
    if row.sold + units <= row.total:
        return LedgerRefused(f"Round {round_id} has {row.item_count} items, and an order says otherwise.")
    return LedgerRefused(
        f"Round {round_id} is sold out: {row.sold} of {row.total} units are sold, {units} more cannot be."
    )
