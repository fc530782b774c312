"""Writing admitted orders: one transaction for a whole batch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import (
    BigInteger,
    ColumnElement,
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

from seckill.domain import Admission, OrderState, States
from seckill.errors import LedgerRefused
from seckill.failpoints import reached
from seckill.ledgers.database import AnyRow, AnySelect, Database, Rows
from seckill.ledgers.tables import order_events, orders, rounds, sales
from seckill.ports import Recorded

_CAUSE = "recorded"


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
        self._insert_orders = database.insert_missing(
            orders, ["id"], _new_orders(self._batch, database.now_ms), returning=("id", "state", "recorded_ms")
        )
        self._written = database.rows("written", {"id": BigInteger(), "state": String(), "at_ms": BigInteger()})
        self._insert_events = _new_events(self._written)
        self._select_orders = select(orders).where(database.among(orders.c.id, "numbers"))
        units = bindparam("units", type_=BigInteger)
        self._take_units = (
            update(rounds)
            .where(rounds.c.id == bindparam("round"), rounds.c.epoch == bindparam("of_epoch"))
            .where(rounds.c.sold + units <= rounds.c.total, rounds.c.retired_ms.is_(None))
            .values(sold=rounds.c.sold + units, written=rounds.c.written + units)
        )

    async def run(self, connection: AsyncConnection, admissions: Sequence[Admission]) -> Recorded:
        wanted = _distinct(admissions)
        batch = self._batch.bind([_row(admission) for admission in wanted.values()])
        written = await self._insert_orders.run(connection, batch)
        states: dict[int, str] = {row.id: row.state for row in written}
        present = [admission for number, admission in wanted.items() if number not in states]
        if present:
            states |= await self._compare(connection, present)
        if written:
            await connection.execute(self._insert_events, self._written.bind(written))
            # Last, because whoever writes orders of a round waits for its row, from here to the commit.
            await self._count(connection, [wanted[row.id] for row in written])
        reached("ledger.record.inside")
        return Recorded(
            new=len(written),
            repeated=len(admissions) - len(written),
            states=_by_state(states),
        )

    async def _compare(self, connection: AsyncConnection, admissions: Sequence[Admission]) -> dict[int, str]:
        """The states of orders that are there already, provided that they are the same orders."""
        numbers = [int(admission.number) for admission in admissions]
        found = await connection.execute(self._select_orders, {"numbers": numbers})
        rows: Mapping[int, AnyRow] = {row.id: row for row in found}
        for admission in admissions:
            row = rows.get(int(admission.number))
            if row is None:  # neither there nor inserted: nothing to join it with
                raise LedgerRefused(f"Order {int(admission.number)} is of an unknown round, {admission.round_id}.")
            if _content(admission) != (
                row.round_id,
                row.user_id,
                row.quantity,
                row.slot,
                row.request_id,
                row.epoch,
            ):
                raise LedgerRefused(f"Order {int(admission.number)} is in the ledger already, with different content.")
        return {number: row.state for number, row in rows.items()}

    async def _count(self, connection: AsyncConnection, new: Iterable[Admission]) -> None:
        """Round after round, in the same order for everybody, so that no two wait for each other."""
        units: Counter[tuple[int, int]] = Counter()
        for admission in new:
            units[admission.round_id, admission.epoch] += admission.quantity
        for (round_id, epoch), quantity in sorted(units.items()):
            taken = await connection.execute(
                self._take_units, {"round": round_id, "of_epoch": epoch, "units": quantity}
            )
            if taken.rowcount != 1:
                raise LedgerRefused(await _why_not(connection, round_id, epoch, quantity))


def _distinct(admissions: Sequence[Admission]) -> dict[int, Admission]:
    """In the order of the numbers, so that no two batches wait for each other over those that both have."""
    distinct: dict[int, Admission] = {}
    for admission in sorted(admissions, key=lambda admission: admission.number):
        if "\0" in admission.user + admission.request_id:  # PostgreSQL refuses it, SQLite drops what follows it
            raise LedgerRefused(f"Order {int(admission.number)} has a NUL character in its text.")
        first = distinct.setdefault(int(admission.number), admission)
        if _content(first) != _content(admission):
            raise LedgerRefused(f"Order {int(admission.number)} is twice in one batch, with different content.")
    return distinct


def _by_state(states: Mapping[int, str]) -> States:
    numbers: dict[str, list[int]] = {}
    for number, state in states.items():
        numbers.setdefault(state, []).append(number)
    return numbers


def _content(admission: Admission) -> tuple[int, str, int, int, str, int]:
    return (
        admission.round_id,
        admission.user,
        admission.quantity,
        admission.slot,
        admission.request_id,
        admission.epoch,
    )


def _row(admission: Admission) -> tuple[object, ...]:
    """In the order of the columns of `batch`."""
    return (int(admission.number), *_content(admission), admission.admitted_ms)


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


def _new_events(written: Rows) -> Insert:
    happened = select(
        written.table.c.id.label("order_id"),
        literal(OrderState.QUEUED).label("from_state"),
        written.table.c.state.label("to_state"),
        written.table.c.at_ms,
        literal(_CAUSE).label("cause"),
    )
    return insert(order_events).from_select(happened.selected_columns.keys(), happened)


async def _why_not(connection: AsyncConnection, round_id: int, epoch: int, quantity: int) -> str:
    found = await connection.execute(select(rounds).where(rounds.c.id == round_id))
    row = found.one()
    if row.epoch != epoch:
        return f"Round {round_id} is in epoch {row.epoch}, and orders of epoch {epoch} are void."
    if row.retired_ms is not None:
        return f"Round {round_id} has been over for long, and nothing is written to it any more."
    return f"Round {round_id} is sold out: {row.sold} of {row.total} units are sold, {quantity} more cannot be."
