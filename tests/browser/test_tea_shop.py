"""The tea shop of `examples/` in Chromium: a stranger signs in on the way, buys in the element, pays at the shop."""

import re
import tempfile
from pathlib import Path

from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.test_items import radio
from tests.browser.visiting import PATIENCE_MS, order_is, press, violations
from tests.examples.shops import TeaShop, open_shop, until


async def test_a_stranger_buys(browser: Browser) -> None:
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        async with open_shop(TeaShop, Path(name)) as shop:
            await shop.announce(await shop.sign_in("staff"), 3)
            context = await browser.new_context(viewport=ViewportSize(width=360, height=740), locale="en")
            context.set_default_timeout(PATIENCE_MS)
            page = await context.new_page()
            said: list[str] = []
            page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
            product = f"{shop.url}/products/{shop.product}"
            await page.goto(product)
            await page.get_by_role("button", name=re.compile("Sign in")).click()
            await page.wait_for_url(f"{shop.url}/sign-in?*")
            await page.get_by_label("Name").fill("carol")
            await page.get_by_label("Password").fill("a secret")
            await page.get_by_label("I am new here").check()
            await page.get_by_role("button", name="Sign in").click()
            await page.wait_for_url(product)
            assert not [found for found in await violations(page) if found[0] in ("serious", "critical")]
            await radio(page, "jade").check()
            await press(page)
            await order_is(page, "unpaid")
            await page.locator("[data-action=pay]").click()
            await page.wait_for_url(f"{shop.url}/pay?order_id=*")
            await page.get_by_role("button", name="Pay 9.90").click()
            await page.wait_for_url(f"{shop.url}/orders")
            await expect(page.locator("[data-order]")).to_have_count(1)

            async def is_paid() -> bool:
                await page.reload()
                return await page.locator("[data-order][data-state=paid]").count() == 1

            await until(is_paid)
            await page.goto(product)
            await order_is(page, "paid")
            assert [text for text in said if "Failed to load resource" not in text] == [], "no policy is broken"
            await context.close()
