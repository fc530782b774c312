"""No visitor can mistake a test for a shop."""

import pytest
from playwright.async_api import expect

from tests.browser.visiting import DESKTOP, PHONE, Visit, serious, with_settings
from tests.e2e.stack import Stack

FREE = {"en-GB": "Test: no money moves.", "zh-CN": "测试环境：不会产生真实付款。"}
PAID = {"en-GB": "Test, but payments are real.", "zh-CN": "测试环境，但付款是真实的。"}


@pytest.mark.parametrize(("locale", "viewport"), list(zip(FREE, (PHONE, DESKTOP), strict=True)), ids=list(FREE))
async def test_every_page_of_a_test_says_that_no_money_moves(
    visit: Visit, stack: Stack, locale: str, viewport: dict[str, int]
) -> None:
    sale = await stack.create_sale(units=1)
    page = await visit.page(viewport, locale)
    for path in ("/", f"/sales/{sale['id']}", "/orders", "/console"):
        await page.goto(stack.url + path)
        banner = page.locator(".test-banner")
        await expect(banner).to_have_text(FREE[locale])
        await expect(banner).to_be_in_viewport(ratio=1)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await serious(page) == []


async def test_the_console_keeps_it_in_sight(visit: Visit) -> None:
    page = await visit.console()
    await page.mouse.wheel(0, 100_000)
    await expect(page.locator("aside .test-banner")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("locale", PAID)
async def test_where_payments_are_real_it_says_that(visit: Visit, stack: Stack, locale: str) -> None:
    page = await visit.page(locale=locale)
    await with_settings(page, f"{stack.url}/", test="paid")
    await page.goto(stack.url)
    await expect(page.locator(".test-banner")).to_have_text(PAID[locale])


async def test_a_shop_has_no_banner(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await with_settings(page, f"{stack.url}/", test="")
    await page.goto(stack.url)
    await expect(page.locator("h1")).to_be_visible()
    await expect(page.locator(".test-banner")).to_have_count(0)
