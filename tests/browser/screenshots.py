"""Takes the pictures of the documentation: `make screenshots`."""

import asyncio
import base64
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.conftest import ARGUMENTS, NAMES
from tests.browser.visiting import Visit, buy, in_s, order_is, press, stopped
from tests.e2e.stack import Stack, running

ROW = """<!doctype html>
<body style="margin:0;display:flex;align-items:start;gap:24px;padding:24px;width:max-content;background:{ground}">
{pictures}</body>"""
PICTURE = '<img style="border-radius:16px;display:block;flex:none" src="data:image/png;base64,{data}">'


async def row(browser: Browser, to: Path, pictures: list[bytes], ground: str) -> None:
    """Several screens beside each other, as one small picture."""
    page = await browser.new_page(viewport={"width": 1600, "height": 400})
    images = "".join(PICTURE.format(data=base64.b64encode(picture).decode()) for picture in pictures)
    await page.set_content(ROW.format(pictures=images, ground=ground))
    await page.locator("body").screenshot(path=to)
    await page.close()


async def buyers_way(visit: Visit, stack: Stack, locale: str, scheme: Any) -> list[bytes]:
    user = {"en-GB": "ann", "zh-CN": "xiaoming"}[locale]
    title = {"en-GB": "Wireless headphones", "zh-CN": "无线降噪耳机"}[locale]
    sale = await stack.create_sale(title=title, units=100, price_cents=9900, begins_at=in_s(30), ends_at=in_s(3600))
    page = await visit.sale_page(sale, user, viewport={"width": 360, "height": 740}, locale=locale, color_scheme=scheme)
    await expect(page.get_by_role("timer")).to_contain_text("00:00:07", timeout=60_000)
    pictures = [await page.screenshot()]
    with stopped(stack):
        await press(page)
        await order_is(page, "queued")
        await page.wait_for_timeout(500)
        pictures.append(await page.screenshot())
    await order_is(page, "unpaid")
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    pictures.append(await page.screenshot())
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    await page.wait_for_timeout(500)
    pictures.append(await page.screenshot())
    return pictures


async def other_ends(visit: Visit, stack: Stack) -> list[bytes]:
    """Sold out, the limit, too late to pay, trouble on the way."""
    pictures = []
    size = {"width": 360, "height": 740}
    sale = await stack.create_sale(title="Kettle", units=1, price_cents=4900, begins_at=in_s(-60), ends_at=in_s(3600))
    page = await visit.sale_page(sale, "sol", viewport=size)
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    await buy(stack, sale, "rival")
    await press(page)
    await expect(page.locator("[data-refusal]")).to_be_visible()
    pictures.append(await _still(page))
    window = {"begins_at": in_s(-60), "ends_at": in_s(3600)}
    sale = await stack.create_sale(title="Lamp", units=9, price_cents=2900, pay_within_s=2, **window)
    page = await visit.sale_page(sale, "late", viewport=size)
    await press(page)
    await order_is(page, "expired")
    pictures.append(await _still(page))
    page = await visit.sale_page(sale, "cut", viewport=size)
    await page.route("**/v1/sales/*/orders", lambda route: route.abort())
    await press(page)
    await expect(page.locator("[data-phase=sending]")).to_contain_text("No connection")
    pictures.append(await _still(page))
    await page.goto(f"{stack.url}/orders#token={stack.token('ann')}")
    await page.reload()
    await expect(page.locator(".order-row").first).to_be_visible()
    pictures.append(await _still(page))
    return pictures


async def _still(page: Page) -> bytes:
    await page.wait_for_timeout(500)  # until what moves has come to rest
    return await page.screenshot()


async def crowd(stack: Stack, sale: dict[str, Any], many: int) -> None:
    async with httpx2.AsyncClient(base_url=stack.url, timeout=30) as http:

        async def one(number: int) -> None:
            await asyncio.sleep(random.triangular(0, 24, 6))
            headers = {"Authorization": f"Bearer {stack.token(f'buyer-{number}')}"}
            made = await http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)
            if made.status_code == 202 and number % 10:
                order = f"/v1/orders/{made.json()['order_id']}"
                await http.get(f"{order}?wait=30", headers=headers)
                verb = "pay" if number % 3 else "cancel"
                await http.post(f"{order}/{verb}", headers=headers)

        await asyncio.gather(*map(one, range(many)))


async def console(visit: Visit, stack: Stack) -> bytes:
    sale = await stack.create_sale(
        title="Running shoes", units=360, price_cents=39900, begins_at=in_s(-60), ends_at=in_s(3600)
    )
    await stack.create_sale(title="Midnight voucher", units=1000, price_cents=0, begins_at=in_s(7200))
    page = await visit.console()
    await page.set_viewport_size({"width": 1200, "height": 900})
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await crowd(stack, sale, 420)
    await page.wait_for_timeout(1500)
    return await page.screenshot()


async def main(folder: Path) -> None:
    path = next(found for found in map(shutil.which, NAMES) if found)
    arguments = ARGUMENTS + (["--no-sandbox"] if os.getuid() == 0 else [])
    with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
        stack = Stack(Path(name), settings={"SECKILL_SHOP_NAME": "Shop"})
        async with running(stack), async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=path, args=arguments)
            visit = Visit(browser, stack)
            await row(browser, folder / "buyer.png", await buyers_way(visit, stack, "en-GB", "light"), "#e4e5e9")
            await row(browser, folder / "buyer-dark.png", await buyers_way(visit, stack, "zh-CN", "dark"), "#000000")
            await row(browser, folder / "buyer-ends.png", await other_ends(visit, stack), "#e4e5e9")
            (folder / "console.png").write_bytes(await console(visit, stack))
            await visit.end()
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
