"""Operators cancel and refund: what becomes of the money, of the units, and of the same request made twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import func, select

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql import order_actions as order_actions_module
from seckill.backends.sql.tables import order_actions, orders, outbox, refunds
from seckill.domain.admission import Admission
from seckill.domain.order import OrderState
from seckill.domain.payment_fate import Fate
from seckill.domain.sale import Round
from seckill.ports.order_action import Acted, ActionOutcome, OrderAction
from tests.backends.sql.looking import event_rows, rows, sold, write
from tests.backends.sql.making import admission
from tests.backends.sql.paying import (
    PRICE,
    cancelling,
    capture,
    check_money,
    everything,
    fresh_key,
    make_late,
    make_order,
    make_paid,
    make_round,
    refunding,
)


async def act(ledger: SqlLedger, action: OrderAction) -> Acted:
    acted = await ledger.actions.act(action)
    assert acted is not None
    return acted


async def released(ledger: SqlLedger) -> list[int]:
    return [row.order_id for row in await rows(ledger, select(outbox.c.order_id).where(outbox.c.kind == "release"))]


async def check_units(ledger: SqlLedger, round_: Round) -> None:
    """Checks that the units sold are those that orders hold, and that all others were released, once."""
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert tally.sold == await sold(ledger, round_.id) == tally.unpaid + tally.paid + tally.kept
    assert tally.recorded == tally.sold + tally.ended
    assert await ledger.recount(round_.id) is False
    given_back = await rows(ledger, select(orders.c.id).where(orders.c.active_slot.is_(None)).order_by(orders.c.id))
    assert sorted(await released(ledger)) == [row.id for row in given_back]


async def test_an_operator_cancels_what_is_unpaid(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    made = await make_order(ledger, round_)
    acted = await act(ledger, cancelling(made, reason="a mistake in the price"))
    assert (acted.outcome, acted.order.state, acted.order.closed_by) == (
        ActionOutcome.DONE,
        OrderState.CANCELLED,
        "operator",
    )
    assert await released(ledger) == [int(made.number)]
    [(reason,)] = await rows(ledger, select(order_actions.c.reason))
    assert reason == "a mistake in the price"
    assert (await event_rows(ledger))[-1].cause == "cancelled by an operator"
    await check_units(ledger, round_)


async def test_a_buyer_does_not_wait_for_what_an_operator_has_cancelled(ledger: SqlLedger) -> None:
    """Cooling down is for buyers who let orders lapse."""
    round_ = await make_round(ledger)
    mine = await make_order(ledger, round_, 1, user="ann")
    theirs = await make_order(ledger, round_, 2, user="bob")
    await ledger.cancel(mine.number, "ann")
    await act(ledger, cancelling(theirs))
    lapsed = {item.number: item.release.lapsed for item in await ledger.outbox(10) if item.release}
    assert lapsed == {mine.number: True, theirs.number: False}
    held = await ledger.holdings(round_.id, "", 10)
    assert [order.lapsed_ms > 0 for order in held["ann"] + held["bob"]] == [True, False]
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert tally.lapsed == 1


@pytest.mark.parametrize("back", [True, False])
async def test_a_refund_in_full(ledger: SqlLedger, back: bool) -> None:
    round_ = await make_round(ledger)
    made = await make_paid(ledger, round_)
    acted = await act(ledger, refunding(made, back=back, reason="lost in the post"))
    order = acted.order
    assert (acted.outcome, order.state, order.refunded_cents, order.closed_by) == (
        ActionOutcome.DONE,
        OrderState.REFUNDED,
        PRICE,
        "operator",
    )
    assert order.closed_ms is not None
    [refund] = await ledger.payments.refunds(10)
    assert (refund.amount_cents, refund.capture, refund.number) == (PRICE, capture("of-1"), made.number)
    assert (refund.reason, refund.explanation) == ("operator", "lost in the post")
    assert await released(ledger) == ([int(made.number)] if back else [])
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.paid, tally.kept, tally.sold) == ((0, 0, 0) if back else (0, 1, 1))
    [holding] = (await ledger.holdings(round_.id, "", 10))["ann"]
    assert (holding.live, holding.lapsed_ms) == (not back, 0)
    told = [(item.state, item.release is not None) for item in await ledger.outbox(10) if item.state != "paid"]
    assert told == [(OrderState.REFUNDED, back)]
    await check_money(ledger)
    await check_units(ledger, round_)


async def test_refunds_in_parts_up_to_the_price(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    made = await make_paid(ledger, round_)
    first = await act(ledger, refunding(made, 200, back=False))
    assert (first.outcome, first.order.state, first.order.refunded_cents) == (ActionOutcome.DONE, OrderState.PAID, 200)
    before = await everything(ledger)
    refused = await act(ledger, refunding(made, PRICE - 199, back=False))
    assert (refused.outcome, refused.order.refunded_cents) == (ActionOutcome.TOO_MUCH, 200)
    assert await everything(ledger) == before
    await check_money(ledger)
    second = await act(ledger, refunding(made, 100, back=False))
    assert (second.order.state, second.order.refunded_cents) == (OrderState.PAID, 300)
    last = await act(ledger, refunding(made, back=False))
    assert (last.order.state, last.order.refunded_cents) == (OrderState.REFUNDED, PRICE)
    found = await ledger.payments.refunds(10)
    assert [refund.amount_cents for refund in found] == [PRICE - 300, 100, 200]
    assert {refund.capture for refund in found} == {capture("of-1")}
    assert (await act(ledger, refunding(made, 1))).outcome is ActionOutcome.WRONG_STATE
    # The state changed once; of each part the buyer was told.
    assert [row.to_state for row in await event_rows(ledger)] == ["unpaid", "paid", "refunded"]
    assert [item.state for item in await ledger.outbox(10)] == ["paid", "paid", "paid", "refunded"]
    await check_money(ledger)
    await check_units(ledger, round_)


async def test_units_go_back_with_any_part_and_only_once(ledger: SqlLedger) -> None:
    """A shop may take goods back and keep a part of the price."""
    round_ = await make_round(ledger)
    made = await make_paid(ledger, round_)
    part = await act(ledger, refunding(made, 400, back=True))
    assert (part.order.state, part.order.closed_ms) == (OrderState.PAID, None)
    assert await released(ledger) == [int(made.number)]
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.paid, tally.kept, tally.sold, tally.ended) == (0, 0, 0, 1)
    await check_units(ledger, round_)
    await check_money(ledger)
    rest = await act(ledger, refunding(made, back=True))
    assert rest.order.state is OrderState.REFUNDED
    assert await released(ledger) == [int(made.number)], "once"
    assert await sold(ledger, round_.id) == 0
    await check_units(ledger, round_)
    await check_money(ledger)


async def test_a_free_order_is_taken_back_without_money(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    await write(ledger, "UPDATE sales SET price_cents = 0")
    made = await make_order(ledger, round_)
    assert (await act(ledger, refunding(made, 1))).outcome is ActionOutcome.TOO_MUCH
    assert (await act(ledger, refunding(made))).order.state is OrderState.REFUNDED
    assert await ledger.payments.refunds(10) == []
    await check_units(ledger, round_)


async def test_the_same_request_counts_once_and_for_one_wish_only(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    made = await make_paid(ledger, round_)
    other = await make_paid(ledger, round_, 2)
    key = fresh_key()
    wish = refunding(made, 100, request_id=key)
    assert (await act(ledger, wish)).outcome is ActionOutcome.DONE
    before = await everything(ledger)
    again = await act(ledger, wish)
    assert (again.outcome, again.order.refunded_cents) == (ActionOutcome.REPEATED, 100)
    for another in (
        refunding(made, 101, request_id=key),
        refunding(made, request_id=key),
        refunding(made, 100, request_id=key, back=False),
        refunding(made, 100, request_id=key, reason="another"),
        refunding(other, 100, request_id=key),
        cancelling(made, request_id=key),
    ):
        assert (await act(ledger, another)).outcome is ActionOutcome.KEY_REUSED
    assert await everything(ledger) == before
    # A refusal is not remembered.
    late = fresh_key()
    assert (await act(ledger, refunding(made, PRICE, request_id=late))).outcome is ActionOutcome.TOO_MUCH
    assert (await act(ledger, refunding(made, PRICE - 100, request_id=late))).outcome is ActionOutcome.DONE
    await check_money(ledger)


async def test_what_is_not_there_and_what_is_not_in_the_right_state(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    assert await ledger.actions.act(cancelling(admission(round_, 9))) is None
    unpaid, paid = await make_order(ledger, round_, 1), await make_paid(ledger, round_, 2)
    before = await everything(ledger)
    for wish, state in ((refunding(unpaid), OrderState.UNPAID), (cancelling(paid), OrderState.PAID)):
        refused = await act(ledger, wish)
        assert (refused.outcome, refused.order.state) == (ActionOutcome.WRONG_STATE, state)
    assert await everything(ledger) == before


async def test_money_that_comes_after_a_refund_goes_back(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    made = await make_paid(ledger, round_)
    await act(ledger, refunding(made, 100))
    assert (await ledger.payments.capture(made.number, capture("second"), 5)).fate is Fate.SURPLUS
    await act(ledger, refunding(made))
    assert (await ledger.payments.capture(made.number, capture("third"), 5)).fate is Fate.REFUNDED
    # Each capture keeps the fate that it was told.
    for ref, fate in (("of-1", Fate.SETTLED), ("second", Fate.SURPLUS), ("third", Fate.REFUNDED)):
        repeated = await ledger.payments.capture(made.number, capture(ref), 5)
        assert (repeated.fate, repeated.new) == (fate, False)
    order = await ledger.order(made.number)
    assert order is not None
    assert order.refunded_cents == PRICE
    await check_money(ledger)
    await check_units(ledger, round_)


async def test_an_order_that_is_paid_with_late_money_is_refunded_like_any_other(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    late = await make_late(ledger, await make_order(ledger, round_, 1))
    instead = await make_order(ledger, round_, 2)
    await ledger.payments.settle(late, instead.number)
    await act(ledger, refunding(instead, 200))
    [refund] = await ledger.payments.refunds(10)
    assert (refund.number, refund.amount_cents) == (instead.number, 200)
    await act(ledger, refunding(instead))
    await check_money(ledger)
    await check_units(ledger, round_)


async def test_dying_inside_leaves_nothing(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = await make_round(ledger)
    wishes = cancelling(await make_order(ledger, round_, 1)), refunding(await make_paid(ledger, round_, 2), 100)

    def die(name: str) -> None:
        raise ConnectionAbortedError(name)

    for wish in wishes:
        before = await everything(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(order_actions_module, "reached", die)
            with pytest.raises(Exception, match="try again"):
                await ledger.actions.act(wish)
        assert await everything(ledger) == before
        assert (await act(ledger, wish)).outcome is ActionOutcome.DONE
    await check_money(ledger)
    await check_units(ledger, round_)


@pytest.fixture
async def nodes(ledger: SqlLedger, ledger_url: str) -> AsyncIterator[tuple[SqlLedger, SqlLedger]]:
    other = open_ledger(ledger_url)
    yield ledger, other
    await other.close()


async def test_refunds_at_once_never_give_back_more_than_the_price(nodes: tuple[SqlLedger, SqlLedger]) -> None:
    """Eight refunds of 200 for an order of 500: two win. And eight in full: one wins."""
    round_ = await make_round(nodes[0])
    made = [await make_paid(nodes[0], round_, counter) for counter in range(1, 7)]
    wishes = [refunding(order, 200 if i % 2 else None, back=i % 3 > 0) for i, order in enumerate(made)]
    works = [
        act(nodes[copy % 2], refunding(order, wish.amount_cents, back=wish.return_unit))
        for copy in range(8)
        for order, wish in zip(made, wishes, strict=True)
    ]
    answers = await asyncio.gather(*works)
    for i, order in enumerate(made):
        outcomes = [acted.outcome for acted in answers if acted.order.number == order.number]
        assert outcomes.count(ActionOutcome.DONE) == (2 if i % 2 else 1)
        assert set(outcomes) == {ActionOutcome.DONE, ActionOutcome.TOO_MUCH if i % 2 else ActionOutcome.WRONG_STATE}
    await check_money(nodes[0])
    await check_units(nodes[0], round_)


async def test_one_request_at_once_refunds_once(nodes: tuple[SqlLedger, SqlLedger]) -> None:
    round_ = await make_round(nodes[0])
    wishes = [refunding(await make_paid(nodes[0], round_, counter), 100) for counter in range(1, 5)]
    answers = await asyncio.gather(*(act(nodes[copy % 2], wish) for copy in range(8) for wish in wishes))
    assert [acted.outcome for acted in answers].count(ActionOutcome.DONE) == len(wishes)
    assert {acted.outcome for acted in answers} == {ActionOutcome.DONE, ActionOutcome.REPEATED}
    assert {acted.order.refunded_cents for acted in answers} == {100}
    [(made,)] = await rows(nodes[0], select(func.count()).select_from(refunds))
    assert made == len(wishes)
    await check_money(nodes[0])


async def test_control_check_then_act_refunds_twice(ledger: SqlLedger) -> None:
    """The same crowd against code that looks first and writes then."""
    made = await make_paid(ledger, await make_round(ledger))
    everybody_has_read = asyncio.Barrier(8)

    async def naive() -> None:
        [(left,)] = await rows(ledger, select(orders.c.price_cents - orders.c.refunded_cents))
        await everybody_has_read.wait()
        if left >= 200:
            await write(
                ledger, f"UPDATE orders SET refunded_cents = refunded_cents + 200 WHERE id = {int(made.number)}"
            )

    await asyncio.gather(*(naive() for _ in range(8)))
    [(given_back,)] = await rows(ledger, select(orders.c.refunded_cents))
    assert given_back > PRICE


async def test_a_cancellation_against_pay_and_expiry_has_one_winner(nodes: tuple[SqlLedger, SqlLedger]) -> None:
    round_ = await make_round(nodes[0], units=200)
    ended: dict[OrderState, int] = {}

    async def race(made: Admission, i: int) -> None:
        node, other = nodes[i % 2], nodes[1 - i % 2]
        if i % 2:
            await write(node, f"UPDATE orders SET expires_ms = 1 WHERE id = {int(made.number)}")
        rival = other.expire_due(1) if i % 2 else other.payments.capture(made.number, capture(f"r{i}"), 5)
        rivals = [rival, act(node, cancelling(made))]
        results = await asyncio.gather(*(rivals if i % 4 < 2 else rivals[::-1]))
        [acted] = [result for result in results if isinstance(result, Acted)]
        order = await node.order(made.number)
        assert order is not None
        assert (acted.outcome is ActionOutcome.DONE) == (order.closed_by == "operator")
        ended[order.state] = ended.get(order.state, 0) + 1

    for i in range(40):
        await race(await make_order(nodes[0], round_, i + 1, user=f"u{i}", slot=1), i)
    assert ended.get(OrderState.CANCELLED, 0) > 0, ended
    assert len(ended) > 1, ended
    await check_money(nodes[0])
    await check_units(nodes[0], round_)


async def test_a_refund_against_another_payment_of_the_same_order(nodes: tuple[SqlLedger, SqlLedger]) -> None:
    round_ = await make_round(nodes[0])
    made = [await make_paid(nodes[0], round_, counter) for counter in range(1, 7)]
    works = []
    for i, order in enumerate(made):
        works += [nodes[0].payments.capture(order.number, capture(f"more-{i}"), 5), act(nodes[1], refunding(order))]
    await asyncio.gather(*works)
    found = await nodes[0].payments.refunds(100)
    assert sorted(refund.capture.ref for refund in found) == sorted(
        [f"of-{i}" for i in range(1, 7)] + [f"more-{i}" for i in range(6)]
    )
    await check_money(nodes[0])
    await check_units(nodes[0], round_)
