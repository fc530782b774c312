"""Paying on a page of the provider's: the button leads there, who comes back is told what the page waits for, and an
address for an app is a picture to scan."""

import json
from typing import Any

from playwright.async_api import Page, Route, expect

from seckill.web.orders.qr_code import qr_code
from tests.browser.visiting import DESKTOP, PHONE, Visit, buy, notify, orders_of, serious, with_settings
from tests.e2e.stack import Stack


async def offers(page: Page, address: str, status: int, **answer: Any) -> None:
    """The page of an order, as with a provider that answers so."""
    await with_settings(page, f"{address}*", sandbox="off", checkout="on")

    async def pay(route: Route) -> None:
        await route.fulfill(status=status, content_type="application/json", body=json.dumps(answer))

    await page.route("**/v1/orders/*/pay", pay)


async def paid(stack: Stack, user: str) -> None:
    [order] = await orders_of(stack, user)
    await notify(stack, order, f"of-{user}")


async def test_the_button_leads_to_the_provider_and_back(visit: Visit, stack: Stack) -> None:
    order_id = await buy(stack, await stack.create_sale(units=1), "pia")
    address = f"{stack.url}/orders/{order_id}"
    page = await visit.page()
    await offers(page, address, 202, order_id=order_id, state="unpaid", pay_url=f"{stack.url}/docs?paying")
    await page.goto(f"{address}#token={stack.token('pia')}")
    await page.locator("[data-action=pay]").click()
    await page.wait_for_url(f"{stack.url}/docs?paying")
    await page.goto(f"{address}?paid=wait#token={stack.token('pia')}")
    await expect(page.locator(".result")).to_contain_text("we're waiting for the payment provider to confirm it")
    await expect(page.locator("[data-action=pay].quiet")).to_be_visible()
    await paid(stack, "pia")
    await expect(page.locator("[data-state=paid]")).to_be_visible()


async def test_who_comes_back_with_the_browsers_button_can_pay(visit: Visit, stack: Stack) -> None:
    order_id = await buy(stack, await stack.create_sale(units=1), "rita")
    address = f"{stack.url}/orders/{order_id}"
    page = await visit.page()
    await offers(page, address, 202, order_id=order_id, state="unpaid", pay_url=f"{stack.url}/docs?paying")
    await page.goto(f"{address}#token={stack.token('rita')}")
    await page.locator("[data-action=pay]").click()
    await page.wait_for_url(f"{stack.url}/docs?paying")
    await page.go_back()
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    await expect(page.locator(".result")).to_have_text("Pay in time to keep it.")


async def test_an_address_for_an_app_is_a_picture_to_scan(visit: Visit, stack: Stack) -> None:
    order_id = await buy(stack, await stack.create_sale(units=1), "wen")
    address = f"{stack.url}/orders/{order_id}"
    picture = qr_code("weixin://wxpay/bizpayurl?pr=abc")
    page = await visit.page()
    await offers(page, address, 202, order_id=order_id, state="unpaid", pay_url="weixin://x", pay_qr=picture)
    await page.goto(f"{address}#token={stack.token('wen')}")
    await page.locator("[data-action=pay]").click()
    scan = page.locator(".scan img")
    await expect(scan).to_be_visible()
    assert await scan.evaluate("image => image.complete && image.naturalWidth > 0")
    assert await page.locator("[data-action=pay]").count() == 0
    for viewport in (PHONE, DESKTOP):
        await page.set_viewport_size({"width": viewport["width"], "height": viewport["height"]})
        assert await serious(page) == []
    await paid(stack, "wen")
    await expect(page.locator("[data-state=paid]")).to_be_visible()
    assert await scan.count() == 0


async def test_a_provider_that_does_not_take_it(visit: Visit, stack: Stack) -> None:
    order_id = await buy(stack, await stack.create_sale(units=1), "otto")
    address = f"{stack.url}/orders/{order_id}"
    page = await visit.page()
    await offers(page, address, 409, code="payment_refused", title="Conflict", detail="no")
    await page.goto(f"{address}#token={stack.token('otto')}")
    await page.locator("[data-action=pay]").click()
    await expect(page.locator(".problem")).to_contain_text("doesn't accept this payment")
