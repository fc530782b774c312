"""The domain says what may become of an order, and every way to change one in a database keeps to it."""

import secrets
from collections.abc import Awaitable, Callable, Mapping

import pytest
from sqlalchemy import insert

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import payments
from seckill.domain.admission import Admission
from seckill.domain.dead_letter import Letter
from seckill.domain.order import TRANSITIONS, OrderState
from seckill.ports.payment import LatePayment
from seckill.ports.queue_entry import write_entry
from seckill.ports.transport import Delivery
from tests.backends.sql.looking import event_rows, write
from tests.backends.sql.making import admission
from tests.backends.sql.paying import PRICE, cancelling, capture, make_late, make_order, make_round, refunding

Act = Callable[[SqlLedger, Admission], Awaitable[None]]


async def letter_about(ledger: SqlLedger, made: Admission) -> Letter:
    await ledger.set_aside(Delivery(0, f"{int(made.number)}-1", write_entry(made), made), "refused", 0)
    (letter,) = await ledger.letters_about(made.number)
    return letter


async def late_for(ledger: SqlLedger, made: Admission) -> LatePayment:
    """Makes a payment that came too late for the order, whatever state it is in."""
    late = insert(payments).values(
        order_id=int(made.number),
        provider="p",
        provider_ref=secrets.token_hex(8),
        amount_cents=PRICE,
        currency="CNY",
        next_ms=1,
        created_ms=1,
    )
    await write(ledger, late)
    (found,) = [each for each in await ledger.payments.take_late(100, 0) if each.order.number == made.number]
    return found


async def record(ledger: SqlLedger, made: Admission) -> None:
    await ledger.record([made])


async def pay(ledger: SqlLedger, made: Admission) -> None:
    await ledger.pay(made.number, made.user, capture(f"own-{int(made.number)}"))


async def notice(ledger: SqlLedger, made: Admission) -> None:
    await ledger.payments.capture(made.number, capture(f"notice-{int(made.number)}"), 5)


async def settle(ledger: SqlLedger, made: Admission) -> None:
    """It is to take the place of another one, whose money came late."""
    round_ = await make_round(ledger)
    late = await make_late(
        ledger, await make_order(ledger, round_, 1000 + made.number.counter), f"of-{int(made.number)}"
    )
    await ledger.payments.settle(late, made.number)


async def cancel(ledger: SqlLedger, made: Admission) -> None:
    await ledger.cancel(made.number, made.user)


async def end_forgotten(ledger: SqlLedger, made: Admission) -> None:
    await ledger.end_forgotten([made.number])


async def expire(ledger: SqlLedger, made: Admission) -> None:
    await write(ledger, "UPDATE orders SET expires_ms = 1 WHERE id = :id", id=int(made.number))
    await ledger.expire_due(100)


async def bury(ledger: SqlLedger, made: Admission) -> None:
    await ledger.bury(await letter_about(ledger, made), made, "given up")


async def bury_forgotten(ledger: SqlLedger, made: Admission) -> None:
    await ledger.bury_forgotten([made])


async def give_back(ledger: SqlLedger, made: Admission) -> None:
    if await ledger.order(made.number) is not None:  # there is no payment for an order without a row
        await ledger.payments.give_back(await late_for(ledger, made), "sold_out")


async def cancel_by_operator(ledger: SqlLedger, made: Admission) -> None:
    await ledger.actions.act(cancelling(made))


async def refund_by_operator(ledger: SqlLedger, made: Admission) -> None:
    await ledger.actions.act(refunding(made))


WAYS: Mapping[OrderState, tuple[Act, ...]] = {
    OrderState.QUEUED: (),  # an order is queued when the gate has admitted it, and never again
    OrderState.UNPAID: (record,),
    OrderState.PAID: (pay, notice, settle),
    OrderState.CANCELLED: (cancel, end_forgotten, cancel_by_operator),
    OrderState.EXPIRED: (expire,),
    OrderState.FAILED: (bury, bury_forgotten),
    OrderState.REFUNDED: (give_back, refund_by_operator),
}
# How an order gets into the state that it begins with.
FIRST: Mapping[OrderState, tuple[Act, ...]] = {
    OrderState.QUEUED: (),
    OrderState.UNPAID: (record,),
    OrderState.PAID: (record, pay),
    OrderState.CANCELLED: (record, cancel),
    OrderState.EXPIRED: (record, expire),
    OrderState.FAILED: (bury_forgotten,),
    OrderState.REFUNDED: (record, cancel, give_back),
}


async def state_of(ledger: SqlLedger, made: Admission) -> OrderState:
    order = await ledger.order(made.number)
    return OrderState.QUEUED if order is None else order.state


@pytest.mark.parametrize(
    ("way", "to"),
    [(way, to) for to, ways in WAYS.items() for way in ways],
    ids=lambda each: getattr(each, "__name__", None),
)
async def test_no_way_leads_where_the_domain_has_none(ledger: SqlLedger, way: Act, to: OrderState) -> None:
    round_ = await make_round(ledger)
    for counter, before in enumerate(OrderState, start=1):
        made = admission(round_, counter, user="ann", slot=counter)
        for step in FIRST[before]:
            await step(ledger, made)
        assert await state_of(ledger, made) is before
        told = len(await event_rows(ledger))
        await way(ledger, made)
        # A priced order is never paid before it has been written as unpaid.
        legal = to in TRANSITIONS[before] and (before, to) != (OrderState.QUEUED, OrderState.PAID)
        if to is OrderState.REFUNDED:  # by an operator if it was paid, because the money came late if it was over
            legal &= (before is OrderState.PAID) == (way is refund_by_operator)
        assert await state_of(ledger, made) is (to if legal else before), (before, to)
        events = [row for row in (await event_rows(ledger))[told:] if row.order_id == int(made.number)]
        assert [(row.from_state, row.to_state) for row in events] == ([(before, to)] if legal else [])


async def test_a_free_order_is_paid_at_once(ledger: SqlLedger) -> None:
    """The one way that is open to it, and to no order that costs something."""
    round_ = await make_round(ledger)
    await write(ledger, "UPDATE sales SET price_cents = 0")
    made = admission(round_, 1, user="ann")
    await ledger.record([made])
    assert await state_of(ledger, made) is OrderState.PAID
    for way in (record, cancel, cancel_by_operator, end_forgotten, expire, bury, bury_forgotten):
        await way(ledger, made)
        assert await state_of(ledger, made) is OrderState.PAID
