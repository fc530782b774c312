"""The pages keep buyers and operators safe, and all of them can use them."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.visiting import (
    DESKTOP,
    PHONE,
    Visit,
    admin_key,
    in_s,
    order_is,
    press,
    serious,
)
from tests.e2e.stack import Stack

# The areas of the console, and what is there when one is.
LINES_OF = """(element, words) => {
    const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
    const range = document.createRange();
    range.setStart(text, text.data.indexOf(words));
    range.setEnd(text, text.data.indexOf(words) + words.length);
    return range.getClientRects().length;
}"""
AREAS = (("audit", ".view-head [data-verdict]"), ("refunds", ".empty, tbody tr"), ("orders", ".search"))
# A phone whose clock is a year ahead: no token is good any more, if one believes it.
FAST_CLOCK = "{ const now = Date.now; Date.now = () => now() + 31_536_000_000; }"
MARKUP = "<img src=x onerror=\"document.title='stolen'\"><b>bold</b>"


async def test_a_title_is_text_and_never_markup(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title=MARKUP, units=3)
    page = await visit.sale_page(sale, "mark")
    await expect(page.locator("h1")).to_have_text(MARKUP)
    await press(page)
    await order_is(page, "unpaid")
    await page.goto(f"{stack.url}/orders")
    await expect(page.locator(".order-title")).to_have_text(MARKUP)
    console = await visit.console()
    await console.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await expect(console.locator(".view h1")).to_have_text(MARKUP)
    for place in (page, console):
        assert await place.locator("img, b").count() == 0
        assert await place.title() != "stolen"


async def test_the_policy_is_in_force(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    for path in ("/", "/console"):
        await page.goto(f"{stack.url}{path}")
        await expect(page.locator("h1")).to_be_visible()
        # As an attacker's text would, if it ever became markup.
        ran = await page.evaluate(
            """() => new Promise(resolve => {
                const seen = [];
                document.addEventListener("securitypolicyviolation", event => seen.push(event.effectiveDirective));
                try { document.body.innerHTML += "<p>more</p>"; } catch { seen.push("markup refused"); }
                const script = document.createElement("script");
                try { script.textContent = "window.ran = true"; } catch { seen.push("script refused"); }
                const styled = document.createElement("p");
                styled.setAttribute("style", "color: red");
                document.body.append(script, styled);
                setTimeout(() => resolve({ran: window.ran ?? false, seen}), 100);
            })"""
        )
        assert ran["ran"] is False
        assert {"markup refused", "script refused", "style-src-attr"} <= set(ran["seen"])
    visit.faults = [fault for fault in visit.faults if "ontent Security Policy" not in fault and "Trusted" not in fault]


async def test_a_token_is_taken_from_the_address_and_never_seen_again(visit: Visit, stack: Stack) -> None:
    """The last check is made for every test here: no request had a token in its address (S7)."""
    sale = await stack.create_sale(units=3)
    token = stack.token("hand")
    page = await visit.page()
    await page.add_init_script(FAST_CLOCK)
    await page.goto(f"{stack.url}/sales/{sale['id']}#token={token}")
    await expect(page.locator("header")).to_contain_text("hand")
    assert page.url == f"{stack.url}/sales/{sale['id']}"
    await press(page)
    await order_is(page, "unpaid")
    kept = await page.evaluate("JSON.stringify(Object.entries(localStorage))")
    assert token not in kept, "it must go with the tab"
    assert token not in stack.log.read_text()
    assert admin_key(stack) not in stack.log.read_text()


async def test_a_token_that_has_ended_asks_to_sign_in_and_keeps_the_press(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    page = await visit.sale_page(sale, "ended")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    problem = {"status": 401, "code": "unauthenticated", "detail": "The token has expired."}
    await page.route("**/v1/sales/*/orders", lambda route: route.fulfill(status=401, json=problem))
    await page.locator("[data-action=buy]").click()
    await expect(page.get_by_role("button", name="Sign in to buy")).to_be_visible()
    await page.unroute("**/v1/sales/*/orders")
    await page.goto(f"{stack.url}/sales/{sale['id']}#token={stack.token('ended')}")
    await order_is(page, "unpaid")


async def test_every_language_and_the_choice_is_kept(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    page = await visit.sale_page(sale, "lang", locale="zh-CN")
    await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    await expect(page.locator("[data-action=buy]")).to_contain_text("立即抢购")
    await press(page)
    await order_is(page, "unpaid")
    await expect(page.get_by_role("status").first).to_contain_text("已为你锁定库存")
    await page.get_by_label("语言").select_option("日本語")
    await expect(page.get_by_role("status").first).to_contain_text("在庫を確保しました")
    await page.get_by_label("言語").select_option("English")
    await expect(page.get_by_role("status").first).to_contain_text("Reserved for you")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("lang", "en")
    await expect(page.get_by_role("status").first).to_contain_text("Reserved for you")
    console = await visit.console(locale="zh-CN")
    await expect(console.locator("aside")).to_contain_text("新建秒杀")


async def test_everything_can_be_done_with_the_keyboard(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    page = await visit.sale_page(sale, "keys")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    await page.locator("[data-action=buy]").focus()
    await page.keyboard.press("Enter")
    await order_is(page, "unpaid")
    await expect(page.locator(".panel")).to_be_focused()  # and not the top of the page
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    for _ in range(12):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.dataset.action === 'cancel'"):
            break
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog[open]")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog[open]")).to_have_count(0)
    await order_is(page, "unpaid")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious(visit: Visit, stack: Stack, scheme: Any) -> None:
    coming = await stack.create_sale(title="Coming", units=3, begins_at=in_s(3600))
    sale = await stack.create_sale(units=3, limit_per_buyer=2)
    found = []
    page = await visit.sale_page(coming, f"axe-{scheme}", viewport=PHONE, color_scheme=scheme)
    found += await serious(page)
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    found += await serious(page)
    await press(page)
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    found += await serious(page)
    await page.locator("[data-action=cancel]").click()
    found += await serious(page)
    for path in ("/", "/orders"):
        await page.goto(f"{stack.url}{path}")
        await expect(page.locator(".card, .order-row").first).to_be_visible()
        found += await serious(page)
    console = await visit.console(color_scheme=scheme)
    await console.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await expect(console.locator(".legend dd").first).to_be_visible()
    found += await serious(console)
    await console.get_by_role("button", name="New sale").click()
    await console.locator("[name=repetition]").select_option("daily")
    await expect(console.locator(".preview")).to_be_visible()
    await console.locator("dialog button[type=submit]").click()
    found += await serious(console)
    await console.keyboard.press("Escape")
    await expect(console.get_by_role("button", name="New sale")).to_be_focused()
    for area, shown in AREAS:
        await console.goto(f"{stack.url}/console#/{area}")
        await expect(console.locator(shown).first).to_be_visible()
        found += await serious(console)
    await console.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await console.goto(f"{stack.url}/console#/sales/{coming['id']}")
    await expect(console.locator(".view h1")).to_have_text("Coming")
    await expect(console.locator("[data-nodes]")).to_be_visible()
    found += await serious(console)
    await console.get_by_role("button", name="Menu").click()
    await expect(console.locator(".areas")).to_be_visible()
    found += await serious(console)
    await console.locator(".areas").get_by_text("System").click()
    await expect(console.locator("[data-server]").first).to_be_visible()
    found += await serious(console)
    assert found == []


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_nothing_is_wider_than_the_screen(visit: Visit, stack: Stack, viewport: dict[str, int]) -> None:
    title = "Averylongnamewithoutanyspaceinit" * 5
    sale = await stack.create_sale(title=title, units=100_000, limit_per_buyer=2, price_cents=123_456_789_00)
    page = await visit.sale_page(sale, f"wide-{viewport['width']}", viewport=viewport)
    await press(page)
    await order_is(page, "unpaid")
    widest = "document.documentElement.scrollWidth"
    assert await page.evaluate(widest) <= viewport["width"]
    for path in ("/", "/orders"):
        await page.goto(f"{stack.url}{path}")
        await expect(page.locator(".card, .order-row").first).to_be_visible()
        assert await page.evaluate(widest) <= viewport["width"], path
    console = await visit.console()
    await console.set_viewport_size({"width": viewport["width"], "height": viewport["height"]})
    await console.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await expect(console.locator(".view table").first).to_be_visible()
    assert await console.evaluate(widest) <= viewport["width"]
    for area, shown in AREAS:
        await console.goto(f"{stack.url}/console#/{area}")
        await expect(console.locator(shown).first).to_be_visible()
        assert await console.evaluate(widest) <= viewport["width"], area


# As soon as the question is there, a second tap meets the answer that has opened under the finger.
SECOND_TAP = """() => new Promise((told) => {
  const watcher = new MutationObserver(() => {
    const yes = document.querySelector("dialog[open] .danger, dialog .danger");
    if (yes === null) return;
    watcher.disconnect();
    yes.click();
    told(yes.disabled);
  });
  watcher.observe(document.body, { childList: true, subtree: true });
  document.querySelector("[data-action=cancel]").click();
})"""


async def test_a_double_tap_does_not_answer_the_question_that_it_opens(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=1)
    page = await visit.sale_page(sale, "two taps", viewport=PHONE, locale="zh-CN")
    await press(page)
    await order_is(page, "unpaid")
    assert await page.evaluate(SECOND_TAP)
    yes = page.locator("dialog[open] .danger")
    await expect(yes).to_be_enabled()
    await order_is(page, "unpaid")
    # One sentence after the other as Chinese has it, without a space.
    await expect(page.locator("dialog[open]")).to_contain_text("抢走。取消后至少要等 5 秒才能")
    await yes.click()
    await order_is(page, "cancelled")


async def test_buttons_of_the_quantity_stay_where_they_are(visit: Visit, stack: Stack) -> None:
    """The sum stands beside them, and moves nothing under a finger."""
    sale = await stack.create_sale(units=9, limit_per_buyer=3, price_cents=199_900)
    page = await visit.sale_page(sale, "many", viewport=PHONE)
    more = page.get_by_label("One more")
    await expect(more).to_be_enabled()
    await expect(page.locator(".left")).to_be_visible()  # it comes with news of the sale, and takes a line
    before = await more.bounding_box()
    await more.click()
    await expect(page.locator(".quantity .sum")).to_have_text("2 × CN¥1,999 =\u00a0CN¥3,998")
    assert await more.bounding_box() == before


@pytest.mark.parametrize(("locale", "words"), [("en-GB", "Buy now"), ("zh-CN", "立即抢购"), ("ja-JP", "今すぐ購入")])
async def test_neither_words_nor_amounts_are_broken(visit: Visit, stack: Stack, locale: str, words: str) -> None:
    sale = await stack.create_sale(units=9, limit_per_buyer=2, price_cents=999_999_999_999)
    page = await visit.sale_page(sale, "dear", viewport={"width": 320, "height": 640}, locale=locale)
    button = page.locator("[data-action=buy]")
    await expect(button).to_be_enabled()
    more = page.locator(".quantity .button").last
    await expect(page.locator(".left")).to_be_visible()
    before = await more.bounding_box()
    await more.click()
    total = page.locator(".quantity .sum")
    await expect(total).to_contain_text("19,999,999,999.98")
    assert await more.bounding_box() == before, "it stays under the finger"
    assert await button.evaluate(LINES_OF, words) == 1
    for amount in ("9,999,999,999.99", "19,999,999,999.98"):
        assert await total.evaluate(LINES_OF, amount) == 1


async def test_a_receipt_of_a_long_title_and_price_keeps_within_a_small_phone(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(title="Unbroken" * 25, units=1, price_cents=999_999_999_900)
    page = await visit.sale_page(sale, "small", viewport={"width": 320, "height": 640})
    await press(page)
    await page.locator("[data-action=pay]:enabled").click()
    await order_is(page, "paid")
    wide = "row => [...row.querySelectorAll('dt, dd')].every((each) => each.scrollWidth <= each.clientWidth + 1)"
    for row in await page.locator(".receipt [data-row]").all():
        assert await row.evaluate(wide), await row.inner_text()
    one_line = "each => each.getClientRects().length === 1 && each.clientHeight < 30"
    assert await page.locator(".receipt [data-row=price] dd").evaluate(one_line)
