"""Pages of a provider's to pay on: one for an order, called off when the order is over, and money of which no notice
came."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from sqlalchemy import select

from seckill.backends.sql.tables import checkouts, payments
from seckill.bootstrap.engine import open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.payment import Notice
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, make_node, sale_body
from tests.api.payments.conftest import CALLBACK, PRICE, Shop
from tests.api.payments.test_providers import due_now
from tests.backends.payment.alipay_stand_in import AlipayStandIn
from tests.backends.payment.stand_in import served
from tests.backends.payment.stripe_stand_in import StripeStandIn
from tests.backends.payment.wechat_stand_in import WeChatStandIn
from tests.backends.sql.looking import rows, write

PHONE = {"User-Agent": "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Mobile Safari/537.36"}


class Desk(Shop):
    """A shop that is paid through a provider with a page of its own."""

    side: StripeStandIn
    use: UseCases

    async def say(self, order_id: str, ref: str = "pi_1", **changes: Any) -> int:
        said = self.side.notify(
            replace(Notice(ref=ref, order_id=order_id, amount_cents=PRICE, currency="CNY"), **changes), time.time()
        )
        assert said is not None
        headers, body = said
        return (await self.node.http.post(CALLBACK, content=body, headers=headers)).status_code

    async def call_off(self) -> int:
        return await self.use.checkouts.call_off_due()


async def desk_of(settings: Settings, side: Any, shop: Shop) -> AsyncIterator[Desk]:
    given = side.settings()
    names = [name for name in ("payment_provider", "public_url") if hasattr(given, name)]
    names += [name for name in Settings.__dataclass_fields__ if name.startswith(("stripe_", "alipay_", "wechat_"))]
    settings = replace(settings, **{name: getattr(given, name) for name in names})
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        use = UseCases(engine, settings)
        desk = Desk(node, engine, shop.release_desk, use.payments, use.refunds)
        desk.side, desk.use = side, use
        yield desk
        await node.http.aclose()


@pytest.fixture
async def desk(shop: Shop, settings: Settings) -> AsyncIterator[Desk]:
    async with served(StripeStandIn()) as side:
        async for made in desk_of(settings, side, shop):
            yield made


async def test_paying_leads_to_the_provider_and_back(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    answer = await desk.act(order_id, "pay")
    assert answer.status_code == 202
    order = answer.json()
    assert (order["state"], order["pay_url"]) == ("unpaid", "https://checkout.stripe.com/c/pay/cs_test_1")
    assert "pay_qr" not in order
    [session] = desk.side.sessions.values()
    page = f"https://sale.example.com/orders/{order_id}"
    assert (session["form"]["success_url"], session["form"]["cancel_url"]) == (f"{page}?paid=wait", page)
    assert await desk.say(order_id) == 200
    assert (await desk.show(order_id))["state"] == "paid"
    assert (await desk.act(order_id, "pay")).status_code == 200, "there is nothing to pay any more"
    assert await desk.say(order_id) == 200
    assert await desk.say(order_id, "pi_2") == 200, "it is noted and goes back, so it is not to come again"
    assert await desk.refunds.make_due() == 1
    assert desk.side.refunds() == 1
    await desk.check()


async def test_a_buyer_who_presses_often_has_one_page_and_the_provider_one_call(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    answers = await asyncio.gather(*(desk.act(order_id, "pay") for _ in range(20)))
    assert {answer.json()["pay_url"] for answer in answers} == {"https://checkout.stripe.com/c/pay/cs_test_1"}
    for _ in range(3):
        assert (await desk.act(order_id, "pay")).status_code == 202
    assert len(desk.side.asked) == 1
    assert len(await rows(desk.ledger, select(checkouts))) == 1


async def test_the_way_back_is_the_shops_where_the_sale_says_so(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create(return_url="https://shop.example.com/back?a=1"))
    await desk.act(order_id, "pay")
    [session] = desk.side.sessions.values()
    back = f"https://shop.example.com/back?a=1&order_id={order_id}"
    assert session["form"]["success_url"] == f"{back}&paid=wait"
    assert session["form"]["cancel_url"] == f"{back}&paid=no"


async def test_who_cannot_pay(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    assert (await desk.act(order_id, "pay", "bob")).status_code == 404
    desk.side.trouble("away")
    away = await desk.act(order_id, "pay")
    assert (away.status_code, away.json()["code"], away.headers["retry-after"]) == (503, "provider_away", "2")
    desk.side.trouble("")
    assert (await desk.act(order_id, "pay")).status_code == 202
    await desk.act(order_id, "cancel")
    over = await desk.act(order_id, "pay")
    assert (over.status_code, over.json()["code"], over.json()["order"]["state"]) == (409, "order_over", "cancelled")
    strange = await desk.order(await desk.node.create(currency="KWD", price_cents=9_999), "carl")
    refused = await desk.act(strange, "pay", "carl")
    assert (refused.status_code, refused.json()["code"]) == (409, "payment_refused")


async def test_the_page_is_called_off_when_the_order_is_over(desk: Desk) -> None:
    sale = await desk.node.create()
    cancelled, expired = await desk.order(sale, "ann"), await desk.order(sale, "bob")
    for order_id, user in ((cancelled, "ann"), (expired, "bob")):
        assert (await desk.act(order_id, "pay", user)).status_code == 202
    assert await desk.call_off() == 0, "they can still be paid"
    await desk.act(cancelled, "cancel")
    assert await desk.call_off() == 1
    await write(desk.ledger, "UPDATE orders SET expires_ms = 1 WHERE state = 'unpaid'")
    assert await desk.release_desk.expire() == 1
    assert await desk.call_off() == 1
    assert [session["status"] for session in desk.side.sessions.values()] == ["expired", "expired"]
    assert await desk.call_off() == 0, "once"


async def test_money_of_which_no_notice_came_is_found_and_goes_back(desk: Desk) -> None:
    """Paid at the last moment, and the webhook is broken."""
    order_id = await desk.order(await desk.node.create(units=1))
    await desk.act(order_id, "pay")
    [session] = desk.side.sessions.values()
    session |= {"status": "complete", "payment_status": "paid"}
    await desk.act(order_id, "cancel")
    await desk.release_desk.pass_on()
    await desk.node.refresh()
    assert (await desk.node.buy({"id": (await desk.show(order_id))["sale_id"]}, "bob")).status_code == 202
    assert await desk.call_off() == 1
    await desk.decide()
    assert (await desk.show(order_id))["state"] == "refunded"
    assert await desk.refunds.make_due() == 1
    assert desk.side.refunds() == 1
    assert await desk.say(order_id) == 200, "the notice comes after all, and changes nothing"
    assert desk.side.refunds() == 1
    await desk.check()


async def test_a_provider_that_is_away_is_asked_again_to_close_and_then_left_alone(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    await desk.act(order_id, "pay")
    await desk.act(order_id, "cancel")
    desk.side.trouble("away")
    for _ in range(12):
        assert await desk.call_off() == 1
        assert await desk.call_off() == 0, "not again at once"
        await write(desk.ledger, "UPDATE checkouts SET next_ms = 1 WHERE next_ms IS NOT NULL")
    assert await desk.call_off() == 0
    desk.side.trouble("")


async def test_a_notice_that_comes_before_the_order_is_written(desk: Desk) -> None:
    sale = await desk.node.create()
    order_id = (await desk.node.buy(sale, "ann")).json()["order_id"]
    assert await desk.say(order_id) == 503, "so it comes again"
    await desk.node.work()
    assert await desk.say(order_id) == 200
    assert (await desk.show(order_id))["state"] == "paid"


async def test_the_same_notice_on_two_nodes_at_once_pays_once(desk: Desk, settings: Settings, shop: Shop) -> None:
    async for other in desk_of(settings, desk.side, shop):
        order_id = await desk.order(await desk.node.create())
        await other.node.refresh()
        assert set(await asyncio.gather(*(node.say(order_id) for node in (desk, other) * 5))) == {200}
        assert len(await rows(desk.ledger, select(payments))) == 1
        await desk.check()


async def test_a_provider_that_is_down_while_refunding_makes_one_refund(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    await desk.say(order_id)
    await desk.say(order_id, "pi_2")
    for kind in ("mute", "away"):
        desk.side.trouble(kind)
        assert await desk.refunds.make_due() == 1
        await due_now(desk)
    desk.side.trouble("")
    desk.side.status = "pending"
    assert await desk.refunds.make_due() == 1
    [refund] = await desk.ledger.payments.refunds(1)
    assert refund.done_ms is not None, "it was made while the answer was lost, and is found"
    assert desk.side.refunds() == 1


async def test_a_refund_that_is_pending_is_asked_for_until_it_is_done(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    await desk.say(order_id)
    await desk.say(order_id, "pi_2")
    desk.side.status = "pending"
    for _ in range(2):
        assert await desk.refunds.make_due() == 1
        await due_now(desk)
    [refund] = await desk.ledger.payments.refunds(1)
    assert (refund.done_ms, refund.refused) == (None, None)
    desk.side.made["re_1"]["status"] = "succeeded"
    assert await desk.refunds.make_due() == 1
    [refund] = await desk.ledger.payments.refunds(1)
    assert refund.done_ms is not None
    assert desk.side.refunds() == 1


async def test_a_flood_of_forged_notices_is_counted_and_changes_nothing(desk: Desk) -> None:
    order_id = await desk.order(await desk.node.create())
    before, counted = await desk.everything(), _forged()
    said = desk.side.notify(Notice(ref="pi_1", order_id=order_id, amount_cents=PRICE, currency="CNY"), time.time())
    assert said is not None
    forged = {"Stripe-Signature": f"t={int(time.time())},v1={'0' * 64}"}
    for _ in range(50):
        assert (await desk.node.http.post(CALLBACK, content=said[1], headers=forged)).status_code == 401
    await asyncio.sleep(0)  # they are counted at the end of the turn
    assert _forged() == counted + 50
    assert await desk.everything() == before


def _forged() -> float:
    return REGISTRY.get_sample_value("seckill_incidents_total", {"kind": "bad_signature"}) or 0.0


@pytest.mark.parametrize("kind", [AlipayStandIn, WeChatStandIn])
async def test_a_sale_in_a_currency_that_cannot_be_paid_is_refused(
    shop: Shop, settings: Settings, kind: type[AlipayStandIn] | type[WeChatStandIn]
) -> None:
    async with served(kind()) as side:
        async for made in desk_of(settings, side, shop):
            euros = sale_body(currency="EUR")
            refused = await made.node.http.post("/v1/sales", json=euros, headers=OPERATOR)
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "currency")
            await made.node.create(currency="EUR", price_cents=0)
            order_id = await made.order(await made.node.create())
            pay = (await made.act(order_id, "pay")).json()
            assert ("pay_qr" in pay) == pay["pay_url"].startswith("weixin:")
            if "pay_qr" in pay:
                assert pay["pay_qr"].startswith("data:image/svg+xml")
            thanks = side.notify(Notice(ref="r1", order_id=order_id, amount_cents=PRICE, currency="CNY"), time.time())
            assert thanks is not None
            answer = await made.node.http.post(CALLBACK, content=thanks[1], headers=dict(thanks[0]))
            assert (answer.status_code, answer.text) == (200, "success" if kind is AlipayStandIn else "")
