"""Money in the history of orders, and how buyers learn that it came late."""

import asyncio
from typing import Any

from tests.api.conftest import OPERATOR, buyer
from tests.api.payments.conftest import PRICE, Shop
from tests.patience import PATIENCE_S


async def payments_of(shop: Shop, order_id: str) -> list[dict[str, Any]]:
    response = await shop.node.http.get("/v1/admin/orders", params={"order_id": order_id}, headers=OPERATOR)
    (found,) = response.json()["orders"]
    payments: list[dict[str, Any]] = found["payments"]
    return payments


async def test_operators_see_what_became_of_the_money(shop: Shop) -> None:
    sale = await shop.node.create(units=5)
    paid, late, lost = [await shop.order(sale, user) for user in ("ann", "bob", "cyd")]
    for order_id, user in ((late, "bob"), (lost, "cyd")):
        await shop.node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer(user))
    await shop.release_desk.pass_on()
    await shop.notify(paid, "on-time")
    await shop.notify(paid, "twice")
    first, second = await payments_of(shop, paid)
    assert (first["payment_id"], first["amount_cents"], first["pays"]) == ("on-time", PRICE, paid)
    assert (first["refund"], second["pays"], second["refund"]["reason"]) == (None, None, "already_paid")

    assert (await shop.notify(late, "late")).status_code == 202
    (waiting,) = await payments_of(shop, late)
    assert (waiting["order_id"], waiting["pays"], waiting["waits"]) == (late, None, True)
    await shop.decide()
    (settled,) = await payments_of(shop, late)
    assert settled["pays"] not in (None, late)
    assert not settled["waits"]
    assert await payments_of(shop, settled["pays"]) == [settled], "the order that it pays knows it as well"

    await shop.node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    await shop.notify(lost, "too-late")
    await shop.refunds.make_due()
    (returned,) = await payments_of(shop, lost)
    assert (returned["pays"], returned["refund"]["reason"]) == (None, "ended")


async def test_who_waits_for_an_order_that_is_over_hears_of_late_money(shop: Shop) -> None:
    sale = await shop.node.create(units=5)
    order_id = await shop.over(sale)
    url = f"/v1/orders/{order_id}?wait=20&seen=expired"
    waiting = asyncio.create_task(shop.node.http.get(url, headers=buyer("ann")))
    await shop.notify(order_id)
    await shop.decide()
    async with asyncio.timeout(PATIENCE_S):
        while not waiting.done():
            await shop.node.api.context.orders.look_up_waiting()
            await asyncio.sleep(0.02)
    order = (await waiting).json()
    assert order["state"] == "expired"
    assert order["replaced_by"] is not None
