"""Webhooks in the console: made with a secret that is shown once, tried, changed, and sent again."""

import pytest
from playwright.async_api import expect

from tests.browser.visiting import PHONE, Visit, ask, buy, operator, serious
from tests.e2e.stack import Stack
from tests.receiver import Received, Receiver


async def test_a_webhook_from_its_making_to_its_end(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Kettle", units=3, price_cents=0)
    async with Receiver().running() as receiver:
        page = await visit.console()
        await page.goto(f"{stack.url}/console#/webhooks")
        await page.get_by_role("button", name="New webhook").click()
        form = page.locator(".webhook-form")
        await form.locator("[name=url]").fill("ftp://nowhere")
        await form.locator("[name=types]").fill("order.*, order.sold")
        await form.locator("button[type=submit]").click()
        await expect(form.locator("[data-field=url] .problem")).to_contain_text("begins with https://")
        await form.locator("[name=url]").fill(receiver.url())
        await form.locator("button[type=submit]").click()
        await expect(form.locator("[data-field=types] .problem")).to_contain_text("there is no type 'order.sold'")
        await form.locator("[name=types]").fill("order.*")
        await form.locator("[name=sale_id]").select_option(sale["id"])
        await form.locator("button[type=submit]").click()
        secret = await page.locator("[data-secret]").inner_text()
        assert secret.startswith("whsec_")
        await page.get_by_role("button", name="I have saved it").click()
        hook = page.locator("[data-webhook]")
        await expect(hook).to_contain_text("order.* · Kettle")
        assert secret not in await page.content(), "shown once"
        await hook.locator("[data-action=test]").click()
        await expect(page.locator(".view > [role=status]")).to_have_text("Test: HTTP 200")
        assert receiver.taken[0].verified_with(secret)["type"] == "webhook.test"

        async def busy(_: Received) -> int:
            return 503

        receiver.answer = busy
        await buy(stack, sale, "kim")
        await hook.locator("summary").click()
        row = hook.locator("tr[data-delivery]", has_text="order.created")
        await expect(row).to_contain_text("HTTP 503")
        await expect(hook).to_contain_text("Failing since")
        receiver.answer = Receiver().answer
        await row.get_by_role("button", name="Send again").click()
        await expect(row).to_contain_text("delivered")
        await hook.locator("[data-action=toggle]").click()
        await expect(hook).to_contain_text("Disabled")
        await hook.locator("[data-action=rotate]").click()
        await page.get_by_role("button", name="Make a new secret").click()
        await expect(page.locator("[data-secret]")).to_contain_text("whsec_")
        await page.get_by_role("button", name="I have saved it").click()
        await hook.locator("[data-action=delete]").click()
        await page.get_by_role("button", name="Delete it").click()
        await expect(hook).to_have_count(0)
        await expect(page.get_by_text("Events are not sent anywhere yet.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_on_a_phone_in_chinese(visit: Visit, stack: Stack, scheme: str) -> None:
    path = "/v1/admin/webhooks"
    async with Receiver().running() as receiver:
        made = await ask(stack, "POST", path, operator(stack), url=receiver.url(), enabled=False)
        await ask(stack, "POST", f"{path}/{made['id']}/test?wait=30", operator(stack))
    page = await visit.console(locale="zh-CN", color_scheme=scheme)
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await page.goto(f"{stack.url}/console#/webhooks")
    hook = page.locator(f"[data-webhook='{made['id']}']")
    await expect(hook).to_contain_text("已停用")
    await hook.locator("summary").click()
    await expect(hook.locator("tr[data-delivery]")).to_contain_text("已送达")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await serious(page) == []
    await hook.locator("[data-action=edit]").click()
    await expect(page.locator(".webhook-form [name=url]")).to_have_value(made["url"])
    assert await serious(page) == []
    await page.keyboard.press("Escape")
    await hook.locator("[data-action=delete]").click()
    await page.get_by_role("button", name="删除", exact=True).click()
    await expect(hook).to_have_count(0)
