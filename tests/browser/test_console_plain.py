"""The console says what is so: what will be announced, what is a draft, what hangs, what is paid for."""

import os
import signal

from playwright.async_api import Page, expect

from tests.browser.visiting import Visit, ask, buy, buyer, in_s, operator, sale_called, serious
from tests.e2e.stack import Stack


async def new_sale(page: Page, title: str) -> None:
    await page.locator("aside button.primary").click()
    await page.locator(".sale-form [name=title]").fill(title)


async def test_a_free_sale_is_ticked_and_never_left_empty(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await new_sale(page, "Leaflet")
    form = page.locator(".sale-form")
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[data-field=price] .problem")).to_contain_text("tick “Free”")
    await expect(form.locator("[name=price]")).to_be_focused()
    await form.locator("[name=free]").check()
    await expect(form.locator("[name=price]")).to_be_disabled()
    await expect(form.locator("[data-outcome]")).to_contain_text("100 units in total")
    await expect(form.locator("[data-outcome]")).to_contain_text("Free · on sale from")
    await expect(form.locator("[data-outcome]")).to_contain_text("as soon as you announce it")
    assert await serious(page) == []
    await form.locator("button[type=submit]").click()
    await expect(page.locator("[data-made]")).to_contain_text("The sale is announced.")
    made = await sale_called(stack, "Leaflet")
    assert made["price_cents"] == 0
    await expect(page.locator("[data-made] a")).to_have_attribute("href", f"{stack.url}/sales/{made['id']}")
    assert made["state"] == "scheduled", "there is time to look at it"


async def test_a_draft_is_called_one_everywhere(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await new_sale(page, "Winter coat")
    form = page.locator(".sale-form")
    await form.locator("[name=price]").fill("120")
    await form.locator("[name=begins_at]").fill("2020-01-01T00:00:00")
    await form.locator("[name=ends_at]").fill("2099-01-01T00:00:00")
    await form.locator("[name=draft]").check()
    await expect(form.locator("[data-outcome]")).to_contain_text("until you publish it")
    await form.get_by_role("button", name="Save draft").click()
    await expect(page.locator(".view-head .chip")).to_have_text("Draft")
    await expect(page.locator("[data-made]")).to_contain_text("Saved as a draft")
    await expect(page.locator("[data-what='sale.created']")).to_contain_text("made a draft")
    await expect(page.locator(".sale-list li", has_text="Winter coat")).to_contain_text("Draft")
    await page.goto(f"{stack.url}/console#/")
    row = page.locator("[data-sale]", has_text="Winter coat")
    await expect(row.locator("[data-cell=state]")).to_have_text("Draft")
    await page.locator("[data-group=on]").click()
    await expect(row).to_have_count(0)
    await page.locator("[data-group=draft]").click()
    await expect(row).to_have_count(1)


async def test_a_process_that_hangs_is_said_at_the_top(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Gong", units=3)
    page = await visit.console()
    await expect(page.locator("[data-figure=alarms] dd")).not_to_have_text("–")
    (pid,) = stack.pids("worker")
    os.kill(pid, signal.SIGSTOP)
    try:
        silent = page.locator(".health [data-trouble=silent]")
        await expect(silent).to_contain_text("silent since")
        await expect(silent).to_have_attribute("data-tone", "red")  # no other process writes orders here
        await expect(page.locator("[data-figure=alarms]")).to_have_attribute("data-bad", "true")
        assert await serious(page) == []
        await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
        await expect(silent).to_contain_text("worker")
        await page.goto(f"{stack.url}/console#/alarms")
        await expect(silent).to_contain_text("worker")
    finally:
        os.kill(pid, signal.SIGCONT)
    await expect(page.locator(".health [data-trouble=silent]")).to_have_count(0)


async def test_all_faults_of_a_form_are_told_at_once_and_the_first_has_the_focus(visit: Visit) -> None:
    page = await visit.console()
    await new_sale(page, "Sieve")
    form = page.locator(".sale-form")
    await form.locator("[name=units]").fill("many")
    await form.locator("[name=price]").fill("9.999")
    await form.locator("[name=ends_at]").fill("2020-01-01T00:00:00")
    await form.locator("[name=timezone]").fill("Shanghai")
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[name=units]")).to_be_focused()
    await expect(form.locator("[data-field=timezone] .problem")).to_contain_text("is not a time zone")
    await expect(form.locator(".form-foot > .problem")).to_have_text("4 fields need attention.")
    await form.locator("[name=units]").fill("5")
    await expect(form.locator(".form-foot > .problem")).to_have_text("3 fields need attention.")


async def test_a_form_that_is_closed_is_there_again_as_it_was(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/record")
    await new_sale(page, "Half a ladle")
    assert page.url.endswith("#/new")
    await page.keyboard.press("Escape")
    await expect(page.locator(".sale-form")).to_have_count(0)
    await expect(page.locator(".view h1")).to_have_text("Record")
    await page.locator("aside button.primary").click()
    await expect(page.locator(".sale-form [name=title]")).to_have_value("Half a ladle")
    await page.go_back()
    await expect(page.locator(".sale-form")).to_have_count(0)
    await page.locator("aside button.primary").click()
    await page.get_by_role("button", name="Start over").click()
    await expect(page.locator(".sale-form [name=title]")).to_have_value("")
    await expect(page.locator("[data-unfinished]")).to_have_count(0)


async def test_changes_are_not_thrown_away_unasked(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Whisk", units=1)
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await page.get_by_role("button", name="Edit").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Balloon whisk")
    await page.keyboard.press("Escape")
    await expect(form.locator("[data-leaving]")).to_contain_text("not saved")
    await expect(form.locator("[name=title]")).to_have_value("Balloon whisk")
    await form.get_by_role("button", name="Discard changes").click()
    await expect(form).to_have_count(0)
    await expect(page.locator(".view h1")).to_have_text("Whisk")


async def test_to_come_shows_what_was_set_up_and_over_the_whole_round(visit: Visit, stack: Stack) -> None:
    soon = await stack.create_sale(
        title="Next spring", begins_at=in_s(90_000), ends_at=in_s(93_600), delivery="Ships in two days."
    )
    over = await stack.create_sale(title="Last spring", units=2)
    await buy(stack, over, "vera")
    await ask(stack, "POST", f"/v1/sales/{over['id']}/close", operator(stack))
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/sales/{soon['id']}")
    await expect(page.locator("[data-set-up]")).to_contain_text("Ships in two days.")
    await expect(page.locator("[data-set-up]")).to_contain_text(f"/sales/{soon['id']}")
    await expect(page.locator("canvas")).to_have_count(0)
    assert await serious(page) == []
    await page.goto(f"{stack.url}/console#/sales/{over['id']}")
    await expect(page.locator(".charts-head")).to_contain_text("one point every")
    await expect(page.locator("[data-fact=money]")).to_contain_text("none")


async def test_paid_and_reserved_are_told_apart(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Trivet", units=4, price_cents=7_00)
    paid = await buy(stack, sale, "wim")
    await buy(stack, sale, "xan")
    page = await visit.console()
    sold = page.locator(f"[data-sale='{sale['id']}'] [data-cell=sold]")
    await expect(sold).to_contain_text("0 of 4 paid")
    await expect(sold).to_contain_text("2 reserved, not paid")
    await ask(stack, "POST", f"/v1/orders/{paid}/pay", buyer(stack, "wim"))
    await expect(sold).to_contain_text("1 of 4 paid")
    await expect(sold).to_contain_text("1 reserved, not paid")
    await page.goto(f"{stack.url}/console#/orders/{paid}")
    await page.locator(".found").get_by_role("link", name="Trivet").click()
    await expect(page.locator(".view h1")).to_have_text("Trivet")


async def test_another_area_begins_at_its_top(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Ladle")
    page = await visit.console()
    await page.set_viewport_size({"width": 1200, "height": 500})
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await expect(page.locator(".charts-section")).to_be_visible()
    await page.locator(".charts-section").evaluate("charts => charts.scrollIntoView()")
    await page.wait_for_function("scrollY > 0")
    await page.locator(".areas a[href='#/system']").click()
    await expect(page.locator("[data-server]").first).to_be_visible()
    assert await page.evaluate("scrollY") == 0
