"""A sale in a page of a shop: another origin, with a strict policy."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.browser.shop import Shop
from tests.browser.test_buyer import until
from tests.browser.test_door import token_of
from tests.browser.test_items import radio, shirt
from tests.browser.test_line import announce, begin, fits
from tests.browser.test_vouchers import coupon
from tests.browser.visiting import (
    DESKTOP,
    PHONE,
    Visit,
    buy,
    in_s,
    order_is,
    orders_of,
    press,
    shown_order,
    stopped,
    violations,
)
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S

DOCS = Path(__file__).parents[2] / "docs"
DOC = (DOCS / "embed.md").read_text(encoding="utf-8")
# Sales with a pass need this policy besides.
[WORKER_POLICY] = re.findall(r"^- `(worker-src [^`]+)`", DOC, re.MULTILINE)
NARROW = {"width": 320, "height": 640}
# Notes the events that the page hears, in order.
LISTENING = """
    window.heard = [];
    for (const name of ["token-needed", "entry", "order", "paid", "refused", "pay"]) {
      document.addEventListener(`seckill-${name}`, ({ type, detail, target }) =>
        window.heard.push(
          [type, detail.reason ?? (detail.order ?? detail.entry)?.state ?? detail.code ?? "", target.id]));
    }
"""
SHIFTS = """
    window.shifts = [];
    window.unexpected = [];
    new PerformanceObserver((list) => {
      for (const shift of list.getEntries()) {
        window.shifts.push(shift.value);
        if (!shift.hadRecentInput) window.unexpected.push(shift.value);
      }
    }).observe({ type: "layout-shift", buffered: true });
"""


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def documented(beginning: str) -> str:
    """The page, the policy or the styles that the document gives."""
    [found] = [block for block in blocks(DOC) if block.startswith(beginning)]
    return found.strip()


async def test_both_documents_give_the_same() -> None:
    chinese = blocks((DOCS / "embed.zh-CN.md").read_text(encoding="utf-8"))
    words = {"今日特惠": "Today only", "商城": "A shop", "zh-CN": "en"}
    translated = [re.sub("|".join(words), lambda word: words[word[0]], block) for block in chinese]
    assert translated == blocks(DOC)


class Window:
    """The shop's pages, with what is made up in the document replaced by what is there."""

    def __init__(self, shop: Shop, stack: Stack, visit: Visit) -> None:
        self.shop, self.stack, self.visit = shop, stack, visit

    def real(self, text: str, sale_id: str) -> str:
        socket = self.stack.url.replace("http", "ws")
        return (
            text.replace("wss://sale.example.com", socket)
            .replace("https://sale.example.com", self.stack.url)
            .replace("SALE_ID", sale_id)
        )

    def put(self, name: str, sale: dict[str, Any], body: str | None = None, policy: str | None = None) -> None:
        """The documented page, or one with another body."""
        page = documented("<!doctype html>")
        if body is not None:
            page = re.sub(
                r"<body>.*</body>", lambda _: f"<body><main><h1>Today</h1>{body}</main></body>", page, flags=re.DOTALL
            )
        self.shop.pages[name] = (
            self.real(page, sale["id"]),
            self.real(documented("default-src") if policy is None else policy, sale["id"]),
        )

    async def open(
        self, name: str, user: str | None = None, *, foreign: bool = False, script: str = "", **options: Any
    ) -> Page:
        page = await self.visit.page(**options)
        await page.add_init_script(LISTENING + SHIFTS + script)
        query = "" if user is None else f"?user={user}"
        await page.goto(f"{self.shop.foreign_url if foreign else self.shop.url}/{name}{query}")
        return page


@pytest_asyncio.fixture(loop_scope="session")
async def window(shop: Shop, stack: Stack, visit: Visit) -> Window:
    shop.sign = stack.token
    shop.asked.clear()
    visit.hosts |= {url.partition("://")[2] for url in (shop.url, shop.foreign_url)}
    return Window(shop, stack, visit)


async def heard(page: Page, last: str, of: int = 1) -> list[list[str]]:
    """Returns what was heard up to the event `last` of that many elements: it may come a moment after the page shows
    what it is about."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found: list[list[str]] = await page.evaluate("window.heard")
            if len({target for name, _, target in found if name == f"seckill-{last}"}) >= of:
                return found
            await asyncio.sleep(0.02)


def element(page: Page, number: int = 0) -> Locator:
    return page.locator("seckill-sale").nth(number)


async def test_the_documented_page_sells_with_the_documented_policy(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(title="Kettle", units=3)
    window.put("plain", sale)
    page = await window.open("plain", "pilar", script="window.before = Object.keys(window).length;")
    await expect(element(page).locator("h2")).to_have_text("Kettle")
    await press(page)
    await order_is(page, "unpaid")
    await expect(page.locator("[data-order-state]")).to_have_attribute("data-via", "ws")
    order_id = await shown_order(page)
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    assert [order["order_id"] for order in await orders_of(stack, "pilar")] == [order_id]
    assert window.shop.asked == ["pilar"], "the token was fetched with the cookies of the shop, once"
    told = await heard(page, "paid")
    assert [state for name, state, _ in told if name == "seckill-order"][-2:] == ["unpaid", "paid"]
    assert [name for name, _, _ in told].count("seckill-paid") == 1
    await page.reload()
    await order_is(page, "paid")
    names = [name for name, _, _ in await heard(page, "order")]
    assert names == ["seckill-token-needed", "seckill-order"], "it is no news"


async def test_nothing_gets_out_of_the_element(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("clean", sale)
    counted = "window.before = new Set(Object.getOwnPropertyNames(window)); window.before.add('before').add('found');"
    page = await window.open("clean", "cleo", script=counted)
    await expect(element(page).locator("h2")).to_be_visible()
    await press(page)
    await order_is(page, "unpaid")
    added = "Object.getOwnPropertyNames(window).filter(name => !window.before.has(name))"
    assert await page.evaluate(added) == []
    assert await page.evaluate("[document.styleSheets.length, document.adoptedStyleSheets.length, document.title]") == [
        0,
        0,
        "A shop",
    ]
    assert await page.evaluate("document.documentElement.lang") == "en"
    assert await page.evaluate("Object.keys(localStorage).concat(Object.keys(sessionStorage))") == []
    assert await page.context.cookies(stack.url) == await page.context.cookies(window.shop.url), "one host, the shop's"


async def test_an_origin_that_is_not_allowed_gets_nothing(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("foreign", sale)
    page = await window.open("foreign", "fay", foreign=True)
    await until(lambda: any("Access-Control-Allow-Origin" in fault for fault in window.visit.faults))
    assert await page.evaluate("customElements.get('seckill-sale') === undefined")
    # Not even with the script from a place that is allowed to give it.
    read = await page.evaluate(
        "url => fetch(url).then(() => 'read', () => 'kept from it')", f"{stack.url}/v1/sales/{sale['id']}"
    )
    assert read == "kept from it"
    window.visit.faults.clear()


async def test_a_lost_connection_in_the_middle_of_a_claim(window: Window, stack: Stack) -> None:
    """The order is made, its answer never arrives, and the page is loaded anew in between."""
    sale = await stack.create_sale(units=5, limit_per_buyer=3)
    window.put("lossy", sale)
    page = await window.open("lossy", "losa")
    keys: list[str] = []
    lossy = True

    async def lose(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
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
    [made] = await orders_of(stack, "losa")
    await page.reload()
    await expect(page.locator("[data-phase=sending]")).to_be_visible()
    lossy = False
    await order_is(page, "unpaid")
    assert len(set(keys)) == 1
    assert await shown_order(page) == made["order_id"]
    assert len(await orders_of(stack, "losa")) == 1


async def test_a_token_that_expires_is_asked_for_again_once(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=5)
    window.put("expiring", sale)
    refused: list[str] = []
    page = await window.open("expiring", "eve")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()

    async def refuse_first(route: Route) -> None:
        token = route.request.headers.get("authorization", "")
        if route.request.method == "POST" and not refused:
            refused.append(token)
        if token in refused:
            problem = '{"code": "unauthenticated", "status": 401}'
            await route.fulfill(status=401, body=problem, headers={"Access-Control-Allow-Origin": window.shop.url})
        else:
            await route.continue_()

    await page.route("**/v1/**", refuse_first)
    tokens = (f"{stack.token('eve', lifetime_s)}" for lifetime_s in range(3000, 4000))
    window.shop.sign = lambda user: next(tokens)
    await press(page)
    await order_is(page, "unpaid")
    assert window.shop.asked == ["eve", "eve"]
    assert len(refused) == 1
    assert len(await orders_of(stack, "eve")) == 1
    assert ["seckill-token-needed", "expired", ""] in await heard(page, "token-needed")


async def test_a_new_token_that_is_refused_as_well_signs_out(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=5)
    window.put("useless", sale)
    window.shop.sign = lambda user: f"{stack.token(user)}x"
    page = await window.open("useless", "uma")
    await expect(page.get_by_role("button", name="Sign in to buy")).to_be_visible()
    assert window.shop.asked == ["uma", "uma"], "the shop is not asked over and over"


async def test_the_page_hands_tokens_over_itself(window: Window, stack: Stack) -> None:
    """It does so before the script is there, when it is asked for one, and after signing in."""
    sale = await stack.create_sale(units=9)
    window.put("handed", sale, '<seckill-sale sale="SALE_ID"></seckill-sale>')
    early = f"""addEventListener("DOMContentLoaded", () => {{
        document.querySelector("seckill-sale").token = {stack.token("erna")!r};
    }}, {{ once: true, capture: true }});"""
    page = await window.open("handed", script=early)
    await press(page)
    await order_is(page, "unpaid")
    on_demand = f"""document.addEventListener("seckill-token-needed", (event) => {{
        if (event.detail.reason === "press") event.target.token = {stack.token("dora")!r};
    }});"""
    page = await window.open("handed", script=on_demand)
    await page.get_by_role("button", name="Sign in to buy").click()
    await press(page)
    await order_is(page, "unpaid")
    await element(page).evaluate("element => { element.token = null; }")
    await expect(page.get_by_role("button", name="Sign in to buy")).to_be_visible()
    assert await element(page).evaluate("element => element.token") is None
    assert len(await orders_of(stack, "erna")) == len(await orders_of(stack, "dora")) == 1
    assert window.shop.asked == []


async def test_two_elements_in_two_languages(window: Window, stack: Stack) -> None:
    kettle, lamp = [await stack.create_sale(title=title, units=3) for title in ("Kettle", "台灯")]
    token = 'token-url="/seckill-token"'
    body = f"""<seckill-sale id="one" sale="{kettle["id"]}" {token}></seckill-sale>
        <seckill-sale id="two" sale="{lamp["id"]}" {token} lang="zh-CN" theme="dark"></seckill-sale>"""
    window.put("two", kettle, body)
    page = await window.open("two", "tess", viewport=DESKTOP)
    one, two = page.locator("#one"), page.locator("#two")
    await expect(one.locator("[data-action=buy]")).to_have_text("Buy now · CN¥99")
    await expect(two.locator("[data-action=buy]")).to_have_text("立即抢购 · ¥99")
    colours = [
        await place.locator(".product").evaluate("e => getComputedStyle(e).backgroundColor") for place in (one, two)
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(27, 29, 34)"]
    await two.locator("[data-action=buy]").click()
    await expect(two.locator("[data-order-state=unpaid]")).to_be_visible()
    await expect(one.locator("[data-action=buy]")).to_be_enabled()
    await one.locator("[data-action=buy]").click()
    await expect(one.locator("[data-order-state=unpaid]")).to_contain_text("Reserved for you")
    await expect(two.locator("[data-order-state=unpaid]")).to_contain_text("已为你锁定库存")
    assert {target for name, _, target in await heard(page, "order", of=2) if name == "seckill-order"} == {"one", "two"}
    assert {order["sale_id"] for order in await orders_of(stack, "tess")} == {kettle["id"], lamp["id"]}
    # Its attributes may change at any time.
    await one.evaluate("(element, sale) => { element.lang = 'zh'; element.setAttribute('sale', sale); }", lamp["id"])
    await expect(one.locator("h2")).to_have_text("台灯")
    await expect(one.locator("[data-order-state=unpaid]")).to_contain_text("已为你锁定库存")
    await one.evaluate("element => element.setAttribute('theme', 'dark')")
    await expect(one.locator(".product")).to_have_css("background-color", "rgb(27, 29, 34)")


async def test_it_is_taken_out_and_put_back(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("moved", sale)
    page = await window.open("moved", "mona")
    await press(page)
    await order_is(page, "unpaid")
    await element(page).evaluate("element => { window.kept = element; element.remove(); }")
    await page.evaluate("document.querySelector('main').prepend(window.kept)")
    await order_is(page, "unpaid")
    assert len(await orders_of(stack, "mona")) == 1


async def test_the_shop_may_take_the_payment_itself(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("paying", sale)
    mine = """document.addEventListener("seckill-pay", (event) => {
        event.preventDefault();
        window.paying = event.detail.orderId;
    });"""
    page = await window.open("paying", "paola", script=mine)
    await press(page)
    await order_is(page, "unpaid")
    await page.locator("[data-action=pay]").click()
    assert await page.evaluate("window.paying") == await shown_order(page)
    assert [order["state"] for order in await orders_of(stack, "paola")] == ["unpaid"]


async def test_who_has_one_already_is_shown_it_in_its_place(window: Window, stack: Stack) -> None:
    """There is no other page to go to."""
    sale = await stack.create_sale(units=3, limit_per_buyer=1)
    window.put("again", sale)
    one, other = [await window.open("again", "agnes") for _ in range(2)]
    await expect(other.locator("[data-action=buy]")).to_be_enabled()
    await press(one)
    await order_is(one, "unpaid")
    await press(other)
    await expect(other.locator("[data-refusal=limit_reached]")).to_be_visible()
    assert ["seckill-refused", "limit_reached", ""] in await heard(other, "refused")
    await other.get_by_role("button", name="See your order").click()
    await order_is(other, "unpaid")
    assert await shown_order(one) == await shown_order(other)


async def test_the_browser_has_asked_before_the_button_is_pressed(
    window: Window, stack: Stack, browser: Browser
) -> None:
    """Chromium itself counts: if it has asked about the claim beforehand, the press is one request."""
    sale = await stack.create_sale(units=3)
    window.put("ahead", sale)
    context = await browser.new_context()  # one in which nothing is intercepted: there, browsers keep no answers
    page = await context.new_page()
    sent: list[str] = []
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")

    def note(event: dict[str, Any]) -> None:
        if event["request"]["url"].endswith(f"{sale['id']}/orders"):
            sent.append(f"{event['initiator']['type']} {event['request']['method']}")

    session.on("Network.requestWillBeSent", note)
    await page.goto(f"{window.shop.url}/ahead?user=ada")
    await until(lambda: "script OPTIONS" in sent)
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    before = len(sent)
    await press(page)
    await order_is(page, "unpaid")
    assert sent[before:] == ["script POST"]
    assert "preflight OPTIONS" in sent[:before], "it can be seen at all"
    await context.close()


async def test_without_the_socket_in_the_policy_a_stream_tells(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("streamed", sale, policy=re.sub(r" wss://\S+(?=;)", "", documented("default-src")))
    page = await window.open("streamed", "stella")
    with stopped(stack):
        await press(page)
        await expect(page.locator("[data-order-state]")).to_have_attribute("data-via", "sse")
    await order_is(page, "unpaid")
    assert all("violates the following Content Security Policy directive" in fault for fault in window.visit.faults)
    window.visit.faults.clear()


@pytest.mark.parametrize("viewport", [NARROW, PHONE, DESKTOP], ids=["320", "phone", "desktop"])
async def test_nothing_jumps_and_nothing_is_cut_off(window: Window, stack: Stack, viewport: dict[str, int]) -> None:
    sale = await stack.create_sale(title="A kettle with a rather long name", units=3, list_price_cents=19900)
    below = "<p>What the shop says below it.</p>"
    window.put("steady", sale, f'<seckill-sale sale="SALE_ID" token-url="/seckill-token"></seckill-sale>{below}')
    # As documented: the place is there before the script is.
    css = documented("seckill-sale {").replace("\n", " ")
    style = f"""const reserved = new CSSStyleSheet();
        reserved.replaceSync({css!r});
        document.adoptedStyleSheets = [reserved];"""
    page = await window.visit.page(viewport)
    await page.add_init_script(SHIFTS + style)
    arrives = asyncio.Event()

    async def late(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    await page.route("**/embed.js", late)
    await page.goto(f"{window.shop.url}/steady?user=stan{viewport['width']}", wait_until="commit")
    tops = [await top(page)]
    arrives.set()
    await press(page)
    tops.append(await top(page))
    await order_is(page, "unpaid")
    tops.append(await top(page))
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    assert {*tops, await top(page)} == {tops[0]}, "what is below it stays where it is"
    assert sum(await page.evaluate("window.unexpected")) < 0.1, "what browsers call good"
    assert sum(await page.evaluate("window.shifts")) < 0.15, "and what follows a press moves little"
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def top(page: Page) -> float:
    found: float = await page.locator("p", has_text="What the shop says").evaluate(
        "e => e.getBoundingClientRect().top + scrollY"
    )
    return found


@pytest.mark.parametrize(("theme", "lang"), [("light", "en"), ("dark", "zh")])
async def test_keyboard_and_screen_reader(window: Window, stack: Stack, theme: str, lang: str) -> None:
    """The whole way without a mouse; axe finds nothing at any step of it."""
    sale = await stack.create_sale(units=3, begins_at=in_s(-60), images=[], description="## Made\n\n- of clay")
    early = await stack.create_sale(units=3, begins_at=in_s(3600))
    for name, shown in (("spoken", sale), ("early", early)):
        body = f'<seckill-sale sale="SALE_ID" token-url="/seckill-token" lang="{lang}" theme="{theme}"></seckill-sale>'
        window.put(name, shown, body)
    await look_at_early(window, f"earl{theme}{lang}")
    page = await window.open("spoken", f"sue{theme}{lang}", color_scheme="dark" if theme == "light" else "light")
    buy = page.locator("[data-action=buy]")
    await expect(buy).to_be_enabled()
    assert await violations(page, "'seckill-sale'") == []
    await buy.focus()
    await page.keyboard.press("Enter")
    await order_is(page, "unpaid")
    focused = "document.querySelector('seckill-sale').shadowRoot.activeElement?.className"
    await until_evaluates(page, focused, "panel")
    assert await violations(page, "'seckill-sale'") == []
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog")).to_be_visible()
    assert await violations(page, "'seckill-sale'") == []
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).not_to_be_visible()
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await order_is(page, "paid")
    await expect(page.get_by_role("status").first).to_contain_text("Paid" if lang == "en" else "付款成功")
    assert await violations(page, "'seckill-sale'") == []


async def look_at_early(window: Window, user: str) -> None:
    page = await window.open("early", user)
    await expect(page.locator("[data-action=buy]")).to_be_disabled()
    await expect(page.get_by_role("timer")).to_be_visible()
    assert await violations(page, "'seckill-sale'") == []


async def until_evaluates(page: Page, expression: str, wanted: object) -> None:
    # Not with `wait_for_function`: it evaluates a text in the page, which a strict policy forbids.
    while await page.evaluate(expression) != wanted:
        await asyncio.sleep(0.05)


async def test_sizes_and_codes_are_there_as_well(window: Window, stack: Stack) -> None:
    """It is the buyers' page, so what a sale can be is in it; the QR code is the one thing that is loaded for it."""
    sale = await coupon(stack, "TEA-1", "TEA-2")
    window.put("coupon", sale)
    page = await window.open("coupon", "cora")
    await press(page)
    await order_is(page, "paid")
    await expect(page.locator(".code")).to_have_text(re.compile("TEA-."))
    await expect(page.locator("svg.qr path")).to_be_visible()
    assert await violations(page, "'seckill-sale'") == []
    shirts = await shirt(stack)
    window.put("shirts", shirts)
    page = await window.open("shirts", "cora")
    await radio(page, "M").check()
    await press(page)
    await order_is(page, "unpaid")
    assert await violations(page, "'seckill-sale'") == []


async def test_a_sale_for_some_with_a_pass(window: Window, stack: Stack) -> None:
    """The page loads what such a sale needs from the API's host, and a worker beside the page does the work."""
    audience = {"groups": ["gold"], "early": [{"groups": ["gold"], "minutes": 10}]}
    demands = {"pass": "work", "pass_work": 2000, "audience": audience}
    sale = await stack.create_sale(units=3, begins_at=in_s(300), ends_at=in_s(3600), **demands)
    window.shop.sign = lambda user: token_of(stack, user, groups=["gold"])
    window.put("some", sale, policy=f"{documented('default-src')}; {WORKER_POLICY}")
    page = await window.open("some", "gus")
    await expect(element(page).locator("[data-audience]")).to_have_text("Only for: gold")
    await expect(element(page).locator("[data-pass=ready]")).to_be_visible()
    assert await violations(page, "'seckill-sale'") == []
    await press(page)
    await order_is(page, "unpaid")


async def test_a_line_from_joining_to_paying(window: Window, stack: Stack) -> None:
    """Two want the one unit of a draw that needs a pass; what a line needs is loaded from the API's host."""
    sale = await announce(stack, title="Drawn", order="draw", **{"pass": "work", "pass_work": 2000})
    window.put("line", sale, policy=f"{documented('default-src')}; {WORKER_POLICY}")
    pages = [await window.open("line", user, viewport=NARROW) for user in ("lou", "lia")]
    for page in pages:
        await element(page).locator("[data-action=join]:enabled").click()
        await expect(element(page).locator("[data-line=waiting]")).to_contain_text("Your place is drawn at the start")
    shown = element(pages[0]).locator("[data-check-draw]")
    assert await shown.get_attribute("href") == f"{stack.url}/sales/{sale['id']}"
    assert await violations(pages[0], "'seckill-sale'") == []
    another = await window.open("line", "lou", viewport=NARROW)  # with a browser that knows of no entry
    await expect(element(another).locator("[data-line=waiting]")).to_contain_text("Your place is drawn at the start")
    assert [name for name, state, _ in await heard(another, "entry") if state == "waiting"] == ["seckill-entry"]
    await begin(stack, sale)
    for page in pages:
        await expect(element(page).locator(".headline")).to_have_text(re.compile("Place 2|It's your turn"))
    first, other = pages if await element(pages[0]).locator("[data-line=served]").count() else reversed(pages)
    await expect(element(other).locator("[data-line=waiting]")).to_contain_text("You're next.")
    assert await fits(other), "nothing is wider than a small phone"
    await order_is(first, "unpaid")
    await first.locator("[data-action=pay]").click()
    await order_is(first, "paid")
    told = [[name.removeprefix("seckill-"), state] for name, state, _ in await heard(first, "paid")]
    assert ["entry", "waiting"] in told
    assert told[told.index(["entry", "served"]) :][:2] == [["entry", "served"], ["order", "unpaid"]]
    await expect(element(other).locator("[data-line=passed_over]")).to_contain_text("all units are paid for")
    await expect(element(other).locator("[data-action=join]")).to_have_count(0)  # one place in a draw is all there is


async def test_a_waiting_list_stands_where_the_button_was(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(title="Kettle", units=1, waiting_list=True)
    await buy(stack, sale, "wim")
    window.put("list", sale, f'<seckill-sale sale="{sale["id"]}" token-url="/seckill-token" lang="zh"></seckill-sale>')
    page = await window.open("list", "wanda")
    await element(page).locator("[data-action=join]:enabled").click()
    await expect(element(page).locator("[data-line=waiting]")).to_contain_text("第 1 位")
    await expect(element(page).locator("[data-check-draw]")).to_have_count(0)


async def test_an_unknown_sale_says_so(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("nothing", sale, '<seckill-sale sale="N0SUCHSALE" lang="zh"></seckill-sale>')
    page = await window.open("nothing")
    await expect(element(page)).to_contain_text("没有找到这场秒杀")


async def test_a_shop_that_says_where_to_pay(window: Window, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    window.put("elsewhere", sale)
    page = await window.visit.page()

    async def changed(route: Route) -> None:
        answer = await route.fetch()
        text = await answer.text()
        assert '"pay":""' in text
        await route.fulfill(response=answer, body=text.replace('"pay":""', '"pay":"https://shop.example.com/pay?x=1"'))

    await page.route("**/embed.js", changed)
    await page.goto(f"{window.shop.url}/elsewhere?user=elsa")
    await press(page)
    await order_is(page, "unpaid")
    where = f"https://shop.example.com/pay?x=1&order_id={await shown_order(page)}"
    await expect(page.locator("a[data-action=pay]")).to_have_attribute("href", where)


async def test_the_captchas_widget_is_shown_in_the_element(shop: Shop, checked: Visit) -> None:
    """The page has the documented policy, and the service's host besides."""
    script = checked.stack._settings["SECKILL_CHECK_SCRIPT_URL"]
    service = script.removesuffix("/api.js")
    shop.sign = checked.stack.token
    checked.hosts |= {url.partition("://")[2] for url in (shop.url, service)}
    window = Window(shop, checked.stack, checked)
    sale = await checked.stack.create_sale(units=2, price_cents=0, **{"pass": "check"})
    policy = documented("default-src").replace("script-src ", f"script-src {service} ")
    window.put("checked", sale, policy=f"{policy}; {WORKER_POLICY}")
    page = await window.open("checked", "kay")
    await expect(element(page).locator("[data-pass=ready]")).to_be_visible()
    await press(page)
    await order_is(page, "paid")
    assert script in checked.addresses
    assert checked.faults == []
