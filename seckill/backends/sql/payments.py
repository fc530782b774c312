"""The money: captures, what they pay for, and refunds.

Every decision about a payment changes its row first, then the order that it was meant for, then the one that it pays
instead. Always in this order, so that no two transactions wait for each other.
"""

import asyncio
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, String, and_, bindparam, func, insert, literal, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.end_orders import RELEASE, Endings, to_order
from seckill.backends.sql.errors import reading, writing
from seckill.backends.sql.tables import orders, outbox, payments, refunds, rounds
from seckill.backends.sql.uncancelled_calls import to_the_end
from seckill.domain.order import OVER, Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import RoundRef, RoundStatus
from seckill.failpoints import reached
from seckill.ports.payment import Capture, Captured, Fate, LatePayment, Refund, Settlement

# Reasons for refunds other than refusals of the gate.
ALREADY_PAID = "already_paid"
ALREADY_REFUNDED = "already_refunded"
# No keeper watches a round that has been over for this long, and if the gate does not have it, it never will.
OVER_FOR_MS = 60_000


class _Undo(Exception):
    """Leaves a transaction so that nothing of it remains."""


class SqlPayments:
    """Implements `seckill.ports.payment.PaymentLedger`."""

    def __init__(self, database: Database, endings: Endings, tasks: set[asyncio.Task[Any]]) -> None:
        self.tasks = tasks
        self._database = database
        self._endings = endings
        self._note = database.insert_missing(
            payments, ["provider", "provider_ref"], _new_payment(database), returning=["id"]
        )
        self._due_late = _Due(payments.c.id, payments.c.next_ms, database)
        self._due_refunds = _Due(refunds.c.id, refunds.c.next_ms, database)
        self._late = self._select_late()

    @to_the_end
    async def capture(self, number: OrderNumber, capture: Capture, lease_s: float) -> Captured:
        async with writing(self._database) as connection:
            order = await _order(connection, int(number))
            if order is None:
                return Captured(Fate.UNKNOWN_ORDER, None)
            if (capture.amount_cents, capture.currency) != (order.price_cents, order.currency):
                return Captured(Fate.WRONG_AMOUNT, order)
            noted = await self._note.run(connection, _parameters(number, capture, lease_s))
            if not noted:
                return await self._known(connection, order, capture)
            payment_id = noted[0].id
            fate = await self._decide(connection, payment_id, int(number), capture.provider)
            reached("ledger.capture.inside")
            return Captured(fate, await _order(connection, int(number)), payment_id, new=True)

    async def _known(self, connection: AsyncConnection, order: Order, capture: Capture) -> Captured:
        found = await connection.execute(
            select(payments, refunds.c.reason)
            .outerjoin(refunds, refunds.c.payment_id == payments.c.id)
            .where(payments.c.provider == capture.provider, payments.c.provider_ref == capture.ref)
        )
        row = found.one()
        if row.order_id != int(order.number):  # then it may be another amount, too; otherwise it cannot be
            return Captured(Fate.REF_REUSED, order)
        # Read again: in PostgreSQL we may have waited for the transaction that has just decided about it.
        return Captured(_fate(row), await _order(connection, row.order_id), row.id)

    async def _decide(self, connection: AsyncConnection, payment_id: int, number: int, provider: str) -> Fate:
        if await self._endings.pay(connection, number, f"paid:{provider}"):
            await connection.execute(_decided(payment_id).values(settles=number))
            return Fate.SETTLED
        order = await _order(connection, number)
        assert order is not None, "orders are never deleted"
        if order.state in OVER and order.replaced_by is None:
            return Fate.LATE
        if order.state is OrderState.REFUNDED:
            await self._owe(connection, payment_id, ALREADY_REFUNDED)
            return Fate.REFUNDED
        await self._owe(connection, payment_id, ALREADY_PAID)
        return Fate.SURPLUS

    async def _owe(self, connection: AsyncConnection, payment_id: int, reason: str) -> bool:
        """The money has to go back. False if that has been decided already."""
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
    async def refund_done(self, refund_id: int) -> bool:
        now_ms = self._database.now_ms
        async with writing(self._database) as connection:
            done = await connection.execute(
                update(refunds)
                .where(refunds.c.id == refund_id)
                .values(done_ms=func.coalesce(refunds.c.done_ms, now_ms), next_ms=null())
            )
            return done.rowcount == 1

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


class _Due:
    """What waits for its time, in a table that has such a column."""

    def __init__(self, id_: ColumnElement[int], next_ms: ColumnElement[int], database: Database) -> None:
        self._database = database
        due = select(id_).where(next_ms <= database.now_ms).order_by(next_ms)
        self._one = due.limit(1)
        self._some = due.limit(bindparam("count")).with_for_update(skip_locked=True)

    async def is_any(self) -> bool:
        """Looks without the writers' lock: mostly there is nothing to do."""
        async with reading(self._database) as connection:
            return (await connection.execute(self._one)).first() is not None

    async def take(self, connection: AsyncConnection, count: int) -> list[int]:
        return list(await connection.scalars(self._some, {"count": count}))


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
    """Only once, whichever process tries."""
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
    return select(refunds, payments.c.order_id, payments.c.provider, payments.c.provider_ref).join(
        payments, payments.c.id == refunds.c.payment_id
    )


def to_capture(row: AnyRow) -> Capture:
    return Capture(provider=row.provider, ref=row.provider_ref, amount_cents=row.amount_cents, currency=row.currency)


def to_refund(row: AnyRow) -> Refund:
    return Refund(
        id=row.id,
        capture=to_capture(row),
        number=OrderNumber.from_int(row.order_id),
        reason=row.reason,
        attempts=row.attempts,
        created_ms=row.created_ms,
        done_ms=row.done_ms,
    )
