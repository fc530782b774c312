"""The line of a sale in the console: how far it has come, and what an operator does about it."""

from playwright.async_api import Page, expect

from tests.browser.test_line import announce, begin, fits, join
from tests.browser.visiting import PHONE, Visit, ask, buyer, operator, sale_called, serious


async def open_line(visit: Visit, page: Page, sale_id: str) -> None:
    await page.goto(f"{visit.stack.url}/console#/sales/{sale_id}")
    await expect(page.locator(".line-of-sale .stats")).to_be_visible()


async def figure(page: Page, name: str, shown: str) -> None:
    await expect(page.locator(f".line-of-sale [data-figure={name}] dd")).to_have_text(shown)


async def fill(page: Page, name: str, text: str) -> None:
    form = page.locator(f"[data-form={name}]")
    await form.locator("input").fill(text)
    await form.locator("button[type=submit]").click()


async def test_a_draw_is_announced_with_the_form_and_led_to_its_end(visit: Visit) -> None:
    stack = visit.stack
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Drawn in the console")
    await form.locator("[name=units]").fill("1")
    await form.locator("[name=price]").fill("9")
    await form.locator("summary", has_text="Line or draw").click()
    await form.locator("[name=order]").select_option("draw")
    await form.locator("[name=serve_per_s]").fill("none")
    await form.locator("[name=beacon]").check()
    for field in ("begins_at", "ends_at"):
        await form.locator(f"[name={field}]").fill(
            "2099-01-01T10:00:00" if field == "begins_at" else "2099-01-02T10:00:00"
        )
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[data-field=serve_per_s] .problem")).to_contain_text("A whole number")
    await form.locator("[name=serve_per_s]").fill("20")
    await form.locator("button[type=submit]").click()
    await expect(page.locator("[data-line-state=line_is_open]")).to_be_visible()
    sale = await sale_called(stack, "Drawn in the console")
    assert (sale["order"], sale["serve_per_s"], sale["beacon"]) == ("draw", 20, True)
    entries = {user: await join(stack, sale, user) for user in ("liv", "max", "noa")}
    await expect(page.locator("[data-fact=commitment]")).to_be_visible()
    await expect(page.locator("[data-entry=waiting]")).to_have_count(3)
    await expect(page.locator("[data-action=beacon]")).to_be_disabled()
    # A buyer who has no place yet can be found and removed as well.
    await page.locator(".find [name=buyer]").fill("max")
    await page.locator(".find button[type=submit]").click()
    await expect(page.locator("[data-entry]")).to_have_count(1)
    await page.click("[data-action=remove]")
    await fill(page, "reason", "")
    await expect(page.locator("[data-form=reason] .problem")).to_have_text("Enter a reason.")
    await fill(page, "reason", "the same phone as liv")
    await expect(page.locator("[data-entry=left]")).to_contain_text("the same phone as liv")
    told = await ask(stack, "GET", f"/v1/entries/{entries['max']['entry_id']}", buyer(stack, "max"))
    assert (told["state"], told["reason"]) == ("left", "the same phone as liv")
    await page.get_by_role("button", name="Show all").click()
    await begin(stack, sale)
    await expect(page.locator("[data-line-state=line_is_without_beacon]")).to_be_visible()
    await page.click("[data-action=beacon]:enabled")
    await fill(page, "beacon", "two words")
    await expect(page.locator("[data-form=beacon] .problem")).not_to_be_empty()
    await fill(page, "beacon", "lottery/04-11-23")
    await expect(page.locator("[data-draw=drawn] [data-fact=seed]")).to_be_visible()
    await expect(page.locator("[data-draw=drawn] [data-fact=beacon]")).to_contain_text("lottery/04-11-23")
    await figure(page, "served", "1")
    await figure(page, "served_up_to", "1")
    await figure(page, "unpaid", "1")
    await expect(page.locator("[data-entry=served] a")).to_be_visible()
    await expect(page.locator(".funnel [data-step=orders] strong")).to_have_text("1")
    await expect(page.locator(".funnel [data-step=presses]")).to_have_count(0)
    await expect(page.locator("[data-entry=waiting].turn")).to_have_count(1)
    assert await serious(page) == []


async def test_serving_is_paused_resumed_and_paced(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, title="Paced in the console", order="arrival", units=3)
    page = await visit.console(locale="zh-CN")
    await open_line(visit, page, sale["id"])
    await figure(page, "pace", "尽快")
    await page.click("[data-action=pause-line]")
    await page.locator("dialog[open] .button.danger").click()
    await expect(page.locator("[data-action=resume-line]")).to_be_visible()
    await page.click("[data-action=pace]")
    await fill(page, "serve_per_s", "0")
    await expect(page.locator("[data-form=serve_per_s] .problem")).to_contain_text("1")
    await fill(page, "serve_per_s", "30")
    await figure(page, "pace", "每秒 30 人")
    for user in ("pip", "quin"):
        await join(stack, sale, user)
    await begin(stack, sale)
    await expect(page.locator("[data-line-state=line_is_paused]")).to_be_visible()
    await figure(page, "waiting", "2")
    await figure(page, "served", "0")
    await page.click("[data-action=resume-line]")
    await figure(page, "served", "2")
    await expect(page.locator("[data-line-state=line_is_empty]")).to_be_visible()
    await page.locator("[name=shown]").select_option("served")
    await expect(page.locator("[data-entry=served]")).to_have_count(2)
    shown = await ask(stack, "GET", f"/v1/admin/sales/{sale['id']}/line", operator(stack))
    assert (shown["serve_per_s"], shown["line"]["paused"]) == (30, False)
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert await fits(page), "nothing is wider than a phone"
