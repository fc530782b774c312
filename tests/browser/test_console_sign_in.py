"""Signing in to the console with a provider, under a path of another application."""

import os
from dataclasses import replace
from pathlib import Path

from fastapi import FastAPI
from playwright.async_api import Browser, Page, expect

from seckill import create_app
from seckill.lab.servers.ports import free_port
from seckill.settings import Secret
from tests.api.conftest import OPERATOR, sale_body
from tests.api.sign_in_stand_in import CLIENT, CLIENT_SECRET, running_provider
from tests.browser.test_mounted import SETTINGS
from tests.browser.visiting import DESKTOP, PATIENCE_MS, PHONE, serious
from tests.public.serving import on_a_port

PICTURES = os.environ.get("SECKILL_TEST_PICTURES")  # a folder: pages are kept there for people to look at


async def keep(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def test_there_back_and_out_again(browser: Browser) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/sale"
    with running_provider() as provider:
        settings = replace(
            SETTINGS,
            public_url=url,
            oidc_url=provider.url,
            oidc_name="Tea ID",
            oidc_client_id=CLIENT,
            oidc_client_secret=Secret(CLIENT_SECRET),
            oidc_roles=(("operator", "sales"),),
        )
        sale, shop = create_app(settings), FastAPI()
        shop.mount("/sale", sale)
        async with sale.lifespan(), on_a_port(shop, port):
            context = await browser.new_context(
                locale="zh-CN", reduced_motion="reduce", viewport={"width": PHONE["width"], "height": PHONE["height"]}
            )
            context.set_default_timeout(PATIENCE_MS)
            page = await context.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            made = await context.request.post(f"{url}/v1/sales", data=sale_body(title="Kettle"), headers=OPERATOR)
            await page.goto(f"{url}/console#/sales/{(await made.json())['id']}")
            await expect(page.get_by_role("button", name="用 Tea ID 登录")).to_be_visible()
            assert await serious(page) == []
            await keep(page, "sign-in-phone")
            await page.get_by_role("button", name="用 Tea ID 登录").click()
            await page.get_by_role("button", name="菜单").click()
            await expect(page.locator("[data-me]")).to_have_text("lina@shop.example · 操作员")
            await page.keyboard.press("Escape")
            await expect(page.locator("[data-me]")).to_have_count(0)
            await expect(page.get_by_role("heading", name="Kettle")).to_be_visible()
            assert await page.evaluate("document.cookie") == "", "no script can read it"
            await page.get_by_role("button", name="暂停").first.click()
            await page.locator("dialog[open]").get_by_role("button", name="暂停").click()
            await expect(page.locator("[data-record] [data-what='sale.paused']")).to_contain_text("lina@shop.example")
            again = await context.new_page()  # another tab of the same browser
            await again.set_viewport_size({"width": DESKTOP["width"], "height": DESKTOP["height"]})
            await again.goto(f"{url}/console")
            await expect(again.locator("[data-me]")).to_have_text("lina@shop.example · 操作员")
            await again.get_by_role("button", name="退出").click()
            await expect(again.get_by_role("button", name="用 Tea ID 登录")).to_be_visible()
            await expect(page.get_by_text("请重新登录")).to_be_visible()
            await keep(page, "session-over")
            await keep(again, "sign-in-desktop")
            provider.claims = lambda asked, **changes: type(provider).claims(provider, asked, groups=["cleaning"])  # type: ignore[method-assign]
            await again.get_by_role("button", name="用 Tea ID 登录").click()
            await expect(again.get_by_text("没有任何角色")).to_be_visible()
            assert again.url.startswith(f"{url}/console/signed-in")
            await keep(again, "no-role")
            assert await serious(again) == []
            assert faults == []
            await context.close()
