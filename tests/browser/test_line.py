"""A line on the buyers' page: joining, the place as it moves, being served; the draw, checked here; how it went."""

import asyncio
import re
from typing import Any

import httpx2
from playwright.async_api import Page, Route, expect

from tests.browser.visiting import Visit, ask, buy, buyer, in_s, operator, orders_of, stopped
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S


async def announce(stack: Stack, **facts: Any) -> dict[str, Any]:
    wanted = {"title": "Sneakers", "units": 1, "price_cents": 100, "begins_at": in_s(3600), "ends_at": in_s(7200)}
    return await ask(stack, "POST", "/v1/sales", operator(stack), **(wanted | facts))


async def join(stack: Stack, sale: dict[str, Any], user: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        answer = await http.post(f"/v1/sales/{sale['id']}/entries", json={}, headers=buyer(stack, user))
        found: dict[str, Any] = answer.json()
        return found


async def begin(stack: Stack, sale: dict[str, Any]) -> None:
    await ask(stack, "PATCH", f"/v1/sales/{sale['id']}", operator(stack), begins_at=in_s(0))


async def test_a_draw_from_joining_to_paying_and_checking(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, order="draw")
    others = [f"drawn-{number}" for number in range(3)]
    for user in others:
        await join(stack, sale, user)
    page = await visit.sale_page(sale, "dora-of-the-draw")
    await expect(page.locator("[data-draw=committed]")).to_be_visible()
    await expect(page.locator("[data-action=buy]")).to_have_count(0)
    await page.click("[data-action=join]:enabled")
    await expect(page.locator("[data-line=waiting]")).to_contain_text("Your place is drawn at the start")
    await begin(stack, sale)
    await expect(page.locator("[data-draw=drawn]")).to_be_visible()
    await expect(page.locator("[data-line=waiting] .headline, [data-line=served] .headline")).to_have_text(
        re.compile(r"Place [2-9]|It's your turn")
    )
    if await page.locator("[data-line=waiting]").count():  # the others before it move on by themselves
        place = int(re.sub(r"\D", "", await page.locator("[data-line=waiting] .headline").inner_text()))
        await expect(page.locator("[data-line=waiting] .result")).to_have_attribute("data-ahead", f"{place - 2}")
    await check_draw(page)
    await expect(page.locator("[data-verdict=sound]")).to_contain_text("all 4 places")
    await expect(page.locator("[data-draw]")).to_contain_text("Your entry has place")
    await expect(page.locator("[data-draw]")).to_contain_text("Your receipt is signed by the shop.")
    await expect(page.locator("[data-draw]")).to_contain_text("What this does not prove")

    # A server that leaves the entry out and will not hear of it: the page has kept the receipt.
    mine = await page.evaluate(
        "() => Object.entries(localStorage).find(([key]) => key.startsWith('seckill.entry.'))[1]"
    )

    async def leave_out(route: Route) -> None:
        answer = await route.fetch()
        listed = await answer.json()
        listed["entries"] = [entry for entry in listed["entries"] if entry != mine]
        await route.fulfill(response=answer, json=listed)

    await page.route("**/draw/entries*", leave_out)
    await page.route(f"**/v1/entries/{mine}", lambda route: route.fulfill(status=404, json={}))
    await check_draw(page)
    await expect(page.locator("[data-flaw=dropped]")).to_contain_text("signed by the shop, proves that you had joined")


async def test_the_page_says_what_is_wrong_with_a_draw(visit: Visit) -> None:
    """A server that says another order than the one that was drawn."""
    stack = visit.stack
    sale = await announce(stack, order="draw")
    for user in ("swap-1", "swap-2", "swap-3"):
        await join(stack, sale, user)
    await begin(stack, sale)

    async def swap(route: Route) -> None:
        answer = await route.fetch()
        page = await answer.json()
        page["entries"] = page["entries"][::-1]
        await route.fulfill(response=answer, json=page)

    page = await visit.sale_page(sale, "swan", locale="zh-CN")
    await page.route("**/draw/entries*", swap)
    await check_draw(page)
    await expect(page.locator("[data-verdict=flawed]")).to_have_text("与公布的不一致")
    await expect(page.locator("[data-flaw=places]")).to_be_visible()


async def test_who_signs_in_with_another_browser_is_in_the_same_line(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, order="draw")
    await join(stack, sale, "other-of-two")
    page = await visit.sale_page(sale, "tess-of-two")
    await page.click("[data-action=join]:enabled")
    await expect(page.locator("[data-line=waiting]")).to_contain_text("Your place is drawn at the start")
    phone = await visit.sale_page(sale, "tess-of-two", locale="zh-CN")
    await expect(phone.locator("[data-line=waiting]")).to_be_visible()
    await expect(phone.locator("[data-action=join]")).to_have_count(0)
    stranger = await visit.sale_page(sale, "nobody-of-two")
    await expect(stranger.locator("[data-action=join]:enabled")).to_be_visible()
    await expect(stranger.locator("[data-line=none]")).to_be_visible()
    await phone.evaluate(
        "() => localStorage.removeItem(Object.keys(localStorage).find((key) => key.startsWith('seckill.entry.')))"
    )
    await phone.reload()
    await expect(phone.locator("[data-line=waiting]")).to_be_visible()
    await begin(stack, sale)
    states = re.compile("It's your turn|Place 2")
    await expect(page.locator("[data-line] .headline")).to_have_text(states)
    await expect(phone.locator("[data-line=waiting] .place, [data-line=served] .headline")).to_be_visible()
    again = await visit.sale_page(sale, "tess-of-two")
    await expect(again.locator("[data-line] .headline")).to_have_text(
        await page.locator("[data-line] .headline").inner_text()
    )


async def test_who_left_before_the_draw_is_not_missing_in_it(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, order="draw")
    await join(stack, sale, "stays-in-the-draw")
    page = await visit.sale_page(sale, "quits-the-draw")
    await page.click("[data-action=join]:enabled")
    await page.click("[data-action=leave]")
    await page.click("dialog .button.danger")
    await expect(page.locator("[data-line=left]")).to_be_visible()
    await begin(stack, sale)
    for each in (page, await visit.sale_page(sale, "quits-the-draw")):
        await expect(each.locator("[data-line=left]")).to_be_visible()
        await check_draw(each)
        await expect(each.locator("[data-verdict=sound]")).to_contain_text("place")


async def test_the_chance_is_told_and_who_lets_the_unit_lapse_is_told_that(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, units=10, order="arrival", pay_within_s=3, begins_at=in_s(-5))
    line = f"/v1/admin/sales/{sale['id']}/line"
    await ask(stack, "PATCH", line, operator(stack), paused=True)
    for number in range(30):
        await join(stack, sale, f"forgets-{number}")
    page = await visit.sale_page(sale, "lea-who-lapses")
    await page.click("[data-action=join]:enabled")
    await expect(page.locator("[data-line=waiting] .headline")).to_have_text("Place 31")
    await ask(stack, "PATCH", line, operator(stack), paused=False)
    async with asyncio.timeout(PATIENCE_S):
        while (await ask(stack, "GET", line, operator(stack)))["line"]["served"] < 10:
            await asyncio.sleep(0.05)
    await ask(stack, "PATCH", line, operator(stack), paused=True)
    async with asyncio.timeout(PATIENCE_S):  # until the time to pay is over for all who were served
        while (await ask(stack, "GET", line, operator(stack)))["line"]["unpaid"] > 0:
            await asyncio.sleep(0.05)
    await page.reload()
    await expect(page.locator("[data-line=waiting] [data-chance]")).to_contain_text("%")
    await ask(stack, "PATCH", line, operator(stack), paused=False)
    await expect(page.locator(".headline[data-state=lapsed]")).to_be_visible()
    assert [order["state"] for order in await orders_of(stack, "lea-who-lapses")] == ["expired"]


async def test_who_is_served_goes_on_to_the_order_and_leaving_makes_room(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, order="arrival")
    page = await visit.sale_page(sale, "lena-of-the-line")
    await page.click("[data-action=join]:enabled")
    await begin(stack, sale)
    await expect(page.locator("[data-line=served]")).to_contain_text("It's your turn")
    behind = await visit.sale_page(sale, "bert-behind")
    await behind.click("[data-action=join]:enabled")
    await expect(behind.locator("[data-line=waiting] .result")).to_have_text(
        "You're next. 1 unit is unpaid and may come back."
    )
    await expect(behind.locator("[data-story]")).to_have_count(0)
    await behind.click("[data-action=leave]")
    await behind.click("dialog .button.danger")
    await expect(behind.locator("[data-line=left]")).to_be_visible()
    # The clock and the button are right here.
    await expect(page.locator("[data-line=served] .action [role=timer]")).to_be_visible()
    await page.click("[data-line=served] [data-action=pay]:enabled")
    await expect(page.locator("[data-line=served] .headline")).to_contain_text("Paid. It's yours")


async def test_a_draw_says_what_can_still_be_had_and_what_is_paid_for(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, order="draw")
    pages = {user: await visit.sale_page(sale, user) for user in ("wendy-of-the-draw", "walt-of-the-draw")}
    for page in pages.values():
        await page.click("[data-action=join]:enabled")
        await page.get_by_role("button", name="Withdraw from the draw").click()
        await expect(page.locator("dialog[open]")).to_contain_text("You can join again until the start.")
        await page.get_by_role("button", name="Keep it").click()
    await begin(stack, sale)
    for page in pages.values():
        await expect(page.locator("[data-line] .headline")).to_have_text(re.compile("It's your turn|Place 2"))
    (winner,) = [user for user, page in pages.items() if await page.locator("[data-line=served]").count()]
    page, waiting = pages.pop(winner), pages.popitem()[1]
    await waiting.get_by_role("button", name="Leave the line").click()
    await expect(waiting.locator("dialog[open]")).to_contain_text("you can't join again")
    await waiting.get_by_role("button", name="Keep it").click()
    newcomer = await visit.sale_page(sale, "nick-the-newcomer")
    await expect(newcomer.locator("[data-line=none]")).to_contain_text("If a unit isn't paid for in time")
    await expect(newcomer.locator("[data-action=join]")).to_be_enabled()
    (order,) = await orders_of(stack, winner)
    await ask(stack, "POST", f"/v1/orders/{order['order_id']}/pay", buyer(stack, winner))
    await expect(page.locator("[data-line=served]")).to_contain_text("Paid. It's yours")
    await expect(waiting.locator("[data-line=passed_over]")).to_contain_text("all units are paid for")
    await expect(newcomer.locator("[data-line=none]")).to_contain_text("All units are paid for")
    await expect(newcomer.locator(".action")).to_be_hidden()
    await expect(newcomer.locator("[data-action=join]")).to_have_count(0)
    another = await visit.sale_page(sale, winner)  # with a browser that knows of no entry
    await expect(another.locator("[data-line=served]")).to_contain_text("Paid. It's yours")
    await expect(another.locator(".receipt")).to_be_visible()
    nobody = await visit.page()
    await nobody.goto(f"{stack.url}/sales/{sale['id']}")
    await expect(nobody.locator("[data-line=none] .headline")).to_have_text("Sold out")
    await expect(nobody.locator(".action button")).to_have_count(0)


async def test_how_it_went_is_drawn_and_a_waiting_list_is_offered(visit: Visit) -> None:
    stack = visit.stack
    facts = {"begins_at": in_s(-5), "ends_at": in_s(3600), "units": 3}
    sale = await announce(stack, waiting_list=True, **facts)
    for number in range(3):
        await buy(stack, sale, f"story-{number}")
    page = await visit.sale_page(sale, "sally", locale="zh-CN")
    await expect(page.locator("[data-story] h2")).to_have_text("本场回顾")
    await expect(page.locator("[data-story] svg polyline")).to_be_visible()
    await expect(page.locator("[data-story] figcaption")).to_have_text("累计售出3")  # what, and how high it is
    await expect(page.locator("[data-story] svg + .scale span")).to_have_count(2)  # from when to when
    for at in await page.locator("[data-story] svg + .scale span").all_inner_texts():
        assert re.fullmatch(r"[0-9:.]{8,}", at), at
    await expect(page.locator("[data-fact=sold_out]")).to_contain_text("秒抢光")
    await page.click("[data-action=join]:enabled")
    await expect(page.locator("[data-line=waiting]")).to_be_visible()
    assert await fits(page), "nothing is wider than a phone"
    [order] = await orders_of(stack, "story-0")
    await ask(stack, "POST", f"/v1/orders/{order['order_id']}/cancel", buyer(stack, "story-0"))
    await expect(page.locator("[data-line=served]")).to_be_visible()  # what came back is sold again
    await expect(page.locator("[data-fact=kept]")).to_have_text("目前在买家手中：3 件，共 3 件")


async def test_who_let_the_turn_pass_is_told_what_is_true(visit: Visit) -> None:
    """No one waits behind this buyer, so the unit goes to no next one. The page of the sale never says that it is the
    buyer's turn."""
    stack = visit.stack
    sale = await announce(stack, order="arrival", begins_at=in_s(-5))
    newcomer = await visit.sale_page(sale, "nina-who-looks")
    await expect(newcomer.locator("[data-line=none]")).to_contain_text("Nobody is waiting: join and get one now.")
    page = await visit.sale_page(sale, "paul-who-lapses")
    await page.click("[data-action=join]:enabled")
    await expect(page.locator("[data-line=served] .headline")).to_contain_text("It's your turn")
    await page.click("[data-action=cancel]")
    await expect(page.locator("dialog[open]")).to_contain_text("you can't join this line again")
    await page.get_by_role("button", name="Yes, cancel it").click()
    headline = page.locator(".headline[data-state=lapsed]")
    await expect(headline).to_have_text("Your turn has passed")
    await expect(page.locator("[data-line] .result")).to_contain_text("is on offer again")
    await expect(page.locator("[data-line] .result")).to_contain_text("you can't join this line again")
    await expect(page.get_by_role("link", name="See your order")).to_have_class("button quiet")
    await expect(page.locator("[data-action=join]")).to_have_count(0)
    again = await visit.sale_page(sale, "paul-who-lapses")
    await expect(again.locator("[data-line] .headline")).to_have_text("Your turn has passed")
    await expect(newcomer.locator("[data-action=join]")).to_be_enabled()


async def test_a_turn_whose_time_is_over_is_none_though_nobody_has_said_so_yet(visit: Visit) -> None:
    stack = visit.stack
    sale = await announce(stack, order="arrival", pay_within_s=10, begins_at=in_s(-5))
    await join(stack, sale, "slow-keeper")
    async with asyncio.timeout(PATIENCE_S):
        while not (orders := await orders_of(stack, "slow-keeper")) or orders[0]["state"] != "unpaid":
            await asyncio.sleep(0.05)
    with stopped(stack, "keeper"):  # before it can end the order, also on a busy machine
        await asyncio.sleep(10.5)  # until the time to pay is over
        page = await visit.sale_page(sale, "slow-keeper")
        await expect(page.locator("[data-line=served] .headline")).to_have_text("Time's up")
        await expect(page.locator("[data-action=pay]")).to_be_disabled()
    await expect(page.locator(".headline[data-state=lapsed]")).to_be_visible()


async def check_draw(page: Page) -> None:
    if await page.locator("details[data-draw][open]").count() == 0:
        await page.click("[data-draw=drawn] summary")
    await page.click("[data-action=check-draw]")


async def fits(page: Page) -> bool:
    return bool(await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"))
