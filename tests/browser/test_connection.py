"""Hearing of the result, whatever the network and the server do meanwhile."""

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from tests.browser.visiting import Visit, ask, buyer, order_is, orders_of, press, shown_order, stopped
from tests.e2e.stack import Stack


async def close(socket: WebSocketRoute) -> None:
    await socket.close()


async def say_nothing(_: WebSocketRoute) -> None:
    """A proxy that lets sockets be opened and passes nothing on."""


async def block(page: Page, *ways: str) -> None:
    if "ws" in ways:
        await page.route_web_socket("**/v1/ws", close)
    if "silent ws" in ways:
        await page.route_web_socket("**/v1/ws", say_nothing)
    if "sse" in ways:
        await page.route("**/v1/orders/*/events", lambda route: route.abort())


@pytest.mark.parametrize(
    ("blocked", "via"),
    [((), "ws"), (("ws",), "sse"), (("silent ws",), "sse"), (("ws", "sse"), "poll")],
    ids=["nothing blocked", "no websocket", "a silent websocket", "no websocket, no stream"],
)
async def test_each_way_of_hearing_falls_back_to_the_next(
    visit: Visit, stack: Stack, blocked: tuple[str, ...], via: str
) -> None:
    sale = await stack.create_sale(units=3)
    user = f"via-{'-'.join(blocked).replace(' ', '')}-{via}"
    page = await visit.sale_page(sale, user)
    await block(page, *blocked)
    with stopped(stack):
        await press(page)
        await order_is(page, "queued")
        await expect(page.locator("[data-order-state]")).to_have_attribute("data-via", via)
    await order_is(page, "unpaid")
    order_id = await shown_order(page)
    await ask(stack, "POST", f"/v1/orders/{order_id}/pay", buyer(stack, user))  # on another phone
    await order_is(page, "paid")


async def test_a_restart_of_the_server_costs_nothing(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    waiting = await visit.sale_page(sale, "patience")
    pressing = await visit.sale_page(sale, "haste")
    await press(waiting)
    await order_is(waiting, "unpaid")
    order_id = await shown_order(waiting)
    await expect(pressing.locator("[data-action=buy]")).to_be_enabled()
    assert stack.stop() == 0
    await pressing.locator("[data-action=buy]").click()
    await expect(pressing.locator("[data-phase=sending]")).to_contain_text("No connection")
    await expect(waiting.locator("[data-order-state]")).to_contain_text("Reconnecting")
    await stack.start()
    await order_is(pressing, "unpaid")
    await expect(waiting.locator("[data-order-state]")).not_to_contain_text("Reconnecting")
    await waiting.locator("[data-action=pay]").click()
    await order_is(waiting, "paid")
    assert [order["order_id"] for order in await orders_of(stack, "patience")] == [order_id]
    assert len(await orders_of(stack, "haste")) == 1


async def test_a_page_that_cannot_reach_the_server_says_so_and_goes_on(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Lamp", units=3)
    page = await visit.page()
    await page.route("**/v1/sales", lambda route: route.abort())
    await page.goto(stack.url)
    await expect(page.locator(".notice")).to_contain_text("can't reach the shop")
    await page.unroute("**/v1/sales")
    await expect(page.locator(f"a[href='/sales/{sale['id']}']")).to_be_visible()
    await expect(page.locator(".notice")).to_have_count(0)
