"""Looking back in the console: all sales at a glance, charts of what is over, what came of it and what happened."""

from typing import Any

import httpx2
from playwright.async_api import Page, expect

from tests.browser.visiting import PHONE, Visit, ask, buy, buyer, in_s, operator, orders_of, serious
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S


async def sold_out(stack: Stack, title: str) -> dict[str, Any]:
    """Two units, of which one is paid for, and a buyer who came too late."""
    sale = await stack.create_sale(title=title, units=2, price_cents=12_50, ends_at=in_s(3600))
    first = await buy(stack, sale, f"{title}-ann")
    await buy(stack, sale, f"{title}-bob")
    await ask(stack, "POST", f"/v1/orders/{first}/pay", buyer(stack, f"{title}-ann"))
    async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        late = await http.post(f"/v1/sales/{sale['id']}/orders", json={}, headers=buyer(stack, f"{title}-cid"))
        assert late.json()["code"] == "sold_out"
    return sale


TOPS = "(elements) => [...new Set(elements.map((element) => Math.round(element.getBoundingClientRect().top)))]"


async def chart_of(page: Page, name: str) -> str:
    return await page.locator(f"[data-chart={name}] .value").inner_text()


async def test_all_sales_at_a_glance_found_by_words_and_keys(visit: Visit, stack: Stack) -> None:
    sale = await sold_out(stack, "Amphora")
    await stack.create_sale(title="Amphora of next year", units=7, begins_at=in_s(9_000), ends_at=in_s(9_900))
    page = await visit.console()
    row = page.locator(f"[data-sale='{sale['id']}']")
    await expect(row.locator("[data-cell=state]")).to_contain_text("Sold out")
    await expect(row.locator("[data-cell=sold]")).to_contain_text("1 reserved, not paid")
    await expect(page.locator("[data-group=stopped]")).to_contain_text("Sold out, paused")  # no one can buy in it now
    await expect(row.locator("[data-cell=sold]")).to_contain_text("1 of 2 paid")
    await expect(row.locator("[data-cell=revenue]")).to_have_text("CN¥12.50")
    await page.set_viewport_size({"width": 1200, "height": 900})
    assert len(await page.locator(".overview-find .pill").evaluate_all(TOPS)) == 1, "the groups are in one line"
    await page.keyboard.press("/")
    await page.keyboard.type("amphora")
    await expect(page.locator("[data-sale]")).to_have_count(2)
    await page.locator("[data-group=to_come]").click()
    await expect(page.locator("[data-sale]")).to_have_count(1)
    await expect(page.locator("[data-sale] a")).to_have_text("Amphora of next year")
    await page.locator("[data-group=all]").click()
    await page.locator("[data-sale] a").first.focus()
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("[data-sale] a").nth(1)).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page.locator(".view h1")).to_have_text("Amphora")
    await page.locator("aside .all-sales").click()
    await page.locator("[name=find]").fill("no such sale")
    await expect(page.get_by_text("No sale matches.")).to_be_visible()
    assert await serious(page) == []
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await page.locator("[name=find]").fill("amphora")
    await expect(row).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert await serious(page) == []


async def test_what_happened_is_there_when_the_page_is_opened_later(visit: Visit, stack: Stack) -> None:
    sale = await sold_out(stack, "Carafe")
    why = operator(stack) | {"Seckill-Reason": "a%20crack"}
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/pause", why)
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    summary = page.locator(".summary")
    await expect(summary.locator("[data-fact=money]")).to_contain_text("CN¥12.50")
    await expect(summary.locator("[data-step=orders] strong")).to_have_text("2")
    await expect(summary.locator("[data-step=paid] strong")).to_have_text("1")
    happened = page.locator(".timeline li")
    await expect(happened.filter(has_text="sold out")).to_have_count(1)
    await expect(page.locator("[data-what='sale.paused']")).to_contain_text("root paused the sale")
    await expect(page.locator("[data-what='sale.paused']")).to_contain_text("a crack")
    # This page was opened after it: whatever the charts show of it was kept.
    await happened.filter(has_text="sold out").get_by_role("button").click()
    await expect(page.locator(".charts-head")).to_contain_text("one point every")
    await expect(page.locator("[data-chart=available] .value")).to_have_text("0 units")
    await expect(page.locator("[data-chart=paid] .value")).to_have_text("1 units")
    await page.locator("[data-chart=accepted] .plot").hover(position={"x": 120, "y": 40})
    await expect(page.locator("[data-chart=backlog] figcaption")).to_contain_text(":")  # the same moment in all of them
    shown = await page.locator(".charts-head .facts").inner_text()
    for name in ("Earlier", "Zoom in", "Zoom out", "Later"):
        await page.get_by_role("button", name=name, exact=True).click()
        await expect(page.locator(".charts-head .facts")).not_to_have_text(shown)
        shown = await page.locator(".charts-head .facts").inner_text()
    await page.get_by_role("button", name="Later", exact=True).press("ArrowLeft")
    await expect(page.locator(".charts-head .facts")).not_to_have_text(shown)
    await page.get_by_role("button", name="Live", exact=False).click()
    await expect(page.locator(".charts-head")).to_contain_text("live")
    async with page.expect_download() as saved:
        await page.get_by_role("button", name="Download as CSV").click()
    content = (await (await saved.value).path()).read_text()
    assert content.startswith("at,round,available,accepted_units")
    await expect(summary.locator("[data-fact=sold_out] dt")).to_have_text("Sold out")
    (order,) = await orders_of(stack, "Carafe-bob")
    await ask(stack, "POST", f"/v1/orders/{order['order_id']}/cancel", buyer(stack, "Carafe-bob"))
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/resume", operator(stack))
    await expect(summary.locator("[data-fact=sold_out] dt")).to_have_text("First sold out")  # one is on sale again
    assert await serious(page) == []


async def test_dragging_over_a_chart_looks_closer(visit: Visit, stack: Stack) -> None:
    sale = await sold_out(stack, "Flagon")
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    for above in (".summary .funnel", ".view > .stats", ".timeline li", "#orders-title"):  # nothing moves any more
        await expect(page.locator(above).first).to_be_visible()
    plot = page.locator("[data-chart=accepted] .u-over")
    await plot.scroll_into_view_if_needed()
    box = await plot.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 60, box["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 160, box["y"] + 20, steps=4)
    await page.mouse.up()
    await expect(page.locator(".charts-head")).to_contain_text("one point every 1 s")
    await plot.dblclick()
    await expect(page.locator(".charts-head")).to_contain_text("live")


async def test_what_was_wrong_in_the_form_is_not_said_when_it_is_mended(visit: Visit, stack: Stack) -> None:
    page = await visit.console(timezone_id="Asia/Shanghai")
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await expect(form.locator("[data-field=begins_at]")).to_contain_text("Asia/Shanghai, GMT+8")
    await form.locator("[name=units]").fill("abc")
    await form.locator("[name=price]").fill("9.999")
    await form.locator("button[type=submit]").click()
    for field in ("title", "units", "price"):
        await expect(form.locator(f"[data-field={field}] .problem")).not_to_be_empty()
    await form.locator("[name=units]").fill("a")
    await expect(form.locator("[data-field=units] .problem")).to_contain_text("A whole number")
    await form.locator("[name=units]").fill("5")
    await expect(form.locator("[data-field=units] .problem")).to_be_empty()
    await expect(form.locator("[data-field=title] .problem")).not_to_be_empty()
    await form.locator("[name=currency]").select_option("KWD")
    await expect(form.locator("[data-field=currency]")).to_contain_text("3 decimals")
    await expect(form.locator("[data-field=price] .problem")).to_be_empty()
    problem = {"status": 422, "code": "invalid", "detail": "", "errors": [{"field": "title", "message": "is taken"}]}
    await form.locator("[name=title]").fill("Ewer")
    await page.route("**/v1/sales", lambda route: route.fulfill(status=422, json=problem))
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[data-field=title] .problem")).to_have_text("is taken")
    await form.locator("[name=units]").fill("6")
    await expect(form.locator("[data-field=title] .problem")).to_have_text("is taken")
    await form.locator("[name=title]").fill("Ewer of brass")
    await expect(form.locator("[data-field=title] .problem")).to_be_empty()
    await form.locator("summary", has_text="Preview").click()
    await expect(form.locator(".buyers-view")).to_contain_text("Ewer of brass")
    await expect(form.locator(".buyers-view")).to_contain_text("KWD")
    pressed = form.locator(".buyers-view .button")
    await expect(pressed).to_contain_text("Starts at")
    await expect(pressed).to_be_disabled()
    await form.locator("[name=begins_at]").fill("2020-01-01T10:00:00")
    await expect(pressed).to_contain_text("Buy now")
    await expect(pressed).to_be_enabled()
    assert await serious(page) == []
