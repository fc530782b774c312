"""How an order ends or is paid: a compare-and-set on its state, and in the same transaction what follows from it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Insert,
    ScalarSelect,
    String,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.domain import OVER, Order, OrderState, RoundRef
from seckill.failpoints import reached
from seckill.ledgers.database import AnyRow, AnySelect, Database, Statement
from seckill.ledgers.tables import dead_letters, order_events, orders, outbox, rounds
from seckill.letters import LetterState
from seckill.numbers import OrderNumber
from seckill.ports import OutboxItem, Release, Tally

RELEASE = "release"
TELL = "tell"


class Endings:
    """The statements, made once; the methods execute them in the caller's transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = database.rows(
            "changed",
            {
                "id": BigInteger(),
                "round_id": BigInteger(),
                "from_state": String(),
                "to_state": String(),
                "at_ms": BigInteger(),
            },
        )
        self._insert_events = self._events()
        self._insert_outbox = self._outbox()
        self.select_due = (
            select(orders.c.id)
            # The state stands in the text: to a parameter, PostgreSQL may fit a plan that cannot use the partial index.
            .where(
                orders.c.state == literal(OrderState.UNPAID, literal_execute=True),
                orders.c.expires_ms <= database.now_ms,
            )
            .order_by(orders.c.expires_ms)
            .limit(bindparam("count"))
        )
        # Several keepers take different ones instead of waiting for each other, where the database can do that.
        self._due = self.select_due.with_for_update(skip_locked=True)
        returned = ("id", "round_id", "quantity", "closed_ms")
        self._end = {
            to: self._compare_and_set({"state": to, "active_slot": null(), "closed_ms": database.now_ms}, returned)
            for to in OVER
        }
        self._pay = self._compare_and_set(
            {"state": OrderState.PAID, "paid_ms": database.now_ms}, ("id", "round_id", "paid_ms")
        )
        self._give_back = (
            update(rounds)
            .where(rounds.c.id == bindparam("round"))
            .values(sold=rounds.c.sold - bindparam("units", type_=BigInteger))
        )

    async def due(self, connection: AsyncConnection, count: int) -> list[int]:
        return list(await connection.scalars(self._due, {"count": count}))

    async def end(
        self, connection: AsyncConnection, numbers: Sequence[int], to: OrderState, cause: str
    ) -> list[AnyRow]:
        """From `unpaid`. Whatever somebody else has changed meanwhile is left alone and not returned."""
        ended = list(await self._end[to].run(connection, {"numbers": numbers}))
        if ended:
            await self._follow_up(
                connection,
                [(row.id, row.round_id, OrderState.UNPAID, to, row.closed_ms) for row in ended],
                RELEASE,
                cause,
            )
            units: Counter[int] = Counter()
            for row in ended:
                units[row.round_id] += row.quantity
            for round_id in sorted(units):  # in the same order for everybody, so that no two wait for each other
                await connection.execute(self._give_back, {"round": round_id, "units": units[round_id]})
            reached("ledger.end.inside")
        return ended

    async def pay(self, connection: AsyncConnection, number: int, cause: str) -> bool:
        paid = await self._pay.run(connection, {"numbers": [number]})
        if not paid:
            return False
        [row] = paid
        await self._follow_up(
            connection, [(row.id, row.round_id, OrderState.UNPAID, OrderState.PAID, row.paid_ms)], TELL, cause
        )
        return True

    async def refund(self, connection: AsyncConnection, number: int, cause: str) -> bool:
        """From any way of being over without having been paid, unless another order has taken its place."""
        this = and_(orders.c.id == number, orders.c.replaced_by.is_(None))
        row = (await connection.execute(select(orders.c.state, orders.c.round_id).where(this))).one_or_none()
        if row is None or row.state not in OVER:
            return False
        changed = await connection.execute(
            update(orders).where(this, orders.c.state == row.state).values(state=OrderState.REFUNDED)
        )
        if changed.rowcount != 1:
            return False
        now_ms = (await connection.execute(select(self._database.now_ms))).scalar_one()
        await self._follow_up(connection, [(number, row.round_id, row.state, OrderState.REFUNDED, now_ms)], TELL, cause)
        return True

    def _compare_and_set(self, values: Mapping[str, Any], returning: Sequence[str]) -> Statement:
        unpaid = and_(self._database.among(orders.c.id, "numbers"), orders.c.state == OrderState.UNPAID)
        return self._database.update_returning(orders, unpaid, values, returning)

    async def _follow_up(
        self, connection: AsyncConnection, changed: Sequence[tuple[object, ...]], kind: str, cause: str
    ) -> None:
        rows = self._changed.bind(changed)
        await connection.execute(self._insert_events, rows | {"cause": cause})
        await connection.execute(self._insert_outbox, rows | {"kind": kind})

    def _events(self) -> Insert:
        happened = self._changed.table.c
        source = select(
            happened.id.label("order_id"),
            happened.from_state,
            happened.to_state,
            happened.at_ms,
            bindparam("cause", type_=String).label("cause"),
        )
        return insert(order_events).from_select(source.selected_columns.keys(), source)

    def _outbox(self) -> Insert:
        """With the round's epoch at this moment: a gate that was rebuilt later knows of the ending already."""
        happened = self._changed.table.c
        source = select(
            bindparam("kind", type_=String).label("kind"),
            happened.id.label("order_id"),
            happened.round_id,
            rounds.c.epoch,
            happened.to_state.label("payload"),
            happened.at_ms.label("created_ms"),
        ).join(rounds, rounds.c.id == happened.round_id)
        return insert(outbox).from_select(source.selected_columns.keys(), source)


def to_order(row: AnyRow) -> Order:
    return Order(
        number=OrderNumber.from_int(row.id),
        sale_id=row.sale_id,
        round_id=row.round_id,
        user=row.user_id,
        quantity=row.quantity,
        state=OrderState(row.state),
        price_cents=row.price_cents,
        currency=row.currency,
        created_ms=row.created_ms,
        expires_ms=row.expires_ms,
        paid_ms=row.paid_ms,
        closed_ms=row.closed_ms,
        replaced_by=None if row.replaced_by is None else OrderNumber.from_int(row.replaced_by),
    )


def select_outbox() -> AnySelect:
    """So many (`count`) but those of some rounds (`without`), oldest first, with what a relay needs to know of each."""
    return (
        select(outbox, orders.c.user_id, rounds.c.lane, rounds.c.lanes, rounds.c.retired_ms)
        .join(orders, orders.c.id == outbox.c.order_id)
        .join(rounds, rounds.c.id == outbox.c.round_id)
        .where(outbox.c.done_ms.is_(None), outbox.c.round_id.not_in(bindparam("without", expanding=True)))
        .order_by(outbox.c.id)
        .limit(bindparam("count"))
    )


def to_item(row: AnyRow) -> OutboxItem:
    number = OrderNumber.from_int(row.order_id)
    # A round that is retired takes nothing back: the gate may have forgotten it.
    comes_back = row.kind == RELEASE and row.retired_ms is None
    return OutboxItem(
        id=row.id,
        release=Release(number, row.user_id, row.epoch) if comes_back else None,
        number=number,
        ref=RoundRef(id=row.round_id, lane=row.lane, lanes=row.lanes),
        state=OrderState(row.payload),
    )


def select_tally(round_id: int) -> AnySelect:
    def units(*states: OrderState) -> ColumnElement[int]:
        return func.coalesce(func.sum(case((orders.c.state.in_(states), orders.c.quantity))), 0)

    return (
        select(
            rounds.c.total,
            rounds.c.sold,
            func.coalesce(func.sum(orders.c.quantity), 0).label("recorded"),
            units(OrderState.UNPAID).label("unpaid"),
            units(OrderState.PAID).label("paid"),
            func.min(case((orders.c.state == OrderState.UNPAID, orders.c.expires_ms))).label("next_expiry_ms"),
            _dead_units(round_id).label("dead"),
        )
        .select_from(rounds)
        .outerjoin(orders, orders.c.round_id == rounds.c.id)
        .where(rounds.c.id == round_id)
        .group_by(rounds.c.id, rounds.c.total, rounds.c.sold)
    )


def _dead_units(round_id: int) -> ScalarSelect[int]:
    written = select(orders.c.id).where(orders.c.id == dead_letters.c.order_id, orders.c.round_id == round_id)
    return (
        select(func.coalesce(func.sum(dead_letters.c.quantity), 0))
        .where(dead_letters.c.round_id == round_id, dead_letters.c.state == LetterState.DEAD, ~written.exists())
        .scalar_subquery()
    )


def to_tally(row: AnyRow) -> Tally:
    return Tally(
        total=row.total,
        sold=row.sold,
        recorded=int(row.recorded),
        unpaid=int(row.unpaid),
        paid=int(row.paid),
        ended=int(row.recorded) - int(row.unpaid) - int(row.paid),
        next_expiry_ms=row.next_expiry_ms,
        dead=int(row.dead),
    )
