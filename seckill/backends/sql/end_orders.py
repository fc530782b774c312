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
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database, Statement
from seckill.backends.sql.tables import dead_letters, order_events, orders, outbox, rounds
from seckill.domain.dead_letter import LetterState
from seckill.domain.order import LAPSED, Order, OrderState, states_before
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import RoundRef
from seckill.failpoints import reached
from seckill.ports.gate import Release
from seckill.ports.ledger import OutboxItem, Tally

RELEASE = "release"
TELL = "tell"
# A row that was written not by a worker but when its entry was given up: it never had a time to pay and was not free.
BURIED = and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


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
            to: self._compare_and_sets(to, {"active_slot": null(), "closed_ms": database.now_ms}, returned)
            for to in LAPSED
        }
        self._pay = self._compare_and_sets(OrderState.PAID, {"paid_ms": database.now_ms}, ("id", "round_id", "paid_ms"))
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
        """Orders that another transaction has changed meanwhile are left alone and not returned."""
        ended: list[AnyRow] = []
        changed: list[tuple[object, ...]] = []
        for before, statement in self._end[to].items():
            found = await statement.run(connection, {"numbers": numbers})
            changed += [(row.id, row.round_id, before, to, row.closed_ms) for row in found]
            ended += found
        if ended:
            await self._follow_up(connection, changed, RELEASE, cause)
            units: Counter[int] = Counter()
            for row in ended:
                units[row.round_id] += row.quantity
            for round_id in sorted(units):  # always in the same order, so that no two transactions wait for each other
                await connection.execute(self._give_back, {"round": round_id, "units": units[round_id]})
            reached("ledger.end.inside")
        return ended

    async def pay(self, connection: AsyncConnection, number: int, cause: str) -> bool:
        for before, statement in self._pay.items():
            for row in await statement.run(connection, {"numbers": [number]}):
                paid = (row.id, row.round_id, before, OrderState.PAID, row.paid_ms)
                await self._follow_up(connection, [paid], TELL, cause)
                return True
        return False

    async def refund(self, connection: AsyncConnection, number: int, cause: str) -> bool:
        """From any way of being over without having been paid, unless another order has taken its place."""
        this = and_(orders.c.id == number, orders.c.replaced_by.is_(None))
        row = (await connection.execute(select(orders.c.state, orders.c.round_id).where(this))).one_or_none()
        if row is None or row.state not in _rows_before(OrderState.REFUNDED):
            return False
        changed = await connection.execute(
            update(orders).where(this, orders.c.state == row.state).values(state=OrderState.REFUNDED)
        )
        if changed.rowcount != 1:
            return False
        now_ms = (await connection.execute(select(self._database.now_ms))).scalar_one()
        await self._follow_up(connection, [(number, row.round_id, row.state, OrderState.REFUNDED, now_ms)], TELL, cause)
        return True

    def _compare_and_sets(
        self, to: OrderState, values: Mapping[str, Any], returning: Sequence[str]
    ) -> dict[OrderState, Statement]:
        """One from each state that may become this, so that the history can tell which it was."""
        return {
            before: self._database.update_returning(
                orders,
                and_(self._database.among(orders.c.id, "numbers"), orders.c.state == before),
                {"state": to, **values},
                returning,
            )
            for before in _rows_before(to)
        }

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


def _rows_before(to: OrderState) -> list[OrderState]:
    """The states of rows that may become this. An order that is queued has no row yet."""
    return sorted(states_before(to) - {OrderState.QUEUED})


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
    """Up to `count`, except those of some rounds (`without`), oldest first, with what a relay needs to know of each."""
    return (
        select(outbox, orders.c.user_id, orders.c.request_id, rounds.c.lane, rounds.c.lanes, rounds.c.retired_ms)
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
    state = OrderState(row.payload)
    return OutboxItem(
        id=row.id,
        release=Release(number, row.user_id, row.epoch, row.request_id, state in LAPSED) if comes_back else None,
        number=number,
        ref=RoundRef(id=row.round_id, lane=row.lane, lanes=row.lanes),
        state=state,
    )


def has_lapsed() -> ColumnElement[bool]:
    """Also if it was paid for too late and refunded afterwards. An order that failed never had a time to pay."""
    refunded = and_(orders.c.state == OrderState.REFUNDED, orders.c.expires_ms.is_not(None))
    return or_(orders.c.state.in_(LAPSED), refunded)


def is_voided(epoch: ColumnElement[int]) -> ColumnElement[bool]:
    """Given up, and admitted before this epoch."""
    return and_(orders.c.state.in_((OrderState.FAILED, OrderState.REFUNDED)), BURIED, orders.c.epoch < epoch)


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
            func.coalesce(func.sum(case((is_voided(rounds.c.epoch), orders.c.quantity))), 0).label("voided"),
            func.count(orders.c.id).label("orders"),
            func.count(case((has_lapsed(), 1))).label("lapsed"),
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
        voided=int(row.voided),
        orders=row.orders,
        lapsed=row.lapsed,
    )
