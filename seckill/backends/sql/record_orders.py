"""Writing admitted orders: one transaction for a whole batch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Insert,
    Integer,
    String,
    bindparam,
    case,
    insert,
    literal,
    null,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database, NewOrders, Rows
from seckill.backends.sql.tables import order_events, orders, rounds, sales
from seckill.domain.admission import Admission
from seckill.domain.order import OrderState, States
from seckill.errors import EpochOver, LedgerRefused
from seckill.failpoints import reached
from seckill.ports.ledger import Recorded

_CAUSE = "recorded"

# In the order of the columns of `batch`: the number, the content that a repeat must have as well, and the time.
_Row: TypeAlias = tuple[int, int, str, int, int, str, int, int]


class Recording:
    """The statements, made once; `run` executes them in the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._batch = database.rows(
            "batch",
            {
                "id": BigInteger(),
                "round_id": BigInteger(),
                "user_id": String(),
                "quantity": Integer(),
                "slot": Integer(),
                "request_id": String(),
                "epoch": Integer(),
                "created_ms": BigInteger(),
            },
        )
        # Selected separately, the time is computed once and not for every row.
        now_ms = select(database.now_ms).scalar_subquery()
        self._insert_orders = database.insert_orders(_new_orders(self._batch, now_ms), _events_of)
        self._select_orders = select(orders).where(database.among(orders.c.id, "numbers"))
        units = bindparam("units", type_=BigInteger)
        self._take_units = (
            update(rounds)
            .where(rounds.c.id == bindparam("round"), rounds.c.epoch == bindparam("of_epoch"))
            .where(rounds.c.sold + units <= rounds.c.total, rounds.c.retired_ms.is_(None))
            .values(sold=rounds.c.sold + units, written=rounds.c.written + units)
        )

    async def run(self, connection: AsyncConnection, admissions: Sequence[Admission]) -> Recorded:
        rows = _distinct(admissions)
        new = await self._insert_orders.run(connection, self._batch.bind(rows))
        written = sum(group.orders for group in new)
        if written == len(rows):
            states = _states(rows, {group.round_id: group.state for group in new})
        else:
            states = await self._compare(connection, rows)
        # Last, because every worker that writes orders of the round waits for its row, from here to the commit.
        await self._count(connection, new)
        reached("ledger.record.inside")
        return Recorded(new=written, repeated=len(admissions) - written, states=states)

    async def _compare(self, connection: AsyncConnection, rows: Sequence[_Row]) -> States:
        """The states of orders of which some were there already, provided that they are the same orders."""
        found = await connection.execute(self._select_orders, {"numbers": [number for number, *_ in rows]})
        present: Mapping[int, AnyRow] = {row.id: row for row in found}
        states: dict[str, list[int]] = {}
        for number, *content, _ in rows:
            row = present.get(number)
            if row is None:  # neither there nor inserted: nothing to join it with
                raise LedgerRefused(f"Order {number} is of an unknown round, {content[0]}.")
            *same, epoch = content
            # A rebuild may have kept the order: then it was written under a later epoch than that of its entry.
            if same != [row.round_id, row.user_id, row.quantity, row.slot, row.request_id] or epoch > row.epoch:
                raise LedgerRefused(f"Order {number} is in the ledger already, with different content.")
            states.setdefault(row.state, []).append(number)
        return states

    async def _count(self, connection: AsyncConnection, new: Iterable[NewOrders]) -> None:
        """Round after round, always in the same order, so that no two workers wait for each other."""
        for group in sorted(new):
            taken = await connection.execute(
                self._take_units, {"round": group.round_id, "of_epoch": group.epoch, "units": group.units}
            )
            if taken.rowcount != 1:
                raise await _why_not(connection, group)


def _distinct(admissions: Sequence[Admission]) -> list[_Row]:
    """In the order of the numbers, so that no two batches wait for each other over those that both have."""
    rows = sorted(
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
    if "\0" in "".join([row[2] + row[5] for row in rows]):  # PostgreSQL refuses it, SQLite drops what follows it
        number = next(row[0] for row in rows if "\0" in row[2] + row[5])
        raise LedgerRefused(f"Order {number} has a NUL character in its text.")
    distinct: dict[int, _Row] = {row[0]: row for row in rows}
    if len(distinct) == len(rows):
        return rows
    for row in rows:
        if row[:-1] != distinct[row[0]][:-1]:
            raise LedgerRefused(f"Order {row[0]} is twice in one batch, with different content.")
    return list(distinct.values())


def _states(rows: Sequence[_Row], of_round: Mapping[int, str]) -> States:
    states: dict[str, list[int]] = {state: [] for state in of_round.values()}
    for row in rows:
        states[of_round[row[1]]].append(row[0])
    return states


def _new_orders(batch: Rows, now_ms: ColumnElement[int]) -> AnySelect:
    new = batch.table.c
    free = sales.c.price_cents == 0
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
            (sales.c.price_cents * new.quantity).label("price_cents"),
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


async def _why_not(connection: AsyncConnection, new: NewOrders) -> LedgerRefused:
    found = await connection.execute(select(rounds).where(rounds.c.id == new.round_id))
    row = found.one()
    if row.epoch != new.epoch:
        return EpochOver(f"Round {new.round_id} is in epoch {row.epoch}, and orders of epoch {new.epoch} are void.")
    if row.retired_ms is not None:
        return LedgerRefused(f"Round {new.round_id} has been over for long, and nothing is written to it any more.")
    return LedgerRefused(
        f"Round {new.round_id} is sold out: {row.sold} of {row.total} units are sold, {new.units} more cannot be."
    )
