"""Ends orders or marks them as paid: a compare-and-set on the state and, in the same transaction, all that follows from
it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Insert,
    ScalarSelect,
    String,
    Table,
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

from seckill.backends.sql.database import AnyRow, AnySelect, Database, Statement
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.tables import checkouts, dead_letters, order_events, orders, outbox, round_items, rounds
from seckill.backends.sql.voucher_gifts import VoucherGifts
from seckill.domain.dead_letter import LetterState
from seckill.domain.event import of_change
from seckill.domain.item import NO_ITEM
from seckill.domain.order import LAPSED, OPERATOR, OVER, Order, OrderState, states_before
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import RoundRef
from seckill.errors import LedgerUnavailable
from seckill.failpoints import reached
from seckill.ports.gate import Release
from seckill.ports.ledger import OutboxItem, Tally

RELEASE = "release"
TELL = "tell"
# An order's number, its round, its states before and after, and the time.
_Change: TypeAlias = tuple[int, int, OrderState, OrderState, int]
# A row that was not written by a worker, but when its entry was given up: it never had a time to pay and was not free.
BURIED = and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """What a refund by an operator does to a paid order."""

    action_id: int
    cents: int
    whole: bool  # nothing of the price is left after it
    return_units: bool


class Endings:
    """The statements, made once; the methods execute them in the caller's transaction."""

    def __init__(self, database: Database, entries: FeedEntries, gifts: VoucherGifts) -> None:
        self._database = database
        self._entries = entries
        self._gifts = gifts
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
            # The state is part of the text: with a parameter, PostgreSQL may choose a plan that cannot use the partial
            # index.
            .where(
                orders.c.state == literal(OrderState.UNPAID, literal_execute=True),
                orders.c.expires_ms <= database.now_ms,
            )
            .order_by(orders.c.expires_ms)
            .limit(bindparam("count"))
        )
        # Where the database can do that, several keepers take different orders instead of waiting for each other.
        self._due = self.select_due.with_for_update(skip_locked=True)
        returned = ("id", "round_id", "quantity", "closed_ms", "item_id")
        over = {"active_slot": null(), "closed_ms": database.now_ms}
        self._end = {
            (to, closed_by): self._compare_and_sets(to, {**over, "closed_by": closed_by}, returned)
            for to in LAPSED
            for closed_by in (None, OPERATOR)
        }
        paid = ("id", "round_id", "quantity", "item_id", "paid_ms")
        self._pay = self._compare_and_sets(OrderState.PAID, {"paid_ms": database.now_ms}, paid)
        self._give_back = (
            update(rounds)
            .where(rounds.c.id == bindparam("round"))
            .values(sold=rounds.c.sold - bindparam("units", type_=BigInteger))
        )
        self._give_item_back = (
            update(round_items)
            .where(round_items.c.round_id == bindparam("round"), round_items.c.item_id == bindparam("item"))
            .values(sold=round_items.c.sold - bindparam("units", type_=BigInteger))
        )

        self._look_at_checkouts = (
            update(checkouts)
            .where(database.among(checkouts.c.order_id, "numbers"), checkouts.c.next_ms.is_not(None))
            .values(next_ms=database.now_ms)
        )

    async def due(self, connection: AsyncConnection, count: int) -> list[int]:
        return list(await connection.scalars(self._due, {"count": count}))

    async def end(
        self,
        connection: AsyncConnection,
        numbers: Sequence[int],
        to: OrderState,
        cause: str,
        closed_by: str | None = None,
    ) -> list[AnyRow]:
        """Ends these orders. Those that another transaction has changed meanwhile are left alone and not returned."""
        ended: list[AnyRow] = []
        changed: list[_Change] = []
        for before, statement in self._end[to, closed_by].items():
            found = await statement.run(connection, {"numbers": numbers})
            changed += [(row.id, row.round_id, before, to, row.closed_ms) for row in found]
            ended += found
        if ended:
            await self._note(connection, changed, cause)
            await self._send(connection, changed, RELEASE)
            await self._return(connection, [(row.round_id, row.item_id, row.quantity) for row in ended])
            await connection.execute(self._look_at_checkouts, {"numbers": [row.id for row in ended]})
            reached("ledger.end.inside")
        return ended

    async def pay(self, connection: AsyncConnection, number: int, cause: str) -> bool:
        for before, statement in self._pay.items():
            for row in await statement.run(connection, {"numbers": [number]}):
                paid = (row.id, row.round_id, before, OrderState.PAID, row.paid_ms)
                await self._note(connection, [paid], cause)
                await self._send(connection, [paid], TELL)
                await self._gifts.give(connection, row)
                return True
        return False

    async def refund(self, connection: AsyncConnection, number: int, cause: str) -> bool:
        """Marks an order as refunded because its money came late. It may have ended in any way without being paid,
        unless another order has taken its place."""
        this = and_(orders.c.id == number, orders.c.replaced_by.is_(None))
        row = (await connection.execute(select(orders.c.state, orders.c.round_id).where(this))).one_or_none()
        if row is None or row.state not in OVER.intersection(_rows_before(OrderState.REFUNDED)):
            return False
        changed = await connection.execute(
            update(orders)
            .where(this, orders.c.state == row.state)
            .values(state=OrderState.REFUNDED, refunded_cents=orders.c.price_cents)
        )
        if changed.rowcount != 1:
            return False
        before = OrderState(row.state)
        refunded: list[_Change] = [(number, row.round_id, before, OrderState.REFUNDED, await self._now_ms(connection))]
        await self._note(connection, refunded, cause)
        await self._send(connection, refunded, TELL)
        return True

    async def reverse(self, connection: AsyncConnection, order: Order, reversal: "Reversal") -> int:
        """Applies a refund to a paid order that was just read in this transaction. Returns how many units go back on
        sale. Raises LedgerUnavailable if the order has changed since."""
        number = int(order.number)
        this = and_(
            orders.c.id == number,
            orders.c.state == OrderState.PAID,
            orders.c.refunded_cents == order.refunded_cents,
        )
        values: dict[str, Any] = {"refunded_cents": order.refunded_cents + reversal.cents}
        state = OrderState.PAID
        if reversal.whole:
            state = OrderState.REFUNDED
            values |= {"state": state, "closed_ms": self._database.now_ms, "closed_by": OPERATOR}
        changed = await connection.execute(update(orders).where(this).values(values))
        if changed.rowcount != 1:
            raise LedgerUnavailable("The order was being changed by others, try again.")
        now_ms = await self._now_ms(connection)
        refunded: list[_Change] = [(number, order.round_id, OrderState.PAID, state, now_ms)]
        if reversal.whole:
            await self._note(connection, refunded, "refunded by an operator")
        if reversal.whole or reversal.return_units:
            await self._gifts.take_back(connection, order, units_back=reversal.return_units)
        if reversal.return_units and await self._let_go(connection, order, refunded):
            return order.quantity
        # Buyers are told of each refund of an order, so there may be several such rows.
        await self._send(connection, refunded, f"{TELL} {reversal.action_id}")
        return 0

    async def _let_go(self, connection: AsyncConnection, order: Order, changed: Sequence[_Change]) -> bool:
        """Puts an order's units back on sale, once. Returns False if it no longer holds them."""
        this = and_(orders.c.id == int(order.number), orders.c.active_slot.is_not(None))
        if (await connection.execute(update(orders).where(this).values(active_slot=null()))).rowcount != 1:
            return False
        await self._send(connection, changed, RELEASE)
        await self._return(connection, [(order.round_id, order.item or None, order.quantity)])
        return True

    async def _return(self, connection: AsyncConnection, units: Sequence[tuple[int, int | None, int]]) -> None:
        """`units`: the units of each order, with its round and item. Rows are always changed in the same order, the
        round before its items, so that no two transactions wait for each other."""
        of_rounds: dict[int, Counter[int | None]] = {}
        for round_id, item, quantity in units:
            of_rounds.setdefault(round_id, Counter())[item] += quantity
        for round_id, of_items in sorted(of_rounds.items()):
            await connection.execute(self._give_back, {"round": round_id, "units": of_items.total()})
            for item in sorted(item for item in of_items if item is not None):
                wanted = {"round": round_id, "item": item, "units": of_items[item]}
                await connection.execute(self._give_item_back, wanted)

    async def _now_ms(self, connection: AsyncConnection) -> int:
        return int((await connection.execute(select(self._database.now_ms))).scalar_one())

    def _compare_and_sets(
        self, to: OrderState, values: Mapping[str, Any], returning: Sequence[str]
    ) -> dict[OrderState, Statement]:
        """One statement for each state that may become this one, so that the history can tell which it was."""
        return {
            before: self._database.update_returning(
                orders,
                and_(self._database.among(orders.c.id, "numbers"), orders.c.state == before),
                {"state": to, **values},
                returning,
            )
            for before in _rows_before(to)
        }

    async def _note(self, connection: AsyncConnection, changed: Sequence[_Change], cause: str) -> None:
        """Notes changes in the history and in the feed. All are changes to the same state."""
        await connection.execute(self._insert_events, self._changed.bind(changed) | {"cause": cause})
        _, _, before, to, _ = changed[0]
        for type_ in of_change(before, to):
            await self._entries.orders(connection, type_, [number for number, *_ in changed])

    async def _send(self, connection: AsyncConnection, changed: Sequence[_Change], kind: str) -> None:
        await connection.execute(self._insert_outbox, self._changed.bind(changed) | {"kind": kind})

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
        """Inserts into the outbox with the round's present epoch: a gate that is rebuilt later already knows that the
        order is over."""
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
    """Returns the states from which a row may change to this one. A queued order has no row yet."""
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
        refunded_cents=row.refunded_cents,
        closed_by=row.closed_by,
        metadata=row.metadata or "",
        item=row.item_id or NO_ITEM,
        person=row.person or "",
        trace=row.trace or "",
    )


def select_outbox() -> AnySelect:
    """Selects up to `count` rows, oldest first, except those of some rounds (`without`), with everything that is
    needed to pass them on."""
    return (
        select(outbox, orders.c.user_id, orders.c.request_id, orders.c.closed_by)
        .add_columns(rounds.c.lane, rounds.c.lanes, rounds.c.retired_ms)
        .join(orders, orders.c.id == outbox.c.order_id)
        .join(rounds, rounds.c.id == outbox.c.round_id)
        .where(outbox.c.done_ms.is_(None), outbox.c.round_id.not_in(bindparam("without", expanding=True)))
        .order_by(outbox.c.id)
        .limit(bindparam("count"))
    )


def to_item(row: AnyRow) -> OutboxItem:
    number = OrderNumber.from_int(row.order_id)
    # A retired round takes nothing back: the gate may have forgotten it.
    comes_back = row.kind == RELEASE and row.retired_ms is None
    state = OrderState(row.payload)
    lapsed = state in LAPSED and row.closed_by is None
    return OutboxItem(
        id=row.id,
        release=Release(number, row.user_id, row.epoch, row.request_id, lapsed) if comes_back else None,
        number=number,
        ref=RoundRef(id=row.round_id, lane=row.lane, lanes=row.lanes),
        state=state,
    )


def has_lapsed() -> ColumnElement[bool]:
    """Whether the buyer let the order lapse, even if it was paid too late and refunded afterwards, but not if an
    operator ended it. A failed order never had a time to pay."""
    refunded = and_(orders.c.state == OrderState.REFUNDED, orders.c.expires_ms.is_not(None))
    return and_(or_(orders.c.state.in_(LAPSED), refunded), orders.c.closed_by.is_(None))


def holds_units() -> ColumnElement[bool]:
    """Whether the order's units count as sold and towards the limit."""
    return orders.c.active_slot.is_not(None)


def is_voided(epoch: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether the order was admitted before this epoch and given up."""
    return and_(orders.c.state.in_((OrderState.FAILED, OrderState.REFUNDED)), BURIED, orders.c.epoch < epoch)


def select_tally(round_id: int) -> AnySelect:
    return (
        select(rounds.c.item_count, *_tallied(rounds, _dead_units(round_id)))
        .select_from(rounds)
        .outerjoin(orders, orders.c.round_id == rounds.c.id)
        .where(rounds.c.id == round_id)
        .group_by(rounds.c.id, rounds.c.total, rounds.c.sold, rounds.c.item_count)
    )


def select_tally_by_item(round_id: int) -> AnySelect:
    of_item = and_(orders.c.round_id == round_items.c.round_id, orders.c.item_id == round_items.c.item_id)
    dead = _dead_units(round_id, round_items.c.item_id)
    return (
        select(round_items.c.item_id, *_tallied(round_items, dead))
        .select_from(round_items.join(rounds, rounds.c.id == round_items.c.round_id).outerjoin(orders, of_item))
        .where(round_items.c.round_id == round_id)
        .group_by(round_items.c.item_id, round_items.c.total, round_items.c.sold)
        .order_by(round_items.c.item_id)
    )


def together(of_items: Mapping[int, Tally]) -> Tally:
    """Adds up a round's tally from those of its items, so that one reading is enough."""
    parts = of_items.values()
    counts = [each.name for each in fields(Tally) if each.name not in ("next_expiry_ms", "items")]
    expiries = [part.next_expiry_ms for part in parts if part.next_expiry_ms is not None]
    return Tally(
        **{name: sum(getattr(part, name) for part in parts) for name in counts},
        next_expiry_ms=min(expiries, default=None),
        items=of_items,
    )


def _tallied(counted: Table, dead: ScalarSelect[int]) -> list[ColumnElement[Any]]:
    def units(*states: OrderState) -> ColumnElement[int]:
        these = and_(orders.c.state.in_(states), holds_units())
        return func.coalesce(func.sum(case((these, orders.c.quantity))), 0)

    is_paid, kept_cents = orders.c.state == OrderState.PAID, orders.c.price_cents - orders.c.refunded_cents
    return [
        counted.c.total,
        counted.c.sold,
        func.coalesce(func.sum(orders.c.quantity), 0).label("recorded"),
        units(OrderState.UNPAID).label("unpaid"),
        units(OrderState.PAID).label("paid"),
        units(OrderState.REFUNDED).label("kept"),
        func.min(case((orders.c.state == OrderState.UNPAID, orders.c.expires_ms))).label("next_expiry_ms"),
        dead.label("dead"),
        func.coalesce(func.sum(case((is_voided(rounds.c.epoch), orders.c.quantity))), 0).label("voided"),
        func.count(orders.c.id).label("orders"),
        func.count(case((has_lapsed(), 1))).label("lapsed"),
        func.coalesce(func.sum(case((is_paid, kept_cents))), 0).label("taken_cents"),
        func.count(orders.c.paid_ms).label("paid_orders"),
    ]


def _dead_units(round_id: int, item_id: ColumnElement[int] | None = None) -> ScalarSelect[int]:
    """Selects the dead units of the round, or of one of its items."""
    these = true() if item_id is None else dead_letters.c.item_id == item_id
    others = orders.alias("others")
    written = select(others.c.id).where(others.c.id == dead_letters.c.order_id, others.c.round_id == round_id)
    return (
        select(func.coalesce(func.sum(dead_letters.c.quantity), 0))
        .where(dead_letters.c.round_id == round_id, dead_letters.c.state == LetterState.DEAD, ~written.exists(), these)
        .scalar_subquery()
    )


def to_tally(row: AnyRow) -> Tally:
    return Tally(
        total=row.total,
        sold=row.sold,
        recorded=int(row.recorded),
        unpaid=int(row.unpaid),
        paid=int(row.paid),
        kept=int(row.kept),
        ended=int(row.recorded) - int(row.unpaid) - int(row.paid) - int(row.kept),
        next_expiry_ms=row.next_expiry_ms,
        dead=int(row.dead),
        voided=int(row.voided),
        orders=row.orders,
        lapsed=row.lapsed,
        taken_cents=int(row.taken_cents),
        paid_orders=row.paid_orders,
    )
