"""The operator's console, with a sale going on."""

import asyncio
import json
import os
import re
import signal

import redis
from playwright.async_api import Page, Route, expect

from seckill import __version__
from seckill.backends.redis import keys
from tests.browser.visiting import (
    Visit,
    admin_key,
    ask,
    buy,
    buyer,
    in_s,
    notify,
    operator,
    sale_called,
    serious,
    stopped,
)
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S


async def open_sale(visit: Visit, sale: dict[str, str]) -> Page:
    page = await visit.console()
    await page.goto(f"{visit.stack.url}/console#/sales/{sale['id']}")
    await expect(page.locator(".view h1")).to_have_text(sale["title"])
    return page


async def units(page: Page, **wanted: int) -> None:
    for place, many in wanted.items():
        await expect(page.locator(f".legend [data-place={place}] dd").first).to_have_text(str(many))


async def test_only_the_admin_key_opens_it_and_it_stays_in_the_tab(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await page.goto(f"{stack.url}/console")
    await page.fill("input[name=key]", stack.token("ann"))
    await page.click("button[type=submit]")
    await expect(page.get_by_role("alert")).to_contain_text("not a key of this server")
    await page.fill("input[name=key]", admin_key(stack))
    await page.click("button[type=submit]")
    await expect(page.locator("aside")).to_be_visible()
    await page.reload()
    await expect(page.locator("aside")).to_be_visible()
    assert admin_key(stack) not in await page.evaluate("JSON.stringify(localStorage)") + page.url


async def test_a_key_that_is_no_longer_good_costs_nothing_that_was_typed(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Half a sale")
    await form.locator("[name=free]").check()
    # The key is changed on the server meanwhile: here, in the tab.
    await page.evaluate("sessionStorage.setItem('seckill.admin-key', 'no-longer-the-admin-key')")
    question = page.locator("dialog", has=page.locator("[name=key]"))
    await expect(question.get_by_role("alert")).to_contain_text("not a key of this server")
    await page.keyboard.press("Escape")
    await question.locator("[name=key]").fill(admin_key(stack))
    await question.locator("button[type=submit]").click()
    await expect(question).not_to_be_visible()
    assert await form.locator("[name=title]").input_value() == "Half a sale"
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view h1")).to_have_text("Half a sale")


async def test_a_sale_is_announced_and_what_is_wrong_is_said_at_its_field(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("x" * 201)
    await form.locator("[name=units]").fill("abc")
    await form.locator("[name=price]").fill("9.999")
    await form.locator("[name=ends_at]").fill("2020-01-01T00:00:00")
    await form.locator("button[type=submit]").click()
    for field, message in (
        ("title", "At most 200"),
        ("units", "A whole number"),
        ("price", "A price such as"),
        ("ends_at", "must end after"),
    ):
        await expect(form.locator(f"[data-field={field}] .problem")).to_contain_text(message)
    assert await form.locator("[name=units]").input_value() == "abc", "nothing is lost"
    # An error that only the server can find is shown at its field as well.
    problem = {"status": 422, "code": "invalid", "detail": "", "errors": [{"field": "title", "message": "is taken"}]}
    await form.locator("[name=title]").fill("Teapot")
    await form.locator("[name=units]").fill("20")
    await form.locator("[name=price]").fill("9.99")
    await form.locator("[name=ends_at]").fill("2099-01-01T00:00:00")
    await form.locator("[name=timezone]").fill("Asia/Shangai")
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[data-field=timezone] .problem")).to_contain_text("is not a time zone")
    await form.locator("[name=timezone]").fill("Asia/Shanghai")
    await page.route("**/v1/sales", lambda route: route.fulfill(status=422, json=problem))
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[data-field=title] .problem")).to_have_text("is taken")
    await page.unroute("**/v1/sales")
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view h1")).to_have_text("Teapot")
    await expect(page.locator(".sale-list")).to_contain_text("Teapot")
    await units(page, available=20)
    await expect(page.locator(".view-head")).to_contain_text("9.99")
    assert (await sale_called(stack, "Teapot"))["timezone"] == "Asia/Shanghai"


async def test_a_sale_that_repeats_tells_its_next_rounds(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Breakfast")
    await form.locator("[name=free]").check()
    await form.locator("[name=repetition]").select_option("cron")
    await form.locator("[name=timezone]").fill("Asia/Shanghai")
    await form.locator("[name=repeat]").fill("every now and then")
    await expect(form.locator("[data-field=repeat] .problem")).to_contain_text("five fields")
    await form.locator("[name=repeat]").fill("30 9 * * MON-FRI")
    await expect(form.locator(".preview")).to_contain_text("Monday to Friday at 09:30 (Asia/Shanghai)")
    await expect(form.locator(".preview li")).to_have_count(5)
    await expect(form.locator("[data-field=repeat] .problem")).to_be_empty()
    announced = await form.locator(".preview time").evaluate_all("times => times.map(time => time.dateTime)")
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view h1")).to_have_text("Breakfast")
    rounds = page.locator("section", has_text="Next rounds")
    await expect(rounds).to_contain_text("Monday to Friday at 09:30 (Asia/Shanghai)")
    await expect(rounds.locator("li")).to_have_count(5)
    shown = await rounds.locator("time").evaluate_all("times => times.map(time => time.dateTime)")
    assert shown[:4] == announced[1:], "the first of them is the round that the sale is at"
    await page.get_by_role("button", name="Edit").click()
    await expect(form).to_contain_text("to this round only")


async def test_a_sale_over_several_lanes_and_the_servers_word_in_chinese(visit: Visit, stack: Stack) -> None:
    page = await visit.console(locale="zh-CN")
    await page.locator("aside").get_by_role("button", name="新建秒杀").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("手机")
    await form.locator("[name=free]").check()
    await form.locator("[name=repetition]").select_option("cron")
    for hour in ("25", "constructor"):  # the second is a name that every object of the language has
        await form.locator("[name=repeat]").fill(f"0 {hour} * * *")
        await expect(form.locator("[data-field=repeat] .problem")).to_have_text(f"小时不能是“{hour}”，范围是 0 到 23。")
    await form.locator("[name=repetition]").select_option("once")
    lanes = form.locator("[data-field=lanes]")
    await expect(lanes).not_to_be_visible()
    await form.locator("summary", has_text="高级").click()
    for value, message in (("0", "请填写 1 到 256 的整数。"), ("17", "最多 16 条通道（由 SECKILL_LANES 设定）。")):
        await lanes.locator("input").fill(value)
        await form.locator("button[type=submit]").click()
        await expect(lanes.locator(".problem")).to_have_text(message)
        await expect(lanes.locator("input")).to_be_focused()
    await lanes.locator("input").fill("2")
    await form.locator("[name=confirm]").select_option("ledger")
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view-head")).to_contain_text("2 条通道")
    await units(page, available=100)
    assert (await sale_called(stack, "手机"))["confirm"] == "ledger"
    on_now = await stack.create_sale(title="充电器", units=3)
    await page.goto(f"{stack.url}/console#/sales/{on_now['id']}")
    await expect(page.locator("[data-stat=p99] dt")).to_have_text("全系统 p99（10 秒）")


async def test_many_sales_leave_what_stands_below_them_in_sight(visit: Visit, stack: Stack) -> None:
    for number in range(10):
        await stack.create_sale(title=f"Spoon {number}", units=1)
    page = await visit.console()
    await page.set_viewport_size({"width": 1440, "height": 640})
    await expect(page.locator(".sale-list li")).not_to_have_count(0)
    await expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport(ratio=1)
    hidden = "(list) => list.scrollHeight - list.clientHeight"
    assert await page.locator("nav:has(.sale-list)").evaluate(hidden) > 0
    assert await page.locator("aside").evaluate(hidden) == 0
    chosen = page.locator(".sale-list li a").first
    await chosen.click()
    chosen = page.locator(".sale-list [aria-current=page]")
    await expect(chosen).to_be_in_viewport()
    sale_id = str(await chosen.get_attribute("href")).rpartition("/")[2]
    await ask(stack, "POST", f"/v1/sales/{sale_id}/close", operator(stack))
    await expect(page.locator(".sale-list li").first.locator("[aria-current=page]")).to_have_count(0)
    await expect(chosen).to_be_in_viewport()


async def test_on_a_phone_the_content_begins_high_up_and_no_state_is_cut(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Ladle", units=5)
    for number in range(10):
        await stack.create_sale(title=f"Fork {number}", units=1)
    await buy(stack, sale, "a-buyer-with-a-name-as-long-as-this")
    page = await open_sale(visit, sale)
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(page.locator(".sale-list")).not_to_be_visible()
    heading = await page.locator(".view h1").bounding_box()
    assert heading is not None
    assert heading["y"] < 844 / 6
    state = await page.locator("[aria-labelledby=orders-title] tbody .chip").bounding_box()
    assert state is not None
    assert state["x"] + state["width"] <= 390 - 16
    menu = page.locator(".menu")
    await expect(menu).to_have_attribute("aria-expanded", "false")
    await menu.click()
    for link in ("Orders", "System", "Keys"):  # and what is behind it is all in sight
        await expect(page.locator(".areas").get_by_text(link, exact=True)).to_be_visible()
    await page.locator(".sale-list").get_by_text("Fork 3").click()
    await expect(page.locator(".view h1")).to_have_text("Fork 3")
    await expect(page.locator(".sale-list")).not_to_be_visible()


async def test_a_sale_is_paused_resumed_enlarged_edited_and_closed(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Chair", units=5, ends_at=in_s(3600))
    page = await open_sale(visit, sale)
    head = page.locator(".view-head")
    why = page.locator("dialog[open] [name=reason]")
    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.locator("dialog[open]")).to_contain_text("From now on nobody can buy")
    await why.fill("the price is wrong")
    await page.get_by_role("button", name="Pause it for everyone").click()
    await expect(head).to_contain_text("Paused")
    await page.get_by_role("button", name="Resume").click()
    await expect(head).to_contain_text("On now")
    await page.get_by_role("button", name="Add units").first.click()
    await page.locator("[name=add_units]").fill("many")
    await page.locator("dialog[open] button[type=submit]").click()
    await expect(page.locator("dialog[open] .problem")).to_contain_text("A whole number")
    await page.locator("[name=add_units]").fill("7")
    await why.fill("seven were found")
    await page.locator("dialog[open] button[type=submit]").click()
    await units(page, available=12)
    await page.get_by_role("button", name="Edit").click()
    await page.locator("dialog[open] [name=title]").fill("Armchair")
    await why.fill("it has arms")
    await page.locator("dialog[open] button[type=submit]").click()
    await expect(page.locator(".view h1")).to_have_text("Armchair")
    await page.get_by_role("button", name="End sale", exact=True).click()
    await page.get_by_role("button", name="End it for good").click()
    await expect(head).to_contain_text("Over")
    await expect(head).to_contain_text("closed early")
    custody = await ask(stack, "GET", f"/v1/sales/{sale['id']}/custody", operator(stack))
    assert custody["total"] == 12
    entries = (await ask(stack, "GET", f"/v1/admin/record?sale_id={sale['id']}", operator(stack)))["entries"]
    reasons = ["the price is wrong", None, "seven were found", "it has arms", None]
    assert [entry["why"] for entry in reversed(entries)] == [None, *reasons]


async def test_the_custody_bar_follows_every_unit(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=10)
    page = await open_sale(visit, sale)
    await units(page, available=10, unpaid=0, paid=0)
    orders = [await buy(stack, sale, f"unit{number}") for number in range(3)]
    await units(page, available=7, unpaid=3)
    await expect(page.locator(".legend div[data-place=unpaid]")).to_contain_text("next return in 14:")
    await ask(stack, "POST", f"/v1/orders/{orders[0]}/pay", buyer(stack, "unit0"))
    await ask(stack, "POST", f"/v1/orders/{orders[1]}/cancel", buyer(stack, "unit1"))
    await units(page, available=8, unpaid=1, paid=1, returning=0)
    assert await page.locator(".bar .segment").count() == 3
    await expect(page.locator(".view > .stats")).to_contain_text("Accepted units3")
    await expect(page.locator("[data-stat=p99] dt")).to_have_text("System p99 (10 s)")
    await expect(page.locator("section", has_text="Newest orders").locator("tbody tr")).to_have_count(3)
    await page.set_viewport_size({"width": 1200, "height": 900})
    tops = await page.locator(".legend dd:first-of-type").evaluate_all(
        "(elements) => elements.map((element) => Math.round(element.getBoundingClientRect().top))"
    )
    assert len(tops) == 7
    assert len(set(tops)) == 1, "all places in one row, and the numbers on one line"
    await expect(page.locator("canvas")).to_have_count(7)
    await expect(page.locator(".verdict")).to_contain_text("Audit passed")


async def test_an_address_that_changes_while_the_page_is_drawn_is_followed(visit: Visit, stack: Stack) -> None:
    """It is drawn first, and listens to changes of its address after the next frame. Here the address changes in
    between, as late as it can."""
    await stack.create_sale(title="Shown by itself")
    sale = await stack.create_sale(title="Wanted", begins_at=in_s(-60))
    page = await visit.console()
    await page.add_init_script(
        f"""const listen = window.addEventListener;
            window.addEventListener = function (name, listener) {{
              if (name === "hashchange") history.replaceState(null, "", "#/sales/{sale["id"]}");
              return listen.apply(window, arguments);
            }};"""
    )
    await page.reload()
    await expect(page.locator(".view h1")).to_have_text("Wanted")


async def test_why_a_buyer_was_refused_is_counted_over_all_processes(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await open_sale(visit, sale)
    await buy(stack, sale, "first")
    refused = 0
    for number in range(8):  # each on a connection of its own, so that both API processes get some
        try:
            await buy(stack, sale, f"second{number}")
        except AssertionError:
            refused += 1
    assert refused == 8
    row = page.locator("section", has_text="Refused, by reason").locator("tbody tr")
    await expect(row).to_have_text("Sold out8")


async def test_the_history_of_an_order_by_its_buyer_and_by_its_id(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Clock", units=5)
    order_id = await buy(stack, sale, "hilda")
    await ask(stack, "POST", f"/v1/orders/{order_id}/cancel", buyer(stack, "hilda"))
    page = await visit.console()
    await page.locator(".areas").get_by_text("Orders").click()
    for wanted in ("hilda", order_id, order_id.lower()):
        await page.locator("[name=what]").fill(wanted)
        await page.get_by_role("button", name="Find").click()
        history = page.locator(".found .history li")
        await expect(history).to_have_count(3)
        await expect(history.nth(0)).to_contain_text("Admitted by the gate")
        await expect(history.nth(1)).to_contain_text("Written to the ledger")
        await expect(history.nth(2)).to_contain_text("Cancelled by the buyer")
        await expect(page.locator(".found > .facts")).to_contain_text("Clock · hilda · CN¥")
    await page.locator("[name=what]").fill("<b>nobody</b>")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_role("status")).to_contain_text("Nothing found for “<b>nobody</b>”")


async def test_what_is_found_late_does_not_replace_a_newer_search(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Clock", units=5)
    order_id = await buy(stack, sale, "hilda")
    page = await visit.console()
    late, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        late.set()
        await go_on.wait()
        await route.continue_()

    await page.route("**/v1/admin/orders?user=hilda", hold)
    await page.locator(".areas").get_by_text("Orders").click()
    await page.locator("[name=what]").fill("hilda")
    await page.get_by_role("button", name="Find").click()
    await late.wait()
    await page.locator("[name=what]").fill("nobody")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_role("status")).to_contain_text("Nothing found for “nobody”")
    async with page.expect_response("**/v1/admin/orders?user=hilda") as answered:
        go_on.set()
    assert order_id in await (await answered.value).text()
    await page.evaluate("() => new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)))")
    await expect(page.get_by_role("status")).to_contain_text("Nothing found for “nobody”")
    await expect(page.locator(".found")).to_have_count(0)


async def test_late_money_is_told_in_the_history_and_among_the_refunds(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Vase", units=1)
    order_id = await buy(stack, sale, "lou")
    cancelled = await ask(stack, "POST", f"/v1/orders/{order_id}/cancel", buyer(stack, "lou"))
    async with asyncio.timeout(PATIENCE_S):
        while (await ask(stack, "GET", f"/v1/sales/{sale['id']}/custody", operator(stack)))["available"] == 0:
            await asyncio.sleep(0.05)
    await buy(stack, sale, "quick")  # nothing is left for the money that comes now
    await notify(stack, cancelled, "late-money")
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/orders/%zz")  # badly escaped, so it is looked for as it stands
    await expect(page.get_by_text("Nothing found for “%zz”")).to_be_visible()
    await page.goto(f"{stack.url}/console#/orders/{order_id}")
    history = page.locator(".found .history")
    await expect(history).to_contain_text("99 arrived (sandbox, late-money)")
    await expect(history).to_contain_text("The money came too late and is refunded: no units were left.")
    await page.locator(".areas").get_by_text("Refunds").click()
    row = page.locator("tbody tr", has_text="late-money")
    await expect(row).to_contain_text("no units were left")
    await page.set_viewport_size({"width": 390, "height": 844})
    for place, name in ((3, "Payment"), (4, "Reason")):  # there is no head of the table
        cell = row.locator(f"td:nth-child({place})")
        assert name in await cell.evaluate("(element) => getComputedStyle(element, '::before').content")
    async with asyncio.timeout(PATIENCE_S):  # the keeper asks the provider, and the sandbox gives everything back
        while not (await ask(stack, "GET", "/v1/admin/refunds", operator(stack)))["refunds"][0]["done_at"]:
            await asyncio.sleep(0.05)
    await expect(row).to_contain_text("made")


async def test_an_operator_cancels_and_refunds_with_a_reason(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Lamp", units=5)
    unpaid, paid = await buy(stack, sale, "nan"), await buy(stack, sale, "pat")
    await ask(stack, "POST", f"/v1/orders/{paid}/pay", buyer(stack, "pat"))
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/orders/{unpaid}")
    await page.click("[data-action=cancel]")
    form = page.locator("form[data-form=cancel]")
    await form.get_by_role("button", name="Cancel the order").click()
    await expect(form).to_be_visible()  # no reason, no cancellation
    await form.locator("[name=reason]").fill("a wrong price")
    await form.get_by_role("button", name="Cancel the order").click()
    await expect(page.locator(".found header")).to_contain_text("Cancelled")
    await expect(page.locator(".found .history")).to_contain_text("a wrong price")
    await page.goto(f"{stack.url}/console#/orders/{paid}")
    await page.click("[data-action=refund]")
    form = page.locator("form[data-form=refund]")
    await form.locator("[name=reason]").fill("scratched")
    await form.locator("[name=amount]").fill("99.01")
    await form.get_by_role("button", name="Refund").click()
    await expect(form).to_contain_text("Only 99.00 CNY of the order is left to refund.")
    await form.locator("[name=amount]").fill("20")
    await form.locator("[name=back]").uncheck()
    assert await serious(page) == []
    await form.get_by_role("button", name="Refund").click()
    await expect(page.locator(".found .history")).to_contain_text("20, units stay sold: scratched")
    page_of_buyer = await visit.page(locale="zh-CN")
    await page_of_buyer.goto(f"{stack.url}/orders/{paid}#token={stack.token('pat')}")
    await expect(page_of_buyer.locator("[data-order-state=paid]")).to_contain_text("¥20 会退还给你")
    await page.click("[data-action=refund]")
    await form.locator("[name=reason]").fill("returned")
    await form.get_by_role("button", name="Refund").click()
    await expect(page.locator(".found header")).to_contain_text("Refunded")
    await page_of_buyer.reload()
    await expect(page_of_buyer.locator("[data-order-state=refunded]")).to_contain_text("商家已退款，¥99 会退还给你。")
    page_of_nan = await visit.page(locale="zh-CN")
    await page_of_nan.goto(f"{stack.url}/orders/{unpaid}#token={stack.token('nan')}")
    await expect(page_of_nan.locator("[data-order-state=cancelled]")).to_contain_text("商家取消了这笔订单")


async def test_what_is_broken_is_shown_with_its_ids_and_mended_after_a_question(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Bell", units=5)
    await buy(stack, sale, "bea")
    page = await visit.console()
    await page.locator(".areas").get_by_text("Audit").click()
    verdict = page.locator(".view-head [data-verdict]")
    await expect(verdict).to_contain_text("Holds")
    with stopped(stack, "keeper"):  # which would raise the alarm, and rightly
        async with stack.engine() as engine:
            (ref,) = [each.round.ref for each in await engine.ledger.sales() if each.title == "Bell"]
        with redis.Redis.from_url(stack.settings.redis_url) as client:
            client.hincrby(keys.round_(ref), "available", -1)
        await page.get_by_role("button", name="Audit every order now").click()
        await expect(verdict).to_contain_text("Broken")
        await expect(page.locator(".findings").first).to_contain_text(sale["title"])
        await page.get_by_role("button", name="Show what would be done").click()
        plan = page.locator("[data-plan=repair_to_do]")
        await expect(plan).to_contain_text(f"Close round {ref.id} to buyers")
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Download as JSON").last.click()
        told = json.loads((await (await download.value).path()).read_text())
        assert (told["done"], len(told["to_do"])) == ([], 1)
        await page.get_by_role("button", name="Repair", exact=True).click()
        await page.get_by_role("button", name="Back").click()
        await expect(verdict).to_contain_text("Broken")
        await page.get_by_role("button", name="Repair", exact=True).click()
        await page.get_by_role("button", name="Repair it now").click()
        await expect(page.locator("[data-plan=repair_done]")).to_contain_text(f"Close round {ref.id} to buyers")
        await expect(verdict).to_contain_text("Holds")
    await buy(stack, sale, "ben")


async def test_dead_letters_are_put_away_after_a_question(visit: Visit, stack: Stack) -> None:
    with redis.Redis.from_url(stack.settings.redis_url) as client:
        client.xadd(keys.orders(0), {"order": b"nobody can read this"})
    page = await visit.console()
    await page.locator(".areas").get_by_text("Dead letters").click()
    letter = page.locator(".found")
    await expect(letter).to_have_count(1)
    await expect(letter).to_contain_text("the entry cannot be read")
    await letter.get_by_role("button", name="Replay").click()
    await page.get_by_role("button", name="Replay it").click()
    await expect(page.get_by_role("status")).to_contain_text("cannot be written")
    await letter.get_by_role("button", name="Discard").click()
    await page.get_by_role("button", name="Back").click()
    await expect(letter).to_have_count(1)
    await letter.get_by_role("button", name="Discard").click()
    await page.get_by_role("button", name="Discard it").click()
    await expect(page.locator(".empty")).to_contain_text("There are none")
    assert (await ask(stack, "GET", "/v1/admin/dead", operator(stack)))["dead"] == []


async def test_a_process_that_hangs_is_seen(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await open_sale(visit, sale)
    await expect(page.locator("[data-nodes]")).to_contain_text("4 processes")
    await page.locator("[data-nodes] a").click()
    rows = page.locator("section", has_text="Processes").locator("tbody tr")
    await expect(rows).to_have_count(4)
    worker = rows.filter(has_text="worker")
    await expect(worker).to_contain_text("running")
    (pid,) = stack.pids("worker")
    os.kill(pid, signal.SIGSTOP)
    try:
        await expect(worker).to_contain_text("silent since")
    finally:
        os.kill(pid, signal.SIGCONT)
    await expect(worker).to_contain_text("running")


async def test_servers_and_settings_stand_in_one_place(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator(".areas").get_by_text("System").click()
    await expect(page.locator("[data-version]")).to_contain_text(f"seckill {__version__}")
    await expect(page.locator("[data-server=gate]")).to_contain_text(re.compile("(Valkey|Redis) [0-9]"))
    await expect(page.locator("[data-server=ledger]")).to_contain_text("SQLite is for one machine")
    changed = page.locator("[data-settings=changed]")
    await expect(changed.get_by_role("row", name="SECKILL_RETRY_DELAYS_S")).to_contain_text("0.1,0.1")
    await expect(changed.get_by_role("row", name="SECKILL_ADMIN_KEY")).to_contain_text("***")
    assert admin_key(stack) not in await page.content()
    await expect(page.get_by_text("SECKILL_LANES")).not_to_be_visible()
    await page.locator("summary", has_text="others").click()
    await expect(page.get_by_text("SECKILL_LANES")).to_be_visible()
    assert await serious(page) == []
    page = await visit.console(locale="zh-CN")
    await page.goto(f"{stack.url}/console#/system")
    await expect(page.locator("[data-server=ledger]")).to_contain_text("SQLite 只适合单机")


async def test_what_ends_a_form_is_in_sight_however_long_it_is(visit: Visit) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    for size in ({"width": 1280, "height": 720}, {"width": 360, "height": 640}):
        await page.set_viewport_size({"width": size["width"], "height": size["height"]})
        await expect(form.locator("[name=title]")).to_be_in_viewport()
        assert await page.locator("dialog[open]").evaluate("dialog => dialog.scrollHeight > dialog.clientHeight")
        await expect(form.get_by_role("button", name="Announce", exact=True)).to_be_in_viewport(ratio=1)
    await form.get_by_role("button", name="Announce", exact=True).click()
    await expect(form.locator(".form-foot .problem")).to_be_in_viewport(ratio=1)
    await expect(form.locator(".form-foot .problem")).to_contain_text("need attention")
