"""Money that comes for an order that is over: it pays the order in its place, or goes back."""

import asyncio

import pytest
from sqlalchemy import select

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.tables import order_events
from seckill.domain.dead_letter import LetterState
from seckill.domain.order import OrderState
from seckill.domain.payment_fate import Fate
from seckill.ports.payment import Settlement
from seckill.ports.transport import Delivery
from tests.backends.sql.looking import rows, write
from tests.backends.sql.making import admission
from tests.backends.sql.paying import (
    PRICE,
    capture,
    check_money,
    everything,
    make_late,
    make_order,
    make_round,
    state_of,
)


async def test_a_late_payment_pays_the_order_in_its_place(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    old = await make_order(ledger, round_, 1)
    late = await make_late(ledger, old)
    assert (late.ref, late.release_epoch, late.round_over) == (round_.ref, 1, False)
    new = admission(round_, 2, user="ann")
    assert await ledger.payments.settle(late, new.number) is Settlement.NOT_WRITTEN
    await ledger.record([new])
    assert await ledger.payments.settle(late, new.number) is Settlement.DONE
    assert await ledger.payments.settle(late, new.number) is Settlement.DECIDED
    assert await ledger.payments.give_back(late, "x") is False
    again = await ledger.payments.capture(old.number, capture("late"), 5)
    assert again.fate is Fate.REPLACED
    assert again.order is not None
    assert (again.order.state, again.order.replaced_by) == (OrderState.CANCELLED, new.number)
    assert await state_of(ledger, new.number) is OrderState.PAID
    assert await ledger.payments.take_late(10, 5) == []
    await check_money(ledger)


@pytest.mark.parametrize("end", ["cancelled", "expired", "failed"])
async def test_a_late_payment_that_cannot_be_used_goes_back(ledger: SqlLedger, end: str) -> None:
    round_ = await make_round(ledger)
    old = admission(round_, 1, user="ann")
    if end == "failed":
        await ledger.set_aside(Delivery(2, "1-1", b"{}", old), "bad", 0)
        [letter] = await ledger.letters(LetterState.RETRYING, 1)
        await ledger.bury(letter, old, "bad")
    else:
        await ledger.record([old])
    if end == "expired":
        await write(ledger, "UPDATE orders SET expires_ms = 1")
        await ledger.expire_due(10)
    elif end == "cancelled":
        await ledger.cancel(old.number, "ann")
    assert await state_of(ledger, old.number) == end
    captured = await ledger.payments.capture(old.number, capture(), 0)
    late = await ledger.payments.late(captured.payment_id)
    assert late is not None
    assert await ledger.payments.give_back(late, "sold_out") is True
    assert await ledger.payments.give_back(late, "sold_out") is False
    assert await state_of(ledger, old.number) is OrderState.REFUNDED
    again = await ledger.payments.capture(old.number, capture(), 5)
    assert again.fate is Fate.REFUNDED
    [refund] = await ledger.payments.refunds(10)
    assert (refund.reason, refund.capture.amount_cents, refund.done_ms) == ("sold_out", PRICE, None)
    last = (await rows(ledger, select(order_events).order_by(order_events.c.id.desc())))[0]
    assert (last.from_state, last.to_state) == (end, "refunded")
    told = [item for item in await ledger.outbox(10) if item.state is OrderState.REFUNDED]
    assert [(item.number, item.release) for item in told] == [(old.number, None)]
    await check_money(ledger)


async def test_two_late_payments_for_one_order_use_one_place(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    old = await make_order(ledger, round_, 1)
    lates = [await make_late(ledger, old, ref) for ref in ("a", "b")]
    new = await make_order(ledger, round_, 2)
    results = await asyncio.gather(*(ledger.payments.settle(late, new.number) for late in lates))
    assert sorted(results) == [Settlement.DONE, Settlement.OVER]
    loser = lates[results.index(Settlement.OVER)]
    assert await ledger.payments.give_back(loser, "replacement_over") is True
    [refund] = await ledger.payments.refunds(10)
    assert refund.reason == "already_paid"
    order = await ledger.order(old.number)
    assert order is not None
    assert (order.state, order.replaced_by) == (OrderState.CANCELLED, new.number), "not refunded: it was replaced"
    third = await ledger.payments.capture(old.number, capture("c"), 5)
    assert third.fate is Fate.SURPLUS
    await check_money(ledger)


async def test_late_money_for_one_order_pays_no_second_one(ledger: SqlLedger) -> None:
    """It pays none even if another process comes with a new order, or if the first money has gone back."""
    round_ = await make_round(ledger)
    replaced, refunded = [await make_order(ledger, round_, counter) for counter in (1, 2)]
    first, second = [await make_late(ledger, replaced, ref) for ref in ("a", "b")]
    third, fourth = [await make_late(ledger, refunded, ref) for ref in ("c", "d")]
    new = await make_order(ledger, round_, 3)
    other = admission(round_, 4, user="ann", slot=2)
    await ledger.record([other])
    assert await ledger.payments.settle(first, new.number) is Settlement.DONE
    assert await ledger.payments.give_back(third, "sold_out") is True
    for late in (second, fourth):
        assert await ledger.payments.settle(late, other.number) is Settlement.OVER
    assert await state_of(ledger, other.number) is OrderState.UNPAID
    await check_money(ledger)


@pytest.mark.parametrize("end", ["pay", "cancel"])
async def test_a_new_order_that_ended_meanwhile_is_left_alone(ledger: SqlLedger, end: str) -> None:
    round_ = await make_round(ledger)
    late = await make_late(ledger, await make_order(ledger, round_, 1))
    new = await make_order(ledger, round_, 2)
    if end == "pay":
        await ledger.pay(new.number, "ann", capture("own"))
    else:
        await ledger.cancel(new.number, "ann")
    before = await everything(ledger)
    assert await ledger.payments.settle(late, new.number) is Settlement.OVER
    assert await everything(ledger) == before
    assert await ledger.payments.give_back(late, "replacement_over") is True
    assert await state_of(ledger, late.order.number) is OrderState.REFUNDED
    another = await ledger.payments.capture(late.order.number, capture("again"), 5)
    assert another.fate is Fate.REFUNDED
    await check_money(ledger)


async def test_settling_and_giving_back_at_the_same_instant_have_one_winner(ledger: SqlLedger, ledger_url: str) -> None:
    other = open_ledger(ledger_url)
    round_ = await make_round(ledger)
    for counter in range(1, 21, 2):
        late = await make_late(ledger, await make_order(ledger, round_, counter), f"r{counter}")
        new = await make_order(ledger, round_, counter + 1)
        await asyncio.gather(
            ledger.payments.settle(late, new.number),
            other.payments.give_back(late, "sold_out"),
            other.payments.settle(late, new.number),
            ledger.payments.give_back(late, "sold_out"),
        )
        await ledger.cancel(new.number, "ann")
        await check_money(ledger)
    await other.close()
    assert await ledger.payments.take_late(10, 5) == []
