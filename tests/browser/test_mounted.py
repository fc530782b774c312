"""The pages under a path of another application."""

from fastapi import FastAPI
from playwright.async_api import Browser, expect

from seckill import Settings, create_app
from seckill.settings import Secret
from tests.api.conftest import ADMIN_KEY, JWT_SECRET, OPERATOR, sale_body
from tests.browser.visiting import PATIENCE_MS, order_is
from tests.public.serving import on_a_port

SETTINGS = Settings(
    redis_url="memory://", admin_key=Secret(ADMIN_KEY), jwt_secret=JWT_SECRET, demo_sign_in="on", gate_timeout_s=10
)


async def test_the_whole_way_and_the_console(browser: Browser) -> None:
    sale = create_app(SETTINGS)
    shop = FastAPI()
    shop.mount("/flash/sale", sale)
    async with sale.lifespan(), on_a_port(shop) as host:
        url = f"{host}/flash/sale"
        context = await browser.new_context(locale="en-GB", reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        made = await context.request.post(f"{url}/v1/sales", data=sale_body(title="Kettle"), headers=OPERATOR)
        assert made.status == 201
        await page.goto(f"{url}/")
        await page.click("text=Kettle")
        await expect(page.locator("h1")).to_have_text("Kettle")
        await page.click("header >> text=Sign in")
        await page.get_by_label("Your name").fill("Ann")
        await page.locator("dialog button[type=submit]").click()
        await page.locator("[data-action=buy]").click()
        await order_is(page, "unpaid")
        await page.locator("[data-action=pay]").click()
        await order_is(page, "paid")
        await page.click("header >> text=My orders")
        await page.click(".order-row")
        await order_is(page, "paid")
        await page.click("header >> .shop")
        await expect(page.locator(".card")).to_contain_text("Kettle")
        await page.goto(f"{url}/console")
        await page.fill("input[name=key]", ADMIN_KEY)
        await page.click("button[type=submit]")
        await expect(page.locator("aside")).to_contain_text("Kettle")
        assert [address for address in asked if not address.startswith((url, "data:"))] == []
        await context.close()
