"""The way of a buyer, on a phone."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.visiting import (
    PHONE,
    Visit,
    ask,
    buy,
    buyer,
    in_s,
    notify,
    operator,
    order_is,
    orders_of,
    press,
    shown_order,
    stopped,
    until_all_say,
    with_settings,
)
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S

# A phone whose clock is an hour late. The page may ask it, and must not believe it.
LATE_CLOCK = "{ const now = Date.now; Date.now = () => now() - 3_600_000; }"


async def server_time(stack: Stack) -> datetime:
    answer = await ask(stack, "GET", "/v1/time", {})
    return datetime.fromisoformat(answer["server_time"])


async def arrive_early(page: Page, stack: Stack) -> dict[str, Any]:
    """Opens the page of a sale that has not begun. A machine that was too slow for it gets more time."""
    for lead_s in (8, 20, 60):
        sale = await stack.create_sale(title=f"Kettle {lead_s}", units=3, begins_at=in_s(lead_s))
        await page.goto(stack.url)
        await page.click(f"text=Kettle {lead_s}")
        await expect(page.locator("h1")).to_contain_text(sale["title"])
        if await server_time(stack) < datetime.fromisoformat(sale["begins_at"]) - timedelta(seconds=4):
            return sale
    raise AssertionError("the page comes a minute late")


async def test_the_whole_way_from_countdown_to_paid(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await page.add_init_script(LATE_CLOCK)
    sale = await arrive_early(page, stack)
    button = page.locator("[data-action=buy]")
    await expect(button).to_contain_text("Starts at")
    await expect(button).to_be_disabled()
    await expect(page.get_by_role("timer")).to_be_visible()
    await page.click("text=Sign in now")
    await page.get_by_label("Your name").fill("Ann")
    await page.locator("dialog button[type=submit]").click()
    await expect(page.locator("header")).to_contain_text("Ann")
    await expect(button).to_be_enabled()
    assert await server_time(stack) >= datetime.fromisoformat(sale["begins_at"]), "enabled before the time"
    with stopped(stack):
        await button.click()
        await order_is(page, "queued")
        await expect(page.get_by_role("status").first).to_contain_text("while we confirm your order")
        await expect(page.locator(".steps li[data-state=done]")).to_have_count(2)
    await order_is(page, "unpaid")
    await expect(page.get_by_role("status").first).to_contain_text("Reserved for you")
    await expect(page.get_by_role("timer")).to_contain_text("14:")
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    order_id = await shown_order(page)
    await page.click("header >> text=My orders")
    await expect(page.locator(".order-row")).to_have_count(1)
    await expect(page.locator(".order-row")).to_contain_text("Paid")
    await page.click(".order-row")
    await order_is(page, "paid")
    assert [order["order_id"] for order in await orders_of(stack, "Ann")] == [order_id]


async def test_a_reload_shows_the_same_truth(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    page = await visit.sale_page(sale, "rita")
    with stopped(stack):
        await press(page)
        await order_is(page, "queued")
        order_id = await shown_order(page)
        await page.reload()
        await order_is(page, "queued")
        assert await shown_order(page) == order_id
    await order_is(page, "unpaid")
    await page.reload()
    await order_is(page, "unpaid")
    assert await shown_order(page) == order_id
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    await page.reload()
    await order_is(page, "paid")
    assert len(await orders_of(stack, "rita")) == 1


async def test_a_sale_that_confirms_in_the_ledger_shows_no_order_before_it_is_there(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3, confirm="ledger")
    page = await visit.sale_page(sale, "conny")
    with stopped(stack):
        await press(page)
        async with page.expect_response(lambda answer: answer.status == 503):  # and the page asks again
            await expect(page.locator("[data-order-state]")).to_have_count(0)
        await page.reload()
        assert await orders_of(stack, "conny") == []
    await order_is(page, "unpaid")
    assert [order["order_id"] for order in await orders_of(stack, "conny")] == [await shown_order(page)]
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")


async def test_an_order_that_could_not_be_written_says_so(visit: Visit, stack: Stack) -> None:
    """The answer to a claim that waited for it says so."""
    sale = await stack.create_sale(units=3, confirm="ledger")
    page = await visit.sale_page(sale, "fay")
    order = {"order_id": "0123456789ABC", "sale_id": sale["id"], "round": sale["round"], "quantity": 1}
    order |= {"state": "failed", "price_cents": 9900, "currency": "CNY", "created_at": in_s(0)}
    problem = {"code": "order_over", "status": 409, "detail": "…", "state": "failed", "order": order}

    async def failed(route: Route) -> None:
        await route.fulfill(status=409, content_type="application/problem+json", json=problem)

    await page.route("**/orders", failed)
    await press(page)
    await order_is(page, "failed")


async def test_sold_out_and_back_again(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await visit.sale_page(sale, "sol")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    rival = await buy(stack, sale, "rival")
    await page.locator("[data-action=buy]").click()
    await expect(page.locator("[data-refusal=sold_out]")).to_contain_text("nothing was charged")
    await expect(page.locator("[data-action=buy]")).to_have_text("Sold out")
    await expect(page.locator("[data-action=buy]")).to_be_disabled()
    await ask(stack, "POST", f"/v1/orders/{rival}/cancel", buyer(stack, "rival"))
    await press(page)
    await order_is(page, "unpaid")


async def test_sold_out_says_what_may_come_back(visit: Visit, stack: Stack) -> None:
    unpaid, paid = [await stack.create_sale(units=1) for _ in range(2)]
    await buy(stack, unpaid, "has-not-paid")
    order = await buy(stack, paid, "has-paid")
    await ask(stack, "POST", f"/v1/orders/{order}/pay", buyer(stack, "has-paid"))
    for sale, said in ((unpaid, "and 1 is not paid for yet"), (paid, "All units are taken and paid for")):
        page = await visit.page()
        await page.goto(f"{stack.url}/sales/{sale['id']}")
        await expect(page.locator(".panel .result")).to_contain_text(said)
        await expect(page.locator(".action .link")).to_have_count(1 if sale is unpaid else 0)  # ready for what?
        another = await visit.sale_page(sale, "sees-it-sold-out")
        await expect(another.locator(".panel .result")).to_contain_text(said)


async def test_sizes_stand_beside_each_other_and_the_clock_beside_the_button(visit: Visit, stack: Stack) -> None:
    items = [{"title": size, "units": 3} for size in ("S", "M", "L")]
    title = "Extraordinarily limited hand-thrown stoneware teapot with a lid that fits " * 2
    sale = await stack.create_sale(title=title.strip(), units=None, items=items, price_cents=999_999_999_999)
    page = await visit.sale_page(sale, "sizes-and-clocks")
    tops = await page.locator(".item").evaluate_all("all => all.map((each) => each.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    await page.set_viewport_size({"width": 320, "height": 640})
    await page.locator(".item").first.click()
    await press(page)
    await order_is(page, "unpaid")
    for shown in (".pay-within", "[data-action=pay]", ".headline"):
        await expect(page.locator(shown)).to_be_in_viewport(ratio=1)
    await page.goto(f"{stack.url}/orders")
    row = page.locator(".order-row")
    await expect(row).to_be_visible()
    widths = await row.evaluate("row => [row.querySelector('.order-title').clientWidth, row.clientWidth]")
    assert widths[0] > 0.8 * widths[1]
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    await expect(page.locator("nav .name")).to_be_visible()
    await page.click("nav .name")  # signing in again under the same name signs no one out
    await expect(row).to_be_visible()
    await page.click("[data-action=sign-out]")
    await expect(row).to_have_count(0)


async def test_the_limit_leads_to_the_order_there_is(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=5)
    page = await visit.sale_page(sale, "lim")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    order_id = await buy(stack, sale, "lim")  # on another phone
    await page.locator("[data-action=buy]").click()
    refusal = page.locator("[data-refusal=limit_reached]")
    await expect(refusal).to_contain_text("You already have yours")
    await expect(refusal.get_by_role("link")).to_have_attribute("href", f"/orders/{order_id}")
    await page.get_by_role("link", name="See your order").click()
    await order_is(page, "unpaid")
    assert await shown_order(page) == order_id


async def test_a_lost_answer_is_asked_for_with_the_same_key(visit: Visit, stack: Stack) -> None:
    """The order is made, its answer never arrives, and the page is loaded anew in between (F9)."""
    sale = await stack.create_sale(units=5, limit_per_buyer=3)
    page = await visit.sale_page(sale, "lost")
    keys: list[str] = []
    lossy = True

    async def lose(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if not lossy:
            await route.continue_()
            return
        await route.fetch()
        await route.abort()

    await page.route("**/v1/sales/*/orders", lose)
    await press(page)
    await expect(page.locator("[data-phase=sending]")).to_contain_text("No connection")
    await until(lambda: len(keys) >= 2)
    await page.reload()
    await expect(page.locator("[data-phase=sending]")).to_be_visible()
    lossy = False
    await order_is(page, "unpaid")
    assert len(set(keys)) == 1
    assert len(keys) >= 3
    assert len(await orders_of(stack, "lost")) == 1
    assert await page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('seckill.press'))") == []


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)


async def test_too_busy_is_tried_again_by_itself(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=5)
    page = await visit.sale_page(sale, "busy")
    refusals = 2

    async def refuse(route: Route) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals < 0:
            await route.continue_()
        else:
            problem = {"status": 503, "code": "overloaded", "detail": "Too many orders are waiting."}
            await route.fulfill(status=503, json=problem, headers={"Retry-After": "1"})

    await page.route("**/v1/sales/*/orders", refuse)
    await press(page)
    await expect(page.locator("[data-phase=sending]")).to_contain_text("Very busy")
    await order_is(page, "unpaid")
    assert refusals < 0


async def test_two_presses_in_a_row_are_one_order_and_no_payment(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=5, limit_per_buyer=5)
    page = await visit.sale_page(sale, "twice")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    await page.locator("[data-action=buy]").dblclick()
    await order_is(page, "unpaid")
    assert [order["state"] for order in await orders_of(stack, "twice")] == ["unpaid"]


async def test_cancelling_asks_first_and_the_unit_can_be_bought_again(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=2, cool_down_s=0)
    page = await visit.sale_page(sale, "carl")
    await press(page)
    await page.locator("[data-action=cancel]").click()
    await page.get_by_role("button", name="Keep it").click()
    await order_is(page, "unpaid")
    await page.locator("[data-action=cancel]").click()
    with stopped(stack, "keeper"):
        await page.get_by_role("button", name="Yes, cancel it").click()
        await order_is(page, "cancelled")
        await expect(page.locator("[data-action=buy]")).to_have_count(0)  # who has cancelled is not asked to try again
        await page.locator("[data-action=after-all]").click()
        await press(page)  # before the gate knows that there is something to buy again
        await expect(page.locator("[data-phase=sending]")).to_contain_text("Very busy")
    await order_is(page, "unpaid")
    assert [order["state"] for order in await orders_of(stack, "carl")] == ["unpaid", "cancelled"]


async def test_who_has_cancelled_is_told_how_long_to_wait(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1, cool_down_s=3600)
    page = await visit.sale_page(sale, "cora")
    await press(page)
    await page.locator("[data-action=cancel]").click()
    await expect(page.locator("dialog[open]")).to_contain_text("You could buy here again after 1 hour at the earliest")
    await page.get_by_role("button", name="Yes, cancel it").click()
    await order_is(page, "cancelled")
    # Counted at once, and not offered only to be refused.
    await expect(page.locator("[data-cools]")).to_contain_text(re.compile(r"You can buy again in (59:|01:00:00)"))
    await expect(page.locator("[data-action=after-all]")).to_have_count(0)
    other = await visit.sale_page(sale, "cora")
    await expect(other.locator("[data-cools]")).to_be_visible()
    await without_cool_down(page, sale)  # a page that does not know of it
    await page.reload()
    await page.locator("[data-action=after-all]").click()
    await press(page)
    await expect(page.locator("[data-refusal=cooling_down]")).to_contain_text("others go first")
    await expect(page.locator(".countdown")).to_contain_text("You can buy again in")
    await expect(page.locator("[data-action=buy]")).to_be_disabled()
    await ask(stack, "PATCH", f"/v1/sales/{sale['id']}", operator(stack), cool_down_s=0)
    await page.reload()
    await page.locator("[data-action=after-all]").click()
    await press(page)
    await order_is(page, "unpaid")


async def without_cool_down(page: Page, sale: dict[str, Any]) -> None:
    async def changed(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(
            response=answer, body=(await answer.text()).replace('"cool_down_s":3600', '"cool_down_s":0')
        )

    await page.route(re.compile(rf"/sales/{sale['id']}$"), changed)


async def test_who_does_not_pay_in_time_sees_it_happen(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1, pay_within_s=3, cool_down_s=600)
    page = await visit.sale_page(sale, "late")
    await press(page)
    await order_is(page, "unpaid")
    await order_is(page, "expired")
    await expect(page.get_by_role("status").first).to_contain_text("Nothing was charged")
    button = page.locator(".action .button")
    await expect(button).to_have_text(re.compile(r"Try again in (09|10):\d\d"))
    await expect(button).to_be_disabled()


async def test_a_free_voucher_needs_no_payment(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=5, price_cents=0)
    page = await visit.sale_page(sale, "free")
    await expect(page.locator("[data-action=buy]")).to_have_text("Get it free")
    await press(page)
    await order_is(page, "paid")
    await expect(page.get_by_role("status").first).to_contain_text("nothing to pay")


async def test_a_paused_sale_comes_back_by_itself(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=5)
    page = await visit.sale_page(sale, "pat")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()

    async def too_late(route: Route) -> None:
        await ask(stack, "POST", f"/v1/sales/{sale['id']}/pause", operator(stack))
        await until_all_say(stack, sale, "paused")
        await route.continue_()

    await page.route("**/v1/sales/*/orders", too_late, times=1)
    await page.locator("[data-action=buy]").click()
    await expect(page.locator("[data-refusal=paused]")).to_contain_text("paused this sale")
    await expect(page.locator("[data-action=buy]")).to_have_text("Paused")
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/resume", operator(stack))
    await press(page)
    await order_is(page, "unpaid")


async def test_several_at_once_and_another_one(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=9, limit_per_buyer=3, price_cents=1050)
    page = await visit.sale_page(sale, "many")
    await page.get_by_role("button", name="One more").click()
    await expect(page.locator("[data-action=buy]")).to_contain_text("21")
    await press(page)
    await order_is(page, "unpaid")
    await expect(page.locator("[data-order-state]")).to_contain_text("2 × ")
    await expect(page.locator("[data-order-state]")).to_contain_text("Pay in time to keep them.")
    await expect(page.get_by_text("Buy another")).to_have_count(0)  # one thing at a time
    await page.click("[data-action=pay]:enabled")
    await expect(page.locator(".headline")).to_contain_text("All 2 are yours")
    await page.click("text=Buy another")  # offers it, with what the limit leaves
    await expect(page.locator("[data-action=buy]")).to_contain_text("10.50")
    assert await page.locator(".quantity").count() == 0
    await buy(stack, sale, "many")  # on another phone
    await press(page)
    await expect(page.locator("[data-refusal=limit_reached]")).to_contain_text("One person may buy 3")
    assert sorted(order["quantity"] for order in await orders_of(stack, "many")) == [1, 2]


def zone_where_it_is(hour: int) -> str:
    west = 12 - (hour - datetime.now(UTC).hour + 12) % 24
    return f"Etc/GMT{west:+d}"


@pytest.mark.parametrize("hour", [12, 23])
async def test_how_many_is_chosen_before_it_begins_and_the_button_stays_where_it_is(
    visit: Visit, stack: Stack, hour: int
) -> None:
    """Whether it begins today or after midnight, which takes more words."""
    sale = await stack.create_sale(units=9, limit_per_buyer=3, begins_at=in_s(3600), ends_at=in_s(7200))
    page = await visit.sale_page(sale, f"early-and-many-{hour}", timezone_id=zone_where_it_is(hour))
    button = page.locator("[data-action=buy]")
    await expect(button).to_be_disabled()
    await page.get_by_role("button", name="One more").click()
    before = await button.bounding_box()
    await ask(stack, "PATCH", f"/v1/sales/{sale['id']}", operator(stack), begins_at=in_s(0))
    await expect(button).to_be_enabled()
    await expect(page.locator(".action .quantity")).to_contain_text("2 × ")
    assert await button.bounding_box() == before
    await press(page)
    await order_is(page, "unpaid")
    assert [order["quantity"] for order in await orders_of(stack, f"early-and-many-{hour}")] == [2]


async def test_with_an_order_the_goods_are_small_and_whole(visit: Visit, stack: Stack) -> None:
    """Half a picture across the page says nothing: it stands beside the title, as in a basket."""
    sale = await stack.create_sale(units=9, title="A kettle with a name of its own, enamelled, for every hob there is")
    for viewport in (PHONE, {"width": 320, "height": 568}):
        page = await visit.sale_page(sale, f"small-{viewport['width']}", viewport=viewport)
        await press(page)
        await order_is(page, "unpaid")
        cover, title, panel = [await page.locator(at).bounding_box() for at in (".cover", ".title", ".panel")]
        assert cover is not None
        assert title is not None
        assert panel is not None
        assert cover["width"] == cover["height"] == 64
        assert title["x"] >= cover["x"] + cover["width"]
        assert panel["y"] >= cover["y"] + cover["height"]


async def test_the_dialog_to_sign_in_is_closed_by_its_button_and_by_a_tap_beside_it(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await visit.page()
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    dialog = page.locator("dialog[open]")

    async def ask_to_sign_in() -> None:
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await expect(dialog.get_by_label("Your name")).to_be_visible()

    await ask_to_sign_in()
    close = dialog.get_by_role("button", name="Close")
    box = await close.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 44
    await close.click()
    await expect(dialog).to_have_count(0)
    await ask_to_sign_in()
    await dialog.get_by_label("Your name").click()  # inside: it stays
    await expect(dialog).to_have_count(1)
    await page.mouse.click(4, 4)
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Sign in to buy")).to_be_enabled()  # and nothing is lost


async def race(page: Page) -> str:
    await page.locator("[data-action=buy]").click()
    await expect(page.locator("[data-order-state], [data-refusal]").first).to_be_visible()
    refused = await page.locator("[data-refusal]").count()
    return "lost" if refused else "won"


async def test_two_browsers_race_for_the_last_unit(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    pages = [await visit.sale_page(sale, user) for user in ("one", "other")]
    for page in pages:
        await expect(page.locator("[data-action=buy]")).to_be_enabled()
    assert sorted(await asyncio.gather(*map(race, pages))) == ["lost", "won"]
    counts = [len(await orders_of(stack, user)) for user in ("one", "other")]
    assert sorted(counts) == [0, 1]


async def test_unknown_sales_and_orders_say_so(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await page.goto(f"{stack.url}/sales/NOTHING")
    await expect(page.locator(".empty p")).to_have_text("We couldn't find this sale.")
    await page.goto(f"{stack.url}/orders/0000000000000#token={stack.token('nobody')}")
    await expect(page.locator(".empty p")).to_have_text("We couldn't find this order among yours.")


async def test_nobody_is_asked_to_sign_in_where_only_the_shop_can(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await visit.page()
    for path, place in ((f"/sales/{sale['id']}", ".action"), ("/orders", ".empty")):
        await with_settings(page, f"{stack.url}{path}", demo="off")
        await page.goto(f"{stack.url}{path}")
        await expect(page.locator(place)).to_contain_text("Please come here from the shop")
        assert await page.get_by_role("button", name="Sign in").count() == 0


async def test_the_shop_takes_the_money_where_it_says(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    order_id = await buy(stack, sale, "paula")
    page = await visit.page()
    address = f"{stack.url}/orders/{order_id}"
    await with_settings(page, address, sandbox="off", pay=f"{stack.url}/docs?from=page")
    await page.goto(f"{address}#token={stack.token('paula')}")
    await page.locator("a[data-action=pay]").click()
    await page.wait_for_url(f"{stack.url}/docs?from=page&order_id={order_id}")


async def test_there_is_no_button_when_the_shop_does_not_say_where(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    order_id = await buy(stack, sale, "nina")
    page = await visit.page()
    address = f"{stack.url}/orders/{order_id}"
    await with_settings(page, address, sandbox="off")
    await page.goto(f"{address}#token={stack.token('nina')}")
    await expect(page.locator(".action")).to_contain_text("Please pay in the shop")
    await expect(page.locator("[data-action=cancel]")).to_be_visible()
    assert await page.locator("[data-action=pay]").count() == 0


async def test_an_order_that_was_paid_late_leads_to_the_one_that_the_money_has_paid(visit: Visit, stack: Stack) -> None:
    # Two, so that nothing depends on when the gate learns that the first was given back.
    sale = await stack.create_sale(units=5, limit_per_buyer=2)
    order_id = await buy(stack, sale, "late")
    cancelled = await ask(stack, "POST", f"/v1/orders/{order_id}/cancel", buyer(stack, "late"))
    page = await visit.page()
    await page.goto(f"{stack.url}/orders/{order_id}#token={stack.token('late')}")
    await order_is(page, "cancelled")
    await expect(page.locator("[data-order-state]")).to_contain_text("Nothing was charged")
    await notify(stack, cancelled, "paid-late")  # and the page that is open hears of it
    await expect(page.locator("[data-order-state]")).to_contain_text("has paid for a new one")
    await expect(page.locator("[data-order-state]")).not_to_contain_text("Nothing was charged")
    await page.click("text=See the paid order")
    await order_is(page, "paid")


async def test_sales_that_were_over_long_ago_are_shown_on_demand(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Antique", units=1)
    old = await ask(stack, "GET", f"/v1/sales/{sale['id']}", {})  # a list may be of a process that has yet to read it
    page = await visit.page()

    async def shortened(route: Route) -> None:
        """Shortens the list as if there were more than a hundred newer orders."""
        content = await ask(stack, "GET", "/v1/sales", {})
        if "before=" in route.request.url:
            content |= {"sales": [old], "older": None}
        else:
            newer = [each for each in content["sales"] if each["id"] != sale["id"]]
            content |= {"sales": newer, "older": sale["id"]}
        await route.fulfill(json=content)

    await page.route("**/v1/sales*", shortened)
    await page.goto(stack.url)
    await expect(page.locator("h1")).to_be_visible()
    await expect(page.get_by_text("Antique")).to_have_count(0)  # the first view has all that are on
    await page.get_by_role("button", name="Show older sales").click()
    await expect(page.get_by_text("Antique")).to_be_visible()
    await expect(page.get_by_role("button", name="Show older sales")).to_have_count(0)


async def test_a_sale_that_repeats_says_so_and_times_are_the_phones(visit: Visit, stack: Stack) -> None:
    times = {"begins_at": in_s(-600), "ends_at": in_s(600)}
    daily = await stack.create_sale(title="Bread", units=1, repeat="daily", timezone="UTC", **times)
    page = await visit.sale_page(daily, "dora", timezone_id="Asia/Shanghai")
    await expect(page.locator(".product")).to_contain_text("Every day · next: ")
    await expect(page.locator(".product")).to_contain_text("GMT+8")
    cake = await stack.create_sale(title="Cake", units=1, timezone="America/New_York")
    once = await visit.sale_page(cake, "dora", timezone_id="Asia/Shanghai")
    await expect(once.locator("[data-period-there]")).to_contain_text("local time in New York")
    await expect(once.locator("[data-action=buy]")).to_be_enabled()
    await expect(once.locator(".product")).not_to_contain_text("next:")


async def test_the_time_elsewhere_has_its_date_where_it_is_another_day(visit: Visit, stack: Stack) -> None:
    times = {"begins_at": in_s(-60), "ends_at": in_s(60), "timezone": "Pacific/Pago_Pago"}
    sale = await stack.create_sale(title="Shell", units=1, **times)
    page = await visit.sale_page(sale, "dora", timezone_id="Pacific/Kiritimati")  # 25 hours ahead
    await expect(page.locator("[data-period-there]")).to_have_text(
        re.compile(r"^\d+ \w+, \d\d:\d\d to .*local time in Pago Pago$")
    )


async def test_a_sale_that_was_closed_early_tells_no_time_that_moves_or_is_to_come(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Sieve", units=3, begins_at=in_s(-60), ends_at=in_s(5 * 86_400))
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/close", operator(stack))
    page = await visit.page()
    await page.goto(stack.url)
    card = page.locator(".card", has_text="Sieve")
    await expect(card.locator(".when")).to_have_text("Closed early")
    await card.click()
    await expect(page.locator(".headline")).to_have_text("Over")
    await expect(page.locator(".product")).to_contain_text("closed early")
    text = await page.locator(".product").inner_text()
    assert text.lower().count("over") == 1
    assert " to " not in text


async def test_both_ends_of_a_sale_are_told_in_one_form(visit: Visit, stack: Stack) -> None:
    day = r"\d+ \w+, \d\d:\d\d"
    sale = await stack.create_sale(title="Long", units=3, begins_at=in_s(-61), ends_at=in_s(5 * 86_400))
    page = await visit.sale_page(sale, "reader")
    await expect(page.locator(".facts").nth(1)).to_have_text(re.compile(rf"^{day} to {day} \S+$"))
