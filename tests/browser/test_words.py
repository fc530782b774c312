"""Texts that stand beside each other on a page do not contradict each other, and one is not called many."""

import re
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.browser.visiting import Visit, ask, buy, buyer, in_s, operator, until_all_say
from tests.e2e.stack import Stack

# Notes every moment in which a refusal stands above a button that can be pressed, or Sold out below In stock.
WATCHED = """
    window.contradictions = [];
    new MutationObserver(() => {
        const refusal = document.querySelector("[data-refusal]");
        const button = document.querySelector("[data-action=buy]:enabled");
        if (refusal && button) window.contradictions.push(`${refusal.innerText} / ${button.innerText}`);
        const isGone = refusal?.dataset.refusal === "sold_out";
        if (isGone && document.querySelector(".left")?.checkVisibility()) window.contradictions.push("in stock");
    }).observe(document.body, {attributes: true, characterData: true, childList: true, subtree: true});
"""


class Cache:
    """A cache on the way to the server. When told to, it answers once more with what it has kept."""

    def __init__(self, kept: dict[str, Any]) -> None:
        self._kept = kept
        self.answers = 0

    async def __call__(self, route: Route) -> None:
        if self.answers > 0:
            self.answers -= 1
            await route.fulfill(json=self._kept)
        else:
            await route.continue_()


async def test_sold_out_never_stands_above_a_live_button(visit: Visit, stack: Stack) -> None:
    """It does not even while what the page knows of the sale is older than the answer to the press."""
    sale = await stack.create_sale(units=1)
    page = await visit.sale_page(sale, "una")
    button = page.locator("[data-action=buy]")
    await expect(button).to_be_enabled()
    await expect(page.locator(".left")).to_have_text("In stock")
    await page.evaluate(WATCHED)
    cache = Cache(await ask(stack, "GET", f"/v1/sales/{sale['id']}", {}))
    await page.route(f"{stack.url}/v1/sales/{sale['id']}", cache)
    rivals = []

    async def too_late(route: Route) -> None:
        rivals.append(await buy(stack, sale, "rival-of-una"))
        cache.answers = 1
        await route.continue_()

    await page.route("**/v1/sales/*/orders", too_late, times=1)
    await button.click()
    await expect(page.locator("[data-refusal=sold_out]")).to_contain_text("Sold out")
    await expect(button).to_have_text("Sold out")
    await expect(button).to_be_disabled()
    await ask(stack, "POST", f"/v1/orders/{rivals[0]}/cancel", buyer(stack, "rival-of-una"))
    await expect(button).to_be_enabled()
    await expect(page.locator(".headline")).to_have_text("Back in stock")
    await expect(page.locator("[data-refusal]")).to_have_count(0)
    assert await page.evaluate("contradictions") == []


async def test_paused_never_stands_above_a_live_button(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await visit.sale_page(sale, "pia")
    button = page.locator("[data-action=buy]")
    await expect(button).to_be_enabled()
    await page.evaluate(WATCHED)
    cache = Cache(await ask(stack, "GET", f"/v1/sales/{sale['id']}", {}))
    await page.route(f"{stack.url}/v1/sales/{sale['id']}", cache)

    async def too_late(route: Route) -> None:
        await ask(stack, "POST", f"/v1/sales/{sale['id']}/pause", operator(stack))
        await until_all_say(stack, sale, "paused")
        cache.answers = 1
        await route.continue_()

    await page.route("**/v1/sales/*/orders", too_late, times=1)
    await button.click()
    await expect(page.locator("[data-refusal=paused]")).to_be_visible()
    await expect(button).to_be_disabled()
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/resume", operator(stack))
    await expect(button).to_be_enabled()
    await expect(page.locator("[data-refusal]")).to_have_count(0)
    assert await page.evaluate("contradictions") == []


@pytest.mark.parametrize(
    ("locale", "one", "many"),
    [
        ("en-GB", ("1 day", "1 unit in total · 1 per person"), ("2 days", "5,000 units in total · 1 per person")),
        ("zh-CN", ("1 天", "共 1 件 · 每人限购 1 件"), ("2 天", "共 5,000 件 · 每人限购 1 件")),
    ],
)
async def test_one_is_not_many_and_how_many_there_are_is_not_how_many_are_left(
    visit: Visit, stack: Stack, locale: str, one: tuple[str, str], many: tuple[str, str]
) -> None:
    page = await visit.page(locale=locale)
    for days, units, (until, stock) in ((1, 1, one), (2, 5000, many)):
        sale = await stack.create_sale(units=units, begins_at=in_s(days * 86_400 + 3600))
        await page.goto(f"{stack.url}/sales/{sale['id']}")
        await expect(page.locator(".countdown .days")).to_have_text(until)
        await expect(page.locator(".facts").first).to_have_text(stock)


async def test_a_round_is_numbered_only_where_there_are_several(visit: Visit, stack: Stack) -> None:
    once = await stack.create_sale(title="Once", units=5)
    daily = await stack.create_sale(
        title="Daily", units=5, begins_at=in_s(-60), ends_at=in_s(3600), repeat="daily", timezone="UTC"
    )
    assert daily["round"] != "1", "its id is another number"
    page = await visit.console()
    for sale, told in ((once, "Once · rory ·"), (daily, "Daily · round 1 · rory ·")):
        order_id = await buy(stack, sale, "rory")
        await page.goto(f"{stack.url}/console#/orders/{order_id}")
        await expect(page.locator(".found > .facts").first).to_contain_text(told)


async def test_chinese_is_set_as_chinese_is(visit: Visit, stack: Stack) -> None:
    """Sentences without spaces between them, a number and what is counted with one, and the zone as people call it."""
    page = await visit.page(locale="zh-CN", timezone_id="Asia/Shanghai")
    left = await stack.create_sale(title="紫砂壶", units=5, cool_down_s=300)
    await page.goto(f"{stack.url}/sales/{left['id']}#token={stack.token('wei')}")
    await expect(page.locator(".product")).to_contain_text("北京时间")
    await page.locator("[data-action=buy]:enabled").click()
    await page.locator("[data-action=cancel]").click()
    await expect(page.locator("dialog[open]")).to_contain_text("可能被别人抢走。取消后至少要等 5 分钟才能")
    daily = await stack.create_sale(title="砂锅", units=1, begins_at=in_s(7200), ends_at=in_s(9000), repeat="daily")
    console = await visit.console(locale="zh-CN")
    await console.goto(f"{stack.url}/console#/sales/{daily['id']}")
    await expect(console.locator(".rounds .facts").first).to_have_text(re.compile(r"^1 天 \d 小时后$"))
    gone = await stack.create_sale(title="摩卡壶", units=1, waiting_list=True)
    await buy(stack, gone, "rival")
    await page.goto(f"{stack.url}/sales/{gone['id']}")
    await page.locator("[data-action=join]:enabled").click()
    await expect(page.locator("[data-ahead='0']")).to_have_text("下一位就是你。1 件尚未付款，可能会重新放出。")
