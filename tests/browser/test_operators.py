"""Keys, the record and blocked buyers in the console, and what an operator with the role of a reader is offered."""

import os
from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.test_line import announce, join
from tests.browser.visiting import PHONE, Visit, ask, operator, serious
from tests.e2e.stack import Stack

PICTURES = os.environ.get("SECKILL_TEST_PICTURES")  # a folder: pages are kept there for people to look at


async def keep(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def test_a_key_from_its_making_to_its_end(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Lantern", units=3)
    page = await visit.console()
    await expect(page.locator("[data-me]")).to_have_text("root · admin")
    await page.goto(f"{stack.url}/console#/keys")
    await page.get_by_role("button", name="New key").click()
    form = page.locator("[data-form=key]")
    await form.locator("[name=name]").fill("root")
    await form.locator("button[type=submit]").click()
    await expect(form.locator(".problem")).to_contain_text("no operator may have this name")
    await form.locator("[name=name]").fill("Li Na")
    await form.locator("[name=role]").select_option("viewer")
    await form.locator("button[type=submit]").click()
    key = await page.locator("[data-secret]").inner_text()
    await keep(page, "key-made")
    await page.get_by_role("button", name="I have saved it").click()
    row = page.locator("[data-key]", has_text="Li Na")
    await expect(row).to_contain_text("viewer")
    assert key not in await page.content(), "shown once"
    await keep(page, "keys")

    reader = await visit.console(key=key)
    await expect(reader.locator("[data-me]")).to_have_text("Li Na · viewer")
    await reader.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await expect(reader.get_by_role("heading", name="Lantern")).to_be_visible()
    await expect(reader.locator("[data-record] [data-what='sale.created']")).to_contain_text("root")
    await expect(reader.get_by_role("button", name="New sale")).to_have_count(0)
    await expect(reader.get_by_role("button", name="Pause")).to_have_count(0)
    await expect(reader.locator(".areas a[href='#/keys']")).to_have_count(0)
    line = await announce(stack, order="draw", beacon=True)
    await join(stack, line, "ann")
    for who, actions in ((reader, 0), (page, 1)):
        await who.goto(f"{stack.url}/console#/sales/{line['id']}")
        await expect(who.locator("[data-entry=waiting]")).to_have_count(1)
        for action in ("pause-line", "pace", "beacon", "remove"):
            await expect(who.locator(f"[data-action={action}]")).to_have_count(actions)
    await page.goto(f"{stack.url}/console#/keys")
    await reader.reload()
    await expect(reader.locator("[data-me]")).to_have_text("Li Na · viewer")

    await row.get_by_role("button", name="Revoke").click()
    asked = page.locator("dialog[open]")
    await asked.locator("[name=reason]").fill("has left, 已离职")
    await keep(page, "key-revoked-why")
    await asked.get_by_role("button", name="Revoke").click()
    await expect(row).to_contain_text("revoked")
    await expect(reader.get_by_text("Please enter your key again")).to_be_visible()
    await page.goto(f"{stack.url}/console#/record")
    await expect(page.locator("[data-what='key.revoked']")).to_contain_text("has left, 已离职")


async def test_the_record_and_a_blocked_buyer(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Teapot", units=3)
    await ask(stack, "PATCH", f"/v1/sales/{sale['id']}", operator(stack), title="Teapot, blue", add_units=2)
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/buyers")
    form = page.locator("[data-form=block]")
    await form.locator("[name=buyer]").fill("reseller-7")
    await form.locator("[name=reason]").fill("forty accounts")
    await form.get_by_role("button", name="Block", exact=True).click()
    await expect(page.locator("[data-buyer=reseller-7]")).to_contain_text("forty accounts")
    assert await serious(page) == []
    await keep(page, "buyers")
    await page.goto(f"{stack.url}/console#/record/{sale['id']}")
    changed = page.locator("[data-what='sale.changed']")
    await expect(changed).to_contain_text("Teapot → Teapot, blue")
    await expect(changed).to_contain_text("units 3 → 5")
    await page.goto(f"{stack.url}/console#/record")
    await expect(page.locator("[data-what='buyer.blocked']")).to_contain_text("reseller-7")
    assert await serious(page) == []
    await keep(page, "record")


async def test_on_a_phone_in_chinese(visit: Visit, stack: Stack) -> None:
    made = await ask(stack, "POST", "/v1/admin/operators", operator(stack), name="王芳", role="operator")
    sale = await stack.create_sale(title="茶壶", units=3)
    page = await visit.console(locale="zh-CN", color_scheme="dark")
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    for area, shown in (
        ("keys", "王芳 · 操作员"),
        ("record", "创建密钥"),
        ("buyers", "限制买家"),
        (f"sales/{sale['id']}", "时间线"),
    ):
        await page.goto(f"{stack.url}/console#/{area}")
        await expect(page.locator(".view")).to_contain_text(shown)
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert await serious(page) == []
        await keep(page, f"phone-{area.partition('/')[0]}")
    await page.goto(f"{stack.url}/console#/keys")
    row = page.locator(f"[data-key='{made['id']}']")
    await row.get_by_role("button", name="撤销").click()
    await page.locator("dialog[open]").get_by_role("button", name="撤销").click()
    await expect(row).to_contain_text("已撤销")
