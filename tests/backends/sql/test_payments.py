"""The ledger's part of payments: each capture is noted once, pays for one order at most, and otherwise goes back."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import func, select, table

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql import payments as payments_module
from seckill.backends.sql.tables import orders, payments
from seckill.domain.order import OrderState
from seckill.domain.payment_fate import Fate
from seckill.ports.payment import Capture, Settlement
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


async def test_an_unpaid_order_is_paid_and_a_repeat_changes_nothing(ledger: SqlLedger) -> None:
    made = await make_order(ledger, await make_round(ledger))
    first = await ledger.payments.capture(made.number, capture(), 5)
    assert (first.fate, first.new) == (Fate.SETTLED, True)
    assert first.order is not None
    assert first.order.state is OrderState.PAID
    before = await everything(ledger)
    again = await ledger.payments.capture(made.number, capture(), 5)
    assert (again.fate, again.new, again.order, again.payment_id) == (
        Fate.SETTLED,
        False,
        first.order,
        first.payment_id,
    )
    assert await everything(ledger) == before
    await check_money(ledger)


@pytest.mark.parametrize(
    ("number", "wrong", "fate"),
    [
        (1, capture("r2", cents=PRICE - 1), Fate.WRONG_AMOUNT),
        (1, capture("r2", cents=PRICE + 1), Fate.WRONG_AMOUNT),
        (1, capture("r2", currency="EUR"), Fate.WRONG_AMOUNT),
        (9, capture("r2"), Fate.UNKNOWN_ORDER),
        (2, capture("r1"), Fate.REF_REUSED),
    ],
)
async def test_what_does_not_fit_changes_nothing(ledger: SqlLedger, number: int, wrong: Capture, fate: Fate) -> None:
    round_ = await make_round(ledger)
    made = [await make_order(ledger, round_, counter) for counter in (1, 2, 3)]
    await ledger.payments.capture(made[0].number, capture("r1"), 5)
    before = await everything(ledger)
    refused = await ledger.payments.capture(admission(round_, number).number, wrong, 5)
    assert (refused.fate, refused.payment_id) == (fate, 0)
    assert await everything(ledger) == before


async def test_a_second_capture_goes_back_and_stays_so(ledger: SqlLedger) -> None:
    made = await make_order(ledger, await make_round(ledger))
    await ledger.payments.capture(made.number, capture("r1"), 5)
    for _ in range(2):
        second = await ledger.payments.capture(made.number, capture("r2"), 5)
        assert second.fate is Fate.SURPLUS
        assert second.order is not None
        assert second.order.state is OrderState.PAID
    [refund] = await ledger.payments.refunds(10)
    assert (refund.capture, refund.number, refund.reason) == (capture("r2"), made.number, "already_paid")
    await check_money(ledger)


async def test_control_without_the_guards_parallel_notices_pay_twice(ledger: SqlLedger) -> None:
    """The same crowd against code that looks first and writes then, on tables without the unique keys."""
    made = await make_order(ledger, await make_round(ledger))
    await write(ledger, "CREATE TABLE naive (order_id BIGINT, ref VARCHAR(9))")
    everybody_has_read = asyncio.Barrier(8)

    async def naive(ref: str) -> None:
        known = await rows(ledger, select(payments.c.id).where(payments.c.provider_ref == ref))
        state = await state_of(ledger, made.number)
        await everybody_has_read.wait()
        if not known and state is OrderState.UNPAID:
            await write(ledger, f"INSERT INTO naive VALUES ({int(made.number)}, '{ref}')")
            await write(ledger, f"UPDATE orders SET state = 'paid' WHERE id = {int(made.number)}")

    await asyncio.gather(*(naive(ref) for ref in ["a", "b"] * 4))
    [(captures,)] = await rows(ledger, select(func.count()).select_from(table("naive")))
    await write(ledger, "DROP TABLE naive")
    assert captures > 1


async def test_parallel_notices_over_two_nodes_have_one_outcome(ledger: SqlLedger, ledger_url: str) -> None:
    """Each notice eight times at once, two different captures for each order: one pays, one goes back (S26)."""
    other = open_ledger(ledger_url)
    round_ = await make_round(ledger)
    made = [await make_order(ledger, round_, counter) for counter in range(1, 7)]
    works = [
        (ledger, other)[copy % 2].payments.capture(order.number, capture(f"{order.number.counter}-{ref}"), 5)
        for order in made
        for copy in range(8)
        for ref in ("a", "b")
    ]
    answers = await asyncio.gather(*works)
    await other.close()
    assert sum(answer.new for answer in answers) == 12
    by_payment: dict[int, set[Fate]] = {}
    for answer in answers:
        by_payment.setdefault(answer.payment_id, set()).add(answer.fate)
    assert sorted(map(len, by_payment.values())) == [1] * 12, "all callers get the same answer"
    assert sorted(fate for fates in by_payment.values() for fate in fates) == [Fate.SETTLED] * 6 + [Fate.SURPLUS] * 6
    await check_money(ledger)


@pytest.mark.parametrize("window", ["ledger.capture.inside", "ledger.settle.inside", "ledger.give_back.inside"])
async def test_dying_inside_a_transaction_leaves_nothing(
    ledger: SqlLedger, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = await make_round(ledger)
    late = await make_late(ledger, await make_order(ledger, round_, 1))
    unpaid = await make_order(ledger, round_, 2)
    before = await everything(ledger)
    hit = []

    def die(name: str) -> None:
        if name == window:
            hit.append(name)
            raise ConnectionAbortedError(name)

    works: dict[str, Callable[[], Awaitable[object]]] = {
        "ledger.capture.inside": lambda: ledger.payments.capture(unpaid.number, capture("new"), 5),
        "ledger.settle.inside": lambda: ledger.payments.settle(late, unpaid.number),
        "ledger.give_back.inside": lambda: ledger.payments.give_back(late, "sold_out"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(payments_module, "reached", die)
        with pytest.raises(Exception, match="try again"):
            await works[window]()
    assert hit == [window]
    assert await everything(ledger) == before
    assert await works[window]()
    assert await everything(ledger) != before
    await check_money(ledger)


async def test_several_keepers_share_what_is_due(ledger: SqlLedger, ledger_url: str) -> None:
    other = open_ledger(ledger_url)
    round_ = await make_round(ledger)
    lates = [await make_late(ledger, await make_order(ledger, round_, i), f"r{i}") for i in range(1, 13)]
    shares = await asyncio.gather(*((ledger, other)[i % 2].payments.take_late(4, 60) for i in range(6)))
    taken = [late.id for share in shares for late in share]
    taken += [late.id for late in await ledger.payments.take_late(20, 60)]
    assert sorted(taken) == [late.id for late in lates], "each once"
    assert await ledger.payments.take_late(20, 60) == [], "until the lease is over"
    await ledger.payments.put_off_late(lates[0].id, 0)
    assert [late.id for late in await ledger.payments.take_late(20, 60)] == [lates[0].id]
    for late in lates:
        await ledger.payments.give_back(late, "ended")
    shares_ = await asyncio.gather(*((ledger, other)[i % 2].payments.take_refunds(4, 60) for i in range(6)))
    ids = [refund.id for share in shares_ for refund in share]
    ids += [refund.id for refund in await ledger.payments.take_refunds(20, 60)]
    assert len(ids) == len(set(ids)) == 12
    await ledger.payments.put_off_refund(ids[0], 0)
    [again] = await ledger.payments.take_refunds(20, 60)
    assert (again.id, again.attempts) == (ids[0], 2)
    assert await ledger.payments.refund_done(ids[0]) is True
    done = await ledger.payments.refund(ids[0])
    assert done is not None
    await ledger.payments.put_off_refund(ids[0], 0)
    assert await ledger.payments.refund_done(ids[0]) is True
    assert await ledger.payments.refund(ids[0]) == done, "done is done"
    assert await ledger.payments.refund_done(999) is False
    assert (await ledger.payments.refunds(20))[-1] == done, "what is still to be done stands first"
    await other.close()


async def test_money_equals_orders_after_a_random_mix(ledger: SqlLedger, ledger_url: str) -> None:
    """Several tasks on two nodes pay, notify (some twice), cancel, expire and decide about late money (I14)."""
    other = open_ledger(ledger_url)
    chance = random.Random(26)
    round_ = await make_round(ledger, units=1000)
    made = [await make_order(ledger, round_, counter, user=f"u{counter}", slot=1) for counter in range(1, 31)]
    spare = [await make_order(ledger, round_, counter, user=f"u{counter - 30}", slot=2) for counter in range(31, 61)]
    await write(ledger, f"UPDATE orders SET expires_ms = 1 WHERE id % 3 = 0 AND id < {int(spare[0].number)}")
    fates: dict[Fate, int] = {}

    async def decide(node: SqlLedger) -> int:
        due = await node.payments.take_late(2, 0)
        for late in due:  # every other order finds a place
            counter = late.order.number.counter
            if counter % 2 or await node.payments.settle(late, spare[counter - 1].number) is Settlement.OVER:
                await node.payments.give_back(late, "sold_out")
        return len(due)

    async def act() -> None:
        node = chance.choice((ledger, other))
        i = chance.randrange(len(made))
        match chance.randrange(6):
            case 0:
                await node.cancel(made[i].number, made[i].user)
            case 1:
                await node.pay(made[i].number, made[i].user, capture(f"press {i}"))
            case 2:
                await node.expire_due(1)
            case 3:
                await decide(node)
            case _:
                captured = await node.payments.capture(made[i].number, capture(f"{i}-{chance.randrange(3)}"), 0)
                fates[captured.fate] = fates.get(captured.fate, 0) + 1

    async def act_often() -> None:
        for _ in range(60):
            await act()

    for order in made[:4]:
        await make_late(ledger, order, f"late {order.number.counter}")
    await asyncio.gather(*(act_often() for _ in range(6)))
    while await decide(ledger):
        pass
    await other.close()
    assert set(fates) >= {Fate.SETTLED, Fate.SURPLUS}, fates
    [(replaced,)] = await rows(ledger, select(func.count()).where(orders.c.replaced_by.is_not(None)))
    [(refunded,)] = await rows(ledger, select(func.count()).where(orders.c.state == OrderState.REFUNDED))
    assert min(replaced, refunded) > 0, "both ways were gone"
    await check_money(ledger)
    doubled = select(payments.c.settles).group_by(payments.c.settles).having(func.count() > 1)
    assert await rows(ledger, doubled.where(payments.c.settles.is_not(None))) == []
