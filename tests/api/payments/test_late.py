"""Money that comes when the order is over: another order in its place, or back it goes. Exactly one of the two."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from seckill.backends.redis.gate import connect
from seckill.backends.sql import payments as ledger_module
from seckill.bootstrap.engine import Engine, open_engine
from seckill.domain.admission import Claim
from seckill.domain.order_number import OrderNumber
from seckill.engine.keeper import Keeper
from seckill.engine.money import late_payments as late_module
from seckill.engine.money import payments as payments_module
from seckill.engine.money.late_payments import late_request_id
from seckill.ports.payment import LatePayment
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, buyer, listening, make_node, token_with, until_watched
from tests.api.payments.conftest import PRICE, Shop
from tests.api.test_rebuild import rebuild
from tests.backends.sql.looking import write
from tests.making import use_cases


async def own_orders(shop: Shop, user: str = "ann") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await shop.node.http.get("/v1/orders", headers=buyer(user))).json()["orders"]
    return found


async def check_replaced(shop: Shop, order_id: str, user: str = "ann") -> str:
    """Exactly one order took the place of the old one, and it is paid."""
    old = await shop.show(order_id, user)
    assert old["state"] == "expired"
    new = await shop.show(old["replaced_by"], user)
    assert (new["state"], new["price_cents"], new["quantity"]) == ("paid", old["price_cents"], old["quantity"])
    assert new.get("metadata") == old.get("metadata"), "the goods go where the buyer wanted them"
    assert await shop.ledger.payments.refunds(10) == []
    await shop.check()
    return str(new["order_id"])


async def check_refunded(shop: Shop, order_id: str, reason: str, user: str = "ann") -> None:
    shown = await shop.show(order_id, user)
    assert (shown["state"], shown["replaced_by"]) == ("refunded", None)
    [refund] = await shop.ledger.payments.refunds(10)
    assert (refund.reason, refund.capture.amount_cents, refund.done_ms) == (reason, shown["price_cents"], None)
    assert await shop.refunds.make_due() == 1
    [refund] = await shop.ledger.payments.refunds(10)
    assert refund.done_ms is not None
    await shop.check()


async def test_with_a_unit_free_the_late_payer_takes_it(shop: Shop) -> None:
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale)
    await write(shop.ledger, """UPDATE orders SET metadata = '{"size":"L"}'""")
    noted = await shop.notify(order_id)
    assert (noted.status_code, noted.json()["state"]) == (202, "expired"), "no worker has written the new one yet"
    assert (await shop.node.buy(sale, "bob")).json()["code"] == "sold_out", "the unit is taken already"
    await shop.decide()
    await check_replaced(shop, order_id)
    before = await shop.everything()
    again = await shop.notify(order_id)
    assert (again.status_code, again.json()) == (200, await shop.show(order_id))
    assert await shop.everything() == before
    assert len(await own_orders(shop)) == 2


@pytest.mark.parametrize("relayed", [True, False])
async def test_a_unit_that_has_not_come_back_yet_is_no_reason_to_refuse(shop: Shop, relayed: bool) -> None:
    """The old order's own unit and its buyer's limit are free in the ledger, and not in the gate yet."""
    sale = await shop.node.create(units=1, limit_per_buyer=1)
    order_id = await shop.over(sale, relayed=relayed)
    await shop.notify(order_id)
    await shop.decide()
    await check_replaced(shop, order_id)


async def test_sold_out_meanwhile_the_money_goes_back(shop: Shop) -> None:
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale)
    assert (await shop.node.buy(sale, "bob")).status_code == 202
    await shop.node.work()
    noted = await shop.notify(order_id)
    assert (noted.status_code, noted.json()["state"]) == (200, "refunded"), "decided at once"
    again = await shop.notify(order_id)
    assert (again.status_code, again.json()) == (200, noted.json())
    await check_refunded(shop, order_id, "sold_out")


async def test_a_buyer_who_has_bought_again_is_at_the_limit(shop: Shop) -> None:
    sale = await shop.node.create(units=5, limit_per_buyer=1, cool_down_s=0)
    order_id = await shop.over(sale)
    newer = await shop.order(sale)
    assert (await shop.notify(order_id)).json()["state"] == "refunded"
    assert (await shop.show(newer))["state"] == "unpaid"
    await check_refunded(shop, order_id, "limit_reached")


@pytest.mark.parametrize(("verb", "reason"), [("close", "ended"), ("pause", "paused")])
async def test_a_sale_that_is_closed_or_paused(shop: Shop, verb: str, reason: str) -> None:
    sale = await shop.node.create(units=5)
    order_id = await shop.over(sale)
    await shop.node.http.post(f"/v1/sales/{sale['id']}/{verb}", headers=OPERATOR)
    assert (await shop.notify(order_id)).json()["state"] == "refunded"
    await check_refunded(shop, order_id, reason)


async def test_a_cancelled_order_is_late_as_well(shop: Shop) -> None:
    sale = await shop.node.create(units=1)
    order_id = await shop.order(sale)
    await shop.act(order_id, "cancel")
    assert (await shop.notify(order_id)).status_code == 202
    await shop.decide()
    assert (await shop.show((await shop.show(order_id))["replaced_by"]))["state"] == "paid"
    await shop.check()


async def test_the_buyer_may_end_the_new_order_before_it_is_paid(shop: Shop) -> None:
    """Cancelled, or paid with money of its own: then the late money goes back."""
    for verb in ("cancel", "pay"):
        sale = await shop.node.create(units=1)
        order_id = await shop.over(sale)
        assert (await shop.notify(order_id, f"late-{verb}")).status_code == 202
        await shop.node.work()
        new = (await own_orders(shop))[0]
        assert (new["state"], new["sale_id"]) == ("unpaid", sale["id"])
        assert (await shop.act(new["order_id"], verb)).status_code == 200
        await shop.decide()
        assert (await shop.show(order_id))["state"] == "refunded"
        await shop.check()
    assert [refund.reason for refund in await shop.ledger.payments.refunds(10)] == ["replacement_over"] * 2


async def test_several_late_payments_for_one_order_take_one_place(shop: Shop) -> None:
    sale = await shop.node.create(units=9, limit_per_buyer=5)
    order_id = await shop.over(sale)
    await asyncio.gather(*(shop.notify(order_id, f"late-{i % 3}") for i in range(9)))
    await shop.decide()
    old = await shop.show(order_id)
    assert (old["state"], (await shop.show(old["replaced_by"]))["state"]) == ("expired", "paid")
    assert len(await own_orders(shop)) == 2
    refunds = await shop.ledger.payments.refunds(10)
    assert [refund.reason for refund in refunds] == ["already_paid"] * 2
    codes = sorted([(await shop.notify(order_id, f"late-{i}")).status_code for i in range(3)])
    assert codes == [200, 409, 409]
    await shop.check()


async def test_two_nodes_and_three_keepers_decide_once(shop: Shop, settings: Settings, engine: Engine) -> None:
    sale = await shop.node.create(units=12, limit_per_buyer=1)
    orders = {f"u{i}": await shop.over(sale, f"u{i}") for i in range(12)}
    for i in range(6):
        await shop.order(sale, f"other{i}")
    async with open_engine(settings) as other_engine:
        other = replace(shop, node=await make_node(settings, other_engine))
        nodes = (shop, other)
        await asyncio.gather(*(nodes[i % 2].notify(order_id, f"late-{i // 2}") for i, order_id in _twice(orders)))
        keepers = [use_cases(each).payments for each in (engine, other_engine, engine)]
        for _ in range(20):
            await shop.node.work()
            await write(shop.ledger, "UPDATE payments SET next_ms = 1 WHERE next_ms IS NOT NULL")
            await asyncio.gather(*(keeper.late.decide_due() for keeper in keepers))
        await other.node.http.aclose()
    states = [(await shop.show(order_id, user))["state"] for user, order_id in orders.items()]
    assert sorted(states) == ["expired"] * 6 + ["refunded"] * 6, "six units were left"
    assert await shop.ledger.payments.take_late(10, 0) == []
    await shop.check()


def _twice(orders: dict[str, str]) -> list[tuple[int, str]]:
    return list(enumerate(order_id for order_id in orders.values() for _ in range(2)))


class Died(BaseException):
    """No code catches it, just as none can catch a kill -9."""


@pytest.mark.parametrize(
    ("window", "sold_out"),
    [
        ("payments.capture.after", False),
        ("payments.release.after", False),
        ("payments.admit.after", False),
        ("ledger.settle.inside", False),
        ("payments.capture.after", True),
        ("payments.admit.after", True),
        ("ledger.give_back.inside", True),
    ],
)
async def test_dying_in_any_window_ends_in_one_outcome(
    shop: Shop, window: str, sold_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies twice in the window. Then the provider repeats its notice and the keeper its work."""
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale, relayed=sold_out)
    if sold_out:
        await shop.order(sale, "bob")
    hits = 0

    def die(name: str) -> None:
        nonlocal hits
        if name == window and hits < 2:
            hits += 1
            raise Died(name)

    monkeypatch.setattr(payments_module, "reached", die)
    monkeypatch.setattr(late_module, "reached", die)
    monkeypatch.setattr(ledger_module, "reached", die)
    for step in (shop.notify(order_id), shop.decide(), shop.decide(), shop.decide()):
        try:
            await step
        except Died:
            await shop.node.work()
    assert hits >= 1, "it never was in the window"
    assert (await shop.notify(order_id)).status_code == 200
    if sold_out:
        await check_refunded(shop, order_id, "sold_out")
    else:
        await check_replaced(shop, order_id)
        assert len(await own_orders(shop)) == 2, "one new order, never two"


async def test_an_unclear_answer_of_the_gate_is_asked_for_again(shop: Shop) -> None:
    """The gate admitted it, but the answer was lost: the same request id finds the same order."""
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale)
    number = shop.node.engine.order_ids.decode(order_id)
    assert number is not None
    (found,) = await shop.ledger.sales()
    claim = Claim("ann", 1, late_request_id(OrderNumber.from_int(number)))
    await shop.engine.gate.admit(found.round.ref, [claim])
    await shop.node.work()
    assert (await shop.notify(order_id)).status_code == 200, "and it was written already"
    await check_replaced(shop, order_id)


async def test_a_gate_that_lost_the_round_is_waited_for(shop: Shop, redis_url: str) -> None:
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale)
    await _flush(redis_url)
    assert (await shop.notify(order_id)).status_code == 202
    await write(shop.ledger, "UPDATE payments SET next_ms = 1 WHERE next_ms IS NOT NULL")
    assert await shop.payments.late.decide_due() == 1
    assert (await shop.notify(order_id)).status_code == 202, "still undecided: not sold out, only not there"
    await rebuild(_keeper(shop))
    await shop.node.refresh()
    await shop.decide()
    await check_replaced(shop, order_id)


async def test_a_gate_that_forgot_the_admission_admits_once_more(shop: Shop, redis_url: str) -> None:
    """The new order was lost with the gate before a worker wrote it. There is one new order in the end."""
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale)
    assert (await shop.notify(order_id)).status_code == 202
    await _flush(redis_url)
    await rebuild(_keeper(shop))
    await shop.node.refresh()
    await shop.decide()
    await check_replaced(shop, order_id)


async def test_a_gate_that_has_it_written_and_is_rebuilt_finds_it_again(shop: Shop, redis_url: str) -> None:
    """The request id is in the ledger's row, so the rebuilt gate knows it."""
    sale = await shop.node.create(units=2, limit_per_buyer=2)
    order_id = await shop.over(sale)
    assert (await shop.notify(order_id)).status_code == 202
    await shop.node.work()
    await _flush(redis_url)
    await rebuild(_keeper(shop))
    await shop.node.refresh()
    await shop.decide()
    await check_replaced(shop, order_id)
    assert len(await own_orders(shop)) == 2


async def test_a_round_that_is_over_and_gone_from_the_gate(shop: Shop, redis_url: str) -> None:
    """No keeper rebuilds it any more, so nothing may wait for it."""
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale, relayed=False)
    await write(shop.ledger, "UPDATE rounds SET begins_ms = 1, ends_ms = 2")
    await _flush(redis_url)
    assert (await shop.notify(order_id)).json()["state"] == "refunded"
    assert (await shop.show(order_id))["state"] == "refunded"
    [refund] = await shop.ledger.payments.refunds(10)
    assert refund.reason == "ended"


async def test_one_that_cannot_be_decided_holds_up_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sale = await shop.node.create(units=2)
    orders = {user: await shop.over(sale, user) for user in ("ann", "bob")}
    for user, order_id in orders.items():
        assert (await shop.notify(order_id, f"late-{user}")).status_code == 202
    await shop.node.work()
    await write(shop.ledger, "UPDATE payments SET next_ms = 1")
    settle = shop.payments.late._settle

    async def fail_for_ann(late: LatePayment, number: OrderNumber) -> None:
        if late.order.user == "ann":
            raise ZeroDivisionError
        await settle(late, number)

    with monkeypatch.context() as patch:
        patch.setattr(shop.payments.late, "_settle", fail_for_ann)
        assert await shop.payments.late.decide_due() == 2
    assert (await shop.show(orders["ann"]))["replaced_by"] is None
    assert (await shop.show(orders["bob"], "bob"))["replaced_by"] is not None
    await shop.decide()
    await check_replaced(shop, orders["ann"])


async def test_who_waits_is_told_of_the_refund(shop: Shop) -> None:
    sale = await shop.node.create(units=1)
    order_id = await shop.over(sale)
    await shop.order(sale, "bob")
    async with listening(shop.node):
        url = f"/v1/orders/{order_id}?wait=20&seen=expired"
        waiting = asyncio.create_task(shop.node.http.get(url, headers=buyer("ann")))
        await until_watched(shop.node)
        await shop.notify(order_id)
        await shop.release_desk.pass_on()
        await shop.node.api.context.orders.look_up_waiting()
        assert (await waiting).json()["state"] == "refunded"


def _keeper(shop: Shop) -> Keeper:
    engine = shop.engine
    return use_cases(engine).keeper


async def _flush(redis_url: str) -> None:
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()


async def test_who_is_no_longer_invited_gets_the_money_back(shop: Shop) -> None:
    """The same rule as for a press: the list decides, whichever way a buyer comes in."""
    sale = await shop.node.create(units=2, audience={"list": True})
    path = f"/v1/admin/sales/{sale['id']}/audience"

    async def invite(*buyers: str) -> None:
        headers = OPERATOR | {"Content-Type": "text/csv"}
        assert (await shop.node.http.put(path, content="\n".join(buyers), headers=headers)).status_code == 200

    await invite("ann", "bob")
    anns, bobs = await shop.over(sale, "ann"), await shop.over(sale, "bob")
    await invite("bob")
    await shop.notify(bobs, "pay-2")
    await shop.decide()
    await check_replaced(shop, bobs, "bob")
    await shop.notify(anns, "pay-1")
    await shop.decide()
    await check_refunded(shop, anns, "not_invited", "ann")


async def test_who_bought_early_may_pay_late_before_the_others_begin(shop: Shop) -> None:
    begins_at = datetime.now(UTC) + timedelta(minutes=30)
    window = {"begins_at": begins_at.isoformat(), "ends_at": (begins_at + timedelta(hours=1)).isoformat()}
    sale = await shop.node.create(units=1, audience={"early": [{"groups": ["vip"], "minutes": 60}]}, **window)
    headers = {"Authorization": f"Bearer {token_with('ann', groups=['vip'])}"}
    made = await shop.node.http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)
    await shop.node.work()
    await shop.expire()
    await shop.notify(made.json()["order_id"])
    await shop.decide()
    await check_replaced(shop, made.json()["order_id"])


@pytest.mark.parametrize("is_free", [True, False])
async def test_a_late_payment_is_for_the_same_item(shop: Shop, is_free: bool) -> None:
    """Another one, of which there is plenty, does not stand in for it."""
    items = [{"title": "S", "units": 1, "price_cents": PRICE}, {"title": "L", "units": 9, "price_cents": PRICE}]
    sale = await shop.node.create(units=10, items=items, price_cents=None)
    small = sale["items"][0]["item_id"]
    order_id = await shop.over(sale, item_id=small)
    if not is_free:
        await shop.order(sale, "bob", item_id=small)
    await shop.notify(order_id)
    await shop.decide()
    if is_free:
        assert (await shop.show(await check_replaced(shop, order_id)))["item_id"] == small
    else:
        await check_refunded(shop, order_id, "sold_out")
