"""Paid, cancelled, expired: one winner, and whatever follows in the same transaction."""

import asyncio

import pytest

from seckill.backends.sql import SqlLedger
from seckill.domain.order import Order, OrderState
from seckill.domain.sale import Round
from seckill.errors import LedgerRefused
from seckill.ports.ledger import Changed
from seckill.ports.payment import Capture
from seckill.ports.transport import Delivery
from tests.backends.sql.looking import write
from tests.backends.sql.making import admission, draft


async def one_order(ledger: SqlLedger, *, pay_within_s: int = 900, quantity: int = 1) -> tuple[Round, Order]:
    sale = await ledger.create_sale(draft(limit_per_buyer=9, pay_within_s=pay_within_s), lane=2)
    made = admission(sale.round, 1, user="ann", quantity=quantity)
    await ledger.record([made])
    order = await ledger.order(made.number)
    assert order is not None
    return sale.round, order


def capture(ref: str = "r1", cents: int = 500) -> Capture:
    return Capture(provider="test", ref=ref, amount_cents=cents, currency="CNY")


async def overdue(ledger: SqlLedger) -> None:
    await write(ledger, "UPDATE orders SET expires_ms = 1 WHERE state = 'unpaid'")


async def test_paid(ledger: SqlLedger) -> None:
    round_, order = await one_order(ledger)
    paid = await ledger.pay(order.number, "ann", capture())
    assert paid is not None
    assert (paid.done, paid.order.state, paid.order.paid_ms is not None) == (True, OrderState.PAID, True)
    (item,) = await ledger.outbox(10)
    assert (item.release, item.number, item.state) == (None, order.number, OrderState.PAID)
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.sold, tally.paid, tally.unpaid, tally.ended) == (1, 1, 0, 0)
    again = await ledger.pay(order.number, "ann", capture("r2"))
    assert again == Changed(paid.order, False)


async def test_cancelled(ledger: SqlLedger) -> None:
    round_, order = await one_order(ledger, quantity=2)
    ended = await ledger.cancel(order.number, "ann")
    assert ended is not None
    assert (ended.done, ended.order.state, ended.order.closed_ms is not None) == (True, OrderState.CANCELLED, True)
    (item,) = await ledger.outbox(10)
    assert item.release is not None
    assert (item.release.user, item.release.number, item.release.epoch) == ("ann", order.number, 1)
    assert (item.ref, item.state) == (round_.ref, OrderState.CANCELLED)
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.sold, tally.recorded, tally.ended) == (0, 2, 2)
    await ledger.outbox_done([item.id])
    assert await ledger.outbox(10) == []
    assert await ledger.outbox(10, [round_.id]) == []


async def test_an_end_that_is_not_committed_leaves_no_release(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It breaks off after everything was written and before the commit (F53)."""
    _, order = await one_order(ledger)

    def break_off(name: str) -> None:
        assert name == "ledger.end.inside"
        raise LedgerRefused("broken off")

    monkeypatch.setattr("seckill.backends.sql.end_orders.reached", break_off)
    with pytest.raises(LedgerRefused, match="broken off"):
        await ledger.cancel(order.number, "ann")
    assert await ledger.order(order.number) == order
    assert await ledger.outbox(10) == []


async def test_the_slot_is_free_again(ledger: SqlLedger) -> None:
    """Cancel, then buy again (F66)."""
    round_, order = await one_order(ledger)
    await ledger.cancel(order.number, "ann")
    recorded = await ledger.record([admission(round_, 2, user="ann")])
    assert recorded.new == 1


async def test_what_lapsed_is_told_from_what_failed(ledger: SqlLedger) -> None:
    """The gate learns it with the release, and a rebuilt gate from the row: only lapsed orders make a buyer wait."""
    sale = await ledger.create_sale(draft(), lane=2)
    users = ("cancels", "forgets", "fails", "pays", "is refunded")
    made = {user: admission(sale.round, i, user=user, request_id=f"k{i}") for i, user in enumerate(users, 1)}
    await ledger.record([each for user, each in made.items() if user != "fails"])
    await ledger.set_aside(Delivery(2, "1-1", b"{}", made["fails"]), "bad", 0)
    (letter,) = await ledger.letters_due(1)
    assert await ledger.bury(letter, made["fails"], "bad") is OrderState.FAILED
    await ledger.pay(made["pays"].number, "pays", capture())
    for user in ("cancels", "is refunded"):
        await ledger.cancel(made[user].number, user)
    await overdue(ledger)
    assert await ledger.expire_due(10) == [made["forgets"].number]
    released = {item.release.user: item.release for item in await ledger.outbox(10) if item.release is not None}
    assert {user: each.lapsed for user, each in released.items()} == {
        "cancels": True,
        "forgets": True,
        "is refunded": True,
        "fails": False,
    }
    assert {user: each.request_id for user, each in released.items()} == {
        user: made[user].request_id for user in released
    }
    await write(ledger, "UPDATE orders SET state = 'refunded' WHERE user_id = 'is refunded'")
    held = {user: one for user, (one,) in (await ledger.holdings(sale.round.id, "", 10)).items()}
    assert {user for user, one in held.items() if one.lapsed_ms} == {"cancels", "forgets", "is refunded"}
    tally = await ledger.tally(sale.round.id)
    assert tally is not None
    assert (tally.orders, tally.lapsed) == (5, 3)


async def test_expired_by_the_databases_clock(ledger: SqlLedger) -> None:
    _, order = await one_order(ledger)
    assert await ledger.expire_due(10) == []
    await overdue(ledger)
    assert await ledger.expire_due(10) == [order.number]
    assert await ledger.expire_due(10) == []
    after = await ledger.order(order.number)
    assert after is not None
    assert after.state is OrderState.EXPIRED
    assert len(await ledger.outbox(10)) == 1


async def test_another_buyers_order_is_left_alone(ledger: SqlLedger) -> None:
    _, order = await one_order(ledger)
    assert await ledger.pay(order.number, "eve", capture()) is None
    assert await ledger.cancel(order.number, "eve") is None
    assert await ledger.order(order.number) == order


async def test_one_capture_serves_one_order(ledger: SqlLedger) -> None:
    _, first = await one_order(ledger)
    sale = await ledger.create_sale(draft(), lane=0)
    other = admission(sale.round, 77, user="bob")
    await ledger.record([other])
    await ledger.pay(first.number, "ann", capture("same"))
    with pytest.raises(LedgerRefused):
        await ledger.pay(other.number, "bob", capture("same"))
    after = await ledger.order(other.number)
    assert after is not None
    assert after.state is OrderState.UNPAID, "both or none"


async def test_pay_cancel_and_expire_at_the_same_instant_have_one_winner(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=1000), lane=0)
    orders = [admission(sale.round, i, user=f"u{i}") for i in range(1, 121)]
    await ledger.record(orders)
    await overdue(ledger)
    won = {"pay": 0, "cancel": 0, "expire": 0}

    async def pay(number: object, user: str) -> None:
        changed = await ledger.pay(number, user, capture(f"r{number}"))  # type: ignore[arg-type]
        won["pay"] += changed is not None and changed.done

    async def cancel(number: object, user: str) -> None:
        changed = await ledger.cancel(number, user)  # type: ignore[arg-type]
        won["cancel"] += changed is not None and changed.done

    async def expire(count: int) -> None:
        ended = await ledger.expire_due(count)
        won["expire"] += len(ended)

    # In groups, and with every second one an expiry that wants one order more than the group has. So it wins at least
    # that one, and cannot win all, whichever is quicker.
    for first in range(0, 120, 20):
        works = [expire(21)] if first % 40 == 0 else []
        for made in orders[first : first + 20]:
            rivals = [pay(made.number, made.user), cancel(made.number, made.user)]
            works += rivals if made.number.counter % 2 else rivals[::-1]
        await asyncio.gather(*works)
    assert sum(won.values()) == 120
    assert min(won.values()) > 0, "each of them has won somewhere"
    tally = await ledger.tally(sale.round.id)
    assert tally is not None
    assert (tally.sold, tally.paid, tally.ended) == (won["pay"], won["pay"], won["cancel"] + won["expire"])
    items = await ledger.outbox(1000)
    assert sum(item.release is not None for item in items) == won["cancel"] + won["expire"]
    assert len({item.number for item in items}) == 120


async def test_a_backlog_is_shared_and_done_once(ledger: SqlLedger) -> None:
    """Several keepers: every order ends once, each released once."""
    sale = await ledger.create_sale(draft(units=5000), lane=0)
    for start in range(0, 2000, 500):
        await ledger.record([admission(sale.round, start + i, user=f"u{start + i}") for i in range(1, 501)])
    await overdue(ledger)

    async def keeper() -> list[object]:
        ended: list[object] = []
        while batch := await ledger.expire_due(100):
            ended += batch
        return ended

    shares = await asyncio.gather(*(keeper() for _ in range(3)))
    everything = [number for share in shares for number in share]
    assert len(everything) == len(set(everything)) == 2000
    tally = await ledger.tally(sale.round.id)
    assert tally is not None
    assert (tally.sold, tally.ended) == (0, 2000)
