"""Payments: captures, the orders that they pay for, and refunds.

Every decision about a payment changes its row first, then the order that it was meant for, then the one that it pays
instead. Always in this order, so that no two transactions wait for each other.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, String, and_, bindparam, func, insert, literal, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.due_rows import DueRows
from seckill.backends.sql.end_orders import RELEASE, Endings, to_order
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.tables import order_actions, orders, outbox, payments, refunds, rounds
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.event import EventType
from seckill.domain.order import OVER, Order
from seckill.domain.order_number import OrderNumber
from seckill.domain.payment_fate import Fate, fate_of_unneeded, is_its_price
from seckill.domain.sale import RoundRef, RoundStatus
from seckill.failpoints import reached
from seckill.ports.payment import Capture, Captured, LatePayment, Refund, Settlement
from seckill.ports.record import acting

# Reasons for refunds other than refusals of the gate.
ALREADY_PAID = "already_paid"
ALREADY_REFUNDED = "already_refunded"
# No keeper watches a round that has been over for this long. If the gate does not have it by then, it never will.
OVER_FOR_MS = 60_000
# The column holds this much of a provider's message.
REFUSED_LENGTH_MAX = 255


class _Undo(Exception):
    """Leaves a transaction so that nothing of it remains."""


class SqlPayments:
    """Implements `seckill.ports.payment.PaymentLedger`."""

    def __init__(self, database: Database, endings: Endings, entries: FeedEntries, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        self._endings = endings
        self._entries = entries
        self._note = database.insert_missing(
            payments, ["provider", "provider_ref"], _new_payment(database), returning=["id"]
        )
        self._due_late = DueRows(payments.c.id, payments.c.next_ms, database)
        self._due_refunds = DueRows(refunds.c.id, refunds.c.next_ms, database)
        self._late = self._select_late()

    @to_the_end
    async def capture(self, number: OrderNumber, capture: Capture, lease_s: float) -> Captured:
        async with writing(self._database) as connection:
            order = await _order(connection, int(number))
            if order is None:
                return Captured(Fate.UNKNOWN_ORDER, None)
            if not is_its_price(order, capture.amount_cents, capture.currency):
                return Captured(Fate.WRONG_AMOUNT, order)
            noted = await self._note.run(connection, _parameters(number, capture, lease_s))
            if not noted:
                return await self._known(connection, order, capture)
            payment_id = noted[0].id
            fate = await self._decide(connection, payment_id, order, capture)
            reached("ledger.capture.inside")
            return Captured(fate, await _order(connection, int(number)), payment_id, new=True)

    async def _known(self, connection: AsyncConnection, order: Order, capture: Capture) -> Captured:
        # Money that pays for nothing is refunded as a whole and for one reason.
        goes_back = and_(refunds.c.payment_id == payments.c.id, refunds.c.action_id.is_(None))
        found = await connection.execute(
            select(payments, refunds.c.reason)
            .outerjoin(refunds, goes_back)
            .where(payments.c.provider == capture.provider, payments.c.provider_ref == capture.ref)
        )
        row = found.one()
        if row.order_id != int(order.number):  # then the amount may differ, too; otherwise it must not
            return Captured(Fate.REF_REUSED, order)
        # Read again: in PostgreSQL we may have waited for the transaction that has just decided about it.
        return Captured(_fate(row), await _order(connection, row.order_id), row.id)

    async def _decide(self, connection: AsyncConnection, payment_id: int, known: Order, capture: Capture) -> Fate:
        number = int(known.number)
        pays = await self._endings.pay(connection, number, f"paid:{capture.provider}")
        of = known.number if pays else None
        await self._entries.payment(connection, EventType.PAYMENT_RECEIVED, known, capture, pays=of)
        if pays:
            await connection.execute(_decided(payment_id).values(settles=number))
            return Fate.SETTLED
        order = await _order(connection, number)
        assert order is not None, "orders are never deleted"
        fate = fate_of_unneeded(order)
        if fate is not Fate.LATE:
            reason = ALREADY_REFUNDED if fate is Fate.REFUNDED else ALREADY_PAID
            await self._owe(connection, payment_id, reason)
            await self._tell_refund(connection, EventType.REFUND_REQUESTED, refunds.c.payment_id == payment_id)
        return fate

    async def _owe(self, connection: AsyncConnection, payment_id: int, reason: str) -> bool:
        """Decides that the money has to go back. Returns False if that was decided before."""
        decided = await connection.execute(_decided(payment_id))
        if decided.rowcount != 1:
            return False
        owed = select(
            payments.c.id.label("payment_id"),
            payments.c.amount_cents,
            payments.c.currency,
            literal(reason).label("reason"),
            literal(0).label("attempts"),
            self._database.now_ms.label("next_ms"),
            self._database.now_ms.label("created_ms"),
        ).where(payments.c.id == payment_id)
        await connection.execute(insert(refunds).from_select(owed.selected_columns.keys(), owed))
        return True

    async def _tell_refund(self, connection: AsyncConnection, type_: EventType, which: ColumnElement[bool]) -> None:
        row = (await connection.execute(select_refunds().where(which))).one()
        order = await _order(connection, row.order_id)
        assert order is not None, "orders are never deleted"
        await self._entries.refund(connection, type_, order, to_refund(row))

    @to_the_end
    async def late(self, payment_id: int) -> LatePayment | None:
        async with reading(self._database) as connection:
            found = await connection.execute(self._late.where(payments.c.id == payment_id))
            row = found.one_or_none()
        return None if row is None else _to_late(row)

    @to_the_end
    async def take_late(self, count: int, lease_s: float) -> list[LatePayment]:
        if not await self._due_late.is_any():
            return []
        async with writing(self._database) as connection:
            ids = await self._due_late.take(connection, count)
            await connection.execute(
                update(payments).where(payments.c.id.in_(ids)).values(next_ms=self._after(lease_s))
            )
            found = await connection.execute(self._late.where(payments.c.id.in_(ids)).order_by(payments.c.id))
            return [_to_late(row) for row in found]

    def _after(self, seconds: float) -> Any:
        return self._database.now_ms + int(seconds * 1000)

    def _select_late(self) -> AnySelect:
        now_ms = self._database.now_ms
        return (
            select(
                orders,
                payments.c.id.label("payment_id"),
                payments.c.provider,
                rounds.c.lane,
                rounds.c.lanes,
                ((rounds.c.status == RoundStatus.CLOSED) | (rounds.c.ends_ms + OVER_FOR_MS <= now_ms)).label("over"),
                outbox.c.epoch.label("release_epoch"),
            )
            .select_from(payments)
            .join(orders, orders.c.id == payments.c.order_id)
            .join(rounds, rounds.c.id == orders.c.round_id)
            .outerjoin(
                outbox,
                and_(outbox.c.order_id == orders.c.id, outbox.c.kind == RELEASE, outbox.c.done_ms.is_(None)),
            )
            .where(payments.c.next_ms.is_not(None))
        )

    @to_the_end
    async def put_off_late(self, payment_id: int, after_s: float) -> None:
        async with writing(self._database) as connection:
            await connection.execute(
                update(payments)
                .where(payments.c.id == payment_id, payments.c.next_ms.is_not(None))
                .values(next_ms=self._after(after_s))
            )

    @to_the_end
    async def settle(self, late: LatePayment, number: OrderNumber) -> Settlement:
        try:
            async with writing(self._database) as connection:
                if await _order(connection, int(number)) is None:
                    return Settlement.NOT_WRITTEN
                decided = await connection.execute(_decided(late.id))
                if decided.rowcount != 1:
                    return Settlement.DECIDED
                await self._replace(connection, late, int(number))
                reached("ledger.settle.inside")
                return Settlement.DONE
        except _Undo:
            return Settlement.OVER

    async def _replace(self, connection: AsyncConnection, late: LatePayment, number: int) -> None:
        replaced = await connection.execute(
            update(orders)
            .where(orders.c.id == int(late.order.number), orders.c.state.in_(OVER), orders.c.replaced_by.is_(None))
            .values(replaced_by=number)
        )
        if replaced.rowcount != 1 or not await self._endings.pay(connection, number, f"paid late:{late.provider}"):
            raise _Undo
        await connection.execute(update(payments).where(payments.c.id == late.id).values(settles=number))
        row = (await connection.execute(select(payments).where(payments.c.id == late.id))).one()
        pays = OrderNumber.from_int(number)
        await self._entries.payment(connection, EventType.PAYMENT_SETTLED, late.order, to_capture(row), pays=pays)

    @to_the_end
    async def give_back(self, late: LatePayment, reason: str) -> bool:
        number = int(late.order.number)
        async with writing(self._database) as connection:
            if not await self._owe(connection, late.id, reason):
                return False
            if not await self._endings.refund(connection, number, f"paid too late:{reason}"):
                order = await _order(connection, number)
                true_reason = ALREADY_PAID if order and order.replaced_by else ALREADY_REFUNDED
                await connection.execute(
                    update(refunds).where(refunds.c.payment_id == late.id).values(reason=true_reason)
                )
            await self._tell_refund(connection, EventType.REFUND_REQUESTED, refunds.c.payment_id == late.id)
            reached("ledger.give_back.inside")
            return True

    @to_the_end
    async def take_refunds(self, count: int, lease_s: float) -> list[Refund]:
        if not await self._due_refunds.is_any():
            return []
        async with writing(self._database) as connection:
            ids = await self._due_refunds.take(connection, count)
            await connection.execute(
                update(refunds)
                .where(refunds.c.id.in_(ids))
                .values(next_ms=self._after(lease_s), attempts=refunds.c.attempts + 1)
            )
            found = await connection.execute(select_refunds().where(refunds.c.id.in_(ids)).order_by(refunds.c.id))
            return [to_refund(row) for row in found]

    @to_the_end
    async def put_off_refund(self, refund_id: int, after_s: float) -> None:
        async with writing(self._database) as connection:
            await connection.execute(
                update(refunds)
                .where(refunds.c.id == refund_id, refunds.c.done_ms.is_(None))
                .values(next_ms=self._after(after_s))
            )

    @to_the_end
    async def refund_refused(self, refund_id: int, words: str, after_s: float) -> None:
        waits = and_(refunds.c.id == refund_id, refunds.c.done_ms.is_(None))
        refused = {"next_ms": self._after(after_s), "refused": words[:REFUSED_LENGTH_MAX]}
        async with writing(self._database) as connection:
            first = await connection.execute(update(refunds).where(waits, refunds.c.refused.is_(None)).values(refused))
            if first.rowcount == 1:
                await self._tell_refund(connection, EventType.REFUND_REFUSED, refunds.c.id == refund_id)
            else:
                await connection.execute(update(refunds).where(waits).values(refused))

    @to_the_end
    async def refund_done(self, refund_id: int) -> bool:
        this = refunds.c.id == refund_id
        async with writing(self._database) as connection:
            done = await connection.execute(
                update(refunds)
                .where(this, refunds.c.done_ms.is_(None))
                .values(done_ms=self._database.now_ms, next_ms=null(), refused=null())
            )
            if done.rowcount == 1:
                await self._tell_refund(connection, EventType.REFUND_DONE, this)
                await self._record_refund(connection, refund_id)
                return True
            return (await connection.execute(select(refunds.c.id).where(this))).first() is not None

    async def _record_refund(self, connection: AsyncConnection, refund_id: int) -> None:
        """Notes that an operator made the refund by hand. Refunds by a keeper are in the feed."""
        if acting() is None:
            return
        row = (await connection.execute(select_refunds().where(refunds.c.id == refund_id))).one()
        sale_id = await connection.scalar(select(orders.c.sale_id).where(orders.c.id == row.order_id))
        facts = {"order_number": str(row.order_id), "amount_cents": row.amount_cents, "currency": row.currency}
        await note(connection, self._database, "refund.done", refund_id, sale_id=sale_id, after=facts)

    @to_the_end
    async def refund(self, refund_id: int) -> Refund | None:
        async with reading(self._database) as connection:
            found = await connection.execute(select_refunds().where(refunds.c.id == refund_id))
            row = found.one_or_none()
        return None if row is None else to_refund(row)

    @to_the_end
    async def refunds(self, count: int) -> list[Refund]:
        wanted = select_refunds().order_by(refunds.c.done_ms.is_not(None), refunds.c.id.desc()).limit(count)
        async with reading(self._database) as connection:
            return [to_refund(row) for row in await connection.execute(wanted)]


_THIS_ORDER = select(orders).where(orders.c.id == bindparam("number", type_=BigInteger))


async def _order(connection: AsyncConnection, number: int) -> Order | None:
    row = (await connection.execute(_THIS_ORDER, {"number": number})).one_or_none()
    return None if row is None else to_order(row)


def _new_payment(database: Database) -> AnySelect:
    return select(
        bindparam("number", type_=BigInteger).label("order_id"),
        bindparam("of_provider", type_=String).label("provider"),
        bindparam("ref", type_=String).label("provider_ref"),
        bindparam("cents", type_=BigInteger).label("amount_cents"),
        bindparam("of_currency", type_=String).label("currency"),
        (database.now_ms + bindparam("lease_ms", type_=BigInteger)).label("next_ms"),
        database.now_ms.label("created_ms"),
    ).where(literal(True))  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's


def _parameters(number: OrderNumber, capture: Capture, lease_s: float) -> dict[str, object]:
    return {
        "number": int(number),
        "of_provider": capture.provider,
        "ref": capture.ref,
        "cents": capture.amount_cents,
        "of_currency": capture.currency,
        "lease_ms": int(lease_s * 1000),
    }


def _decided(payment_id: int) -> Any:
    """A decision happens only once, whichever process tries."""
    return update(payments).where(payments.c.id == payment_id, payments.c.next_ms.is_not(None)).values(next_ms=null())


def _fate(row: AnyRow) -> Fate:
    if row.settles is not None:
        return Fate.SETTLED if row.settles == row.order_id else Fate.REPLACED
    if row.next_ms is not None:
        return Fate.LATE
    return Fate.SURPLUS if row.reason == ALREADY_PAID else Fate.REFUNDED


def _to_late(row: AnyRow) -> LatePayment:
    return LatePayment(
        id=row.payment_id,
        provider=row.provider,
        order=to_order(row),
        ref=RoundRef(id=row.round_id, lane=row.lane, lanes=row.lanes),
        round_over=bool(row.over),
        release_epoch=row.release_epoch,
        request_id=row.request_id,
    )


def select_refunds() -> AnySelect:
    """Selects refunds with the order that was paid with the money, if any: the money may have come for another one."""
    return (
        select(
            refunds,
            func.coalesce(payments.c.settles, payments.c.order_id).label("order_id"),
            payments.c.provider,
            payments.c.provider_ref,
            payments.c.amount_cents.label("taken_cents"),
            order_actions.c.reason.label("explanation"),
        )
        .join(payments, payments.c.id == refunds.c.payment_id)
        .outerjoin(order_actions, order_actions.c.id == refunds.c.action_id)
    )


def to_capture(row: AnyRow) -> Capture:
    return Capture(provider=row.provider, ref=row.provider_ref, amount_cents=row.amount_cents, currency=row.currency)


def to_refund(row: AnyRow) -> Refund:
    return Refund(
        id=row.id,
        amount_cents=row.amount_cents,
        capture=Capture(
            provider=row.provider, ref=row.provider_ref, amount_cents=row.taken_cents, currency=row.currency
        ),
        number=OrderNumber.from_int(row.order_id),
        reason=row.reason,
        explanation=row.explanation,
        refused=row.refused,
        attempts=row.attempts,
        created_ms=row.created_ms,
        done_ms=row.done_ms,
    )
