"""Takes the pictures of the documentation: `make screenshots`."""

import asyncio
import base64
import contextlib
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import redis
from playwright.async_api import Browser, Page, Route, async_playwright, expect

from seckill.backends.redis import keys
from tests.browser.conftest import ARGUMENTS, NAMES
from tests.browser.sell_out import sell_out
from tests.browser.shop import Shop, open_shop
from tests.browser.visiting import (
    Visit,
    ask,
    buy,
    buyer,
    in_s,
    notify,
    operator,
    order_is,
    press,
    stopped,
    upload,
)
from tests.e2e.stack import Stack, running

ROW = """<!doctype html>
<body style="margin:0;display:flex;align-items:start;gap:24px;padding:24px;width:max-content;background:{ground}">
{pictures}</body>"""
PICTURE = '<img style="border-radius:16px;display:block;flex:none" src="data:image/png;base64,{data}">'
SIZE = {"width": 360, "height": 740}
LIGHT, DARK = "#e4e5e9", "#000000"
REFUSING = """CREATE TRIGGER refusing BEFORE INSERT ON orders WHEN NEW.user_id = 'fay' AND NEW.state = 'unpaid'
BEGIN SELECT RAISE(ABORT, 'no order of fay is taken'); END"""


async def row(browser: Browser, to: Path, pictures: list[bytes], ground: str = LIGHT) -> None:
    """Several screens beside each other, as one small picture."""
    page = await browser.new_page(viewport={"width": 1600, "height": 400})
    images = "".join(PICTURE.format(data=base64.b64encode(picture).decode()) for picture in pictures)
    await page.set_content(ROW.format(pictures=images, ground=ground))
    await page.locator("body").screenshot(path=to)
    await page.close()


async def still(page: Page) -> bytes:
    await page.wait_for_timeout(500)  # until what moves has come to rest
    return await page.screenshot()


async def open_sale(stack: Stack, title: str, **facts: Any) -> dict[str, Any]:
    facts = {"units": 100, "price_cents": 4900, "begins_at": in_s(-60), "ends_at": in_s(3600)} | facts
    return await stack.create_sale(title=title, **facts)


@contextlib.contextmanager
def refusing(stack: Stack) -> Iterator[None]:
    """The ledger takes no order of Fay: it fails, and leaves a dead letter."""
    (path,) = stack.data.glob("*.db")
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as ledger:
        ledger.execute(REFUSING)
        yield
        ledger.execute("DROP TRIGGER refusing")


async def buyers_way(visit: Visit, stack: Stack, locale: str, scheme: Any) -> list[bytes]:
    user = {"en-GB": "ann", "zh-CN": "xiaoming"}[locale]
    title = {"en-GB": "Wireless headphones", "zh-CN": "无线降噪耳机"}[locale]
    sale = await open_sale(stack, title, price_cents=9900, begins_at=in_s(60))
    page = await visit.sale_page(sale, user, viewport=SIZE, locale=locale, color_scheme=scheme)
    await expect(page.get_by_role("timer")).to_contain_text("00:00:07", timeout=120_000)
    pictures = [await page.screenshot()]
    with stopped(stack):
        await press(page)
        await order_is(page, "queued")
        pictures.append(await still(page))
    await order_is(page, "unpaid")
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    pictures.append(await page.screenshot())
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    pictures.append(await still(page))
    return pictures


async def before_the_press(visit: Visit, stack: Stack) -> list[bytes]:
    """The list, signing in, on now, and paused."""
    await open_sale(stack, "Night market voucher", units=1000, price_cents=0, begins_at=in_s(7200), ends_at=in_s(9000))
    over = await open_sale(stack, "Garden chair", units=30)
    await ask(stack, "POST", f"/v1/sales/{over['id']}/close", operator(stack))
    sale = await open_sale(stack, "Espresso machine", price_cents=49900, limit_per_buyer=3, units=40)
    page = await visit.page(viewport=SIZE)
    await page.goto(stack.url)
    await expect(page.locator(".card").first).to_be_visible()
    pictures = [await still(page)]
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_label("Your name").fill("Ann")
    pictures.append(await still(page))
    page = await visit.sale_page(sale, "eve", viewport=SIZE)
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    pictures.append(await still(page))
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/pause", operator(stack))
    await page.locator("[data-action=buy]").click()
    await expect(page.locator("[data-action=buy]")).to_have_text("Paused")
    pictures.append(await still(page))
    return pictures


KETTLE = """<!doctype html><body style="margin:0"><svg width="960" height="720" viewBox="0 0 320 240">
<rect width="320" height="240" fill="#e9e4dc"/><rect y="176" width="320" height="64" fill="#d8cfc2"/>
<path d="M112 92h96l14 88a10 10 0 0 1-10 11H108a10 10 0 0 1-10-11z" fill="#3f5f63"/>
<path d="M206 104c34-2 40 34 12 56" fill="none" stroke="#2c4447" stroke-width="10" stroke-linecap="round"/>
<path d="M114 108L84 92l-6 8 28 34z" fill="#4d7176"/><ellipse cx="160" cy="92" rx="48" ry="10" fill="#4d7176"/>
<circle cx="160" cy="80" r="7" fill="#c9694d"/>
<path d="M128 108c-8 24-10 46-10 66" stroke="#6d9095" stroke-width="5" fill="none" stroke-linecap="round"/>
</svg></body>"""
GOODS: dict[str, dict[str, Any]] = {
    "en-GB": {
        "title": "Enamel kettle, 1.2 l",
        "description": "Boils a litre in **three minutes**, and quietly.\n\n- enamelled steel\n- for every hob",
        "delivery": "Sent within two days.",
    },
    "zh-CN": {
        "title": "珐琅水壶 1.2 升",
        "description": "一升水**三分钟**烧开，而且很安静。\n\n- 珐琅钢\n- 适用于各种炉灶",
        "delivery": "两天内发货。",
    },
    "ja-JP": {
        "title": "ホーローケトル 1.2L",
        "description": "1リットルを**3分**で静かに沸かします。\n\n- ホーロー鋼\n- あらゆる熱源に対応",
        "delivery": "2日以内に発送します。",
    },
}


async def uploaded(browser: Browser, stack: Stack) -> str:
    """A picture of a kettle, as an operator uploads it."""
    page = await browser.new_page(viewport={"width": 960, "height": 720})
    await page.set_content(KETTLE)
    picture = await page.screenshot()
    await page.close()
    return await upload(stack, picture)


async def goods(visit: Visit, browser: Browser, stack: Stack, folder: Path) -> list[bytes]:
    """Pictures of a sale that shows its goods, in each language, and at last on a wide screen."""
    facts: dict[str, Any] = {
        "images": [await uploaded(browser, stack)],
        "list_price_cents": 32900,
        "price_cents": 19900,
    }
    facts |= {"terms_url": "https://shop.example.com/terms", "return_url": "https://shop.example.com/"}
    facts |= {"limit_per_buyer": 3, "units": 40}
    pictures = []
    for locale, words in GOODS.items():
        sale = await open_sale(stack, **facts | words)
        page = await visit.sale_page(sale, "gil", viewport=SIZE, locale=locale)
        await expect(page.locator("[data-action=buy]")).to_be_enabled()
        pictures.append(await still(page))
        if locale == "en-GB":
            await press(page)
            await page.locator("[data-action=pay]:enabled").click()
            await order_is(page, "paid")
            pictures.insert(0, await still(page))
            wide = await visit.sale_page(sale, "hal", viewport={"width": 1200, "height": 760})
            await expect(wide.locator("[data-action=buy]")).to_be_enabled()
            (folder / "buyer-wide.png").write_bytes(await still(wide))
    return [pictures[1], pictures[0], *pictures[2:]]


async def waiting(visit: Visit, stack: Stack) -> list[bytes]:
    """Sold out with a list, on it, one's turn, and after it; a draw to come."""
    sale = await open_sale(stack, "Moka pot", units=1, waiting_list=True)
    rival = await buy(stack, sale, "rival")
    page = await visit.sale_page(sale, "wil", viewport=SIZE)
    await expect(page.locator("[data-action=join]")).to_be_enabled()
    pictures = [await still(page)]
    await page.locator("[data-action=join]").click()
    await expect(page.locator("[data-line=waiting]")).to_be_visible()
    pictures.append(await still(page))
    await ask(stack, "POST", f"/v1/orders/{rival}/cancel", buyer(stack, "rival"))
    await expect(page.locator("[data-line=served]")).to_be_visible()
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    pictures.append(await still(page))
    draw = await ask(
        stack,
        "POST",
        "/v1/sales",
        operator(stack),
        title="Sneakers, by draw",
        units=50,
        price_cents=89900,
        order="draw",
        begins_at=in_s(7200),
        ends_at=in_s(9000),
    )
    page = await visit.sale_page(draw, "wil", viewport=SIZE)
    await page.locator("[data-action=join]:enabled").click()
    await expect(page.locator("[data-line=waiting]")).to_be_visible()
    pictures.append(await still(page))
    return pictures


async def refusals(visit: Visit, stack: Stack) -> list[bytes]:
    """Sold out, the limit, too busy, no connection, and an order that failed."""
    sale = await open_sale(stack, "Kettle", units=1)
    page = await visit.sale_page(sale, "sol", viewport=SIZE)

    async def too_late(route: Route) -> None:
        await buy(stack, sale, "rival")
        await route.continue_()

    await page.route("**/v1/sales/*/orders", too_late, times=1)
    await press(page)
    await expect(page.locator("[data-refusal]")).to_be_visible()
    pictures = [await still(page)]
    sale = await open_sale(stack, "Lamp", price_cents=2900)
    page = await visit.sale_page(sale, "lim", viewport=SIZE)
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    await buy(stack, sale, "lim")
    await press(page)
    await expect(page.locator("[data-refusal]")).to_be_visible()
    pictures.append(await still(page))
    problem = {"status": 503, "code": "overloaded", "detail": "Too many orders are waiting."}
    for user, words in (("bus", "Very busy"), ("cut", "No connection")):
        page = await visit.sale_page(sale, user, viewport=SIZE)
        if user == "bus":
            await page.route("**/v1/sales/*/orders", lambda route: route.fulfill(status=503, json=problem))
        else:
            await page.route("**/v1/sales/*/orders", lambda route: route.abort())
        await press(page)
        await expect(page.locator("[data-phase=sending]")).to_contain_text(words)
        pictures.append(await still(page))
    page = await visit.sale_page(sale, "fay", viewport=SIZE)
    with refusing(stack):
        await press(page)
        await order_is(page, "failed")
    pictures.append(await still(page))
    return pictures


async def at_the_door(visit: Visit, stack: Stack) -> list[bytes]:
    """Sales that are to come and are held elsewhere, that are not for all buyers, in which others go first, and that
    are over, with their story."""
    times = {"begins_at": in_s(7200), "ends_at": in_s(9000), "timezone": "America/New_York"}
    sale = await open_sale(stack, "Concert ticket", price_cents=6800, **times)
    page = await visit.sale_page(sale, "nia", viewport=SIZE, timezone_id="Europe/Berlin")
    await expect(page.get_by_role("timer")).to_be_visible()
    pictures = [await still(page)]
    sale = await open_sale(stack, "Tasting for members", audience={"groups": ["members"]})
    page = await visit.sale_page(sale, "nia", viewport=SIZE)
    await press(page)
    await expect(page.locator("[data-refusal=not_invited]")).to_be_visible()
    pictures.append(await still(page))
    sale = await open_sale(stack, "Teapot", units=5, cool_down_s=300)
    page = await visit.sale_page(sale, "nia", viewport=SIZE)
    await press(page)
    await page.locator("[data-action=cancel]").click()
    await page.get_by_role("button", name="Yes, cancel it").click()
    await order_is(page, "cancelled")
    await expect(page.locator("[data-cools]")).to_be_visible()
    pictures.append(await still(page))
    sale = await open_sale(stack, "Lunch box", units=60)
    await crowd(stack, sale, 140)
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/close", operator(stack))
    page = await visit.sale_page(sale, "nia", viewport=SIZE)
    await expect(page.locator("[data-story]")).to_be_visible()
    pictures.append(await still(page))
    return pictures


async def endings(visit: Visit, stack: Stack) -> list[bytes]:
    """Pictures of orders that lapsed or were cancelled, refunded or replaced, and of the list of them."""
    sale = await open_sale(stack, "Desk", pay_within_s=2, limit_per_buyer=2)
    page = await visit.sale_page(sale, "late", viewport=SIZE)
    await press(page)
    await order_is(page, "expired")
    pictures = [await still(page)]
    sale = await open_sale(stack, "Vase", units=2)
    page = await visit.sale_page(sale, "mia", viewport=SIZE)
    await press(page)
    await page.locator("[data-action=cancel]").click()
    await page.get_by_role("button", name="Yes, cancel it").click()
    await order_is(page, "cancelled")
    pictures.append(await still(page))
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/close", operator(stack))
    (order,) = (await ask(stack, "GET", "/v1/orders", buyer(stack, "mia")))["orders"]
    await notify(stack, order, "pay_7fQ2")
    await order_is(page, "refunded")
    await expect(page.locator(".action")).to_contain_text("My orders")  # the sale is closed
    pictures.append(await still(page))
    sale = await open_sale(stack, "Clock", limit_per_buyer=2)
    order_id = await buy(stack, sale, "mia")
    cancelled = await ask(stack, "POST", f"/v1/orders/{order_id}/cancel", buyer(stack, "mia"))
    await notify(stack, cancelled, "pay_9xK4")
    await page.goto(f"{stack.url}/orders/{order_id}")
    await expect(page.locator("[data-order-state]")).to_contain_text("has paid for a new one")
    pictures.append(await still(page))
    await page.goto(f"{stack.url}/orders")
    await expect(page.locator(".order-row")).to_have_count(3)
    pictures.append(await still(page))
    return pictures


async def crowd(stack: Stack, sale: dict[str, Any], many: int) -> None:
    async with httpx2.AsyncClient(base_url=stack.url, timeout=30) as http:

        async def one(number: int) -> None:
            await asyncio.sleep(random.triangular(0, 24, 6))
            headers = {"Authorization": f"Bearer {stack.token(f'buyer-{number}')}"}
            made = await http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)
            if made.status_code == 202 and number % 10:
                order = f"/v1/orders/{made.json()['order_id']}"
                await http.get(f"{order}?wait=30", headers=headers)
                verb = "pay" if number % 3 else "cancel"
                await http.post(f"{order}/{verb}", headers=headers)

        await asyncio.gather(*map(one, range(many)))


async def console_looking_back(page: Page, folder: Path) -> None:
    """The charts of what has just happened, once it is kept, and all sales."""
    await expect(page.locator("[data-what='stock.sold_out']").first).to_be_visible()
    await page.get_by_role("button", name="1 h", exact=True).click()
    await page.wait_for_timeout(1500)
    await page.locator(".charts-section").evaluate("charts => charts.scrollIntoView()")
    (folder / "console-history.png").write_bytes(await still(page))
    address = page.url
    await page.goto(page.url.partition("#")[0] + "#/")
    await expect(page.locator("[data-sale]").first).to_be_visible()
    await page.wait_for_timeout(4000)  # until the keeper has counted
    (folder / "console-overview.png").write_bytes(await still(page))
    await page.goto(address)


async def console(visit: Visit, stack: Stack, folder: Path) -> None:
    sale = await open_sale(stack, "Running shoes", units=360, price_cents=39900)
    page = await visit.console()
    await page.set_viewport_size({"width": 1200, "height": 900})
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await crowd(stack, sale, 640)
    await page.wait_for_timeout(1500)
    (folder / "console.png").write_bytes(await page.screenshot())
    await console_looking_back(page, folder)
    await page.goto(f"{stack.url}/console#/system")
    await expect(page.locator("[data-server]").first).to_be_visible()
    (folder / "console-system.png").write_bytes(await still(page))


async def console_form(visit: Visit, stack: Stack, folder: Path) -> None:
    """The form says what is wrong beside each field, and what a repetition means."""
    page = await visit.console()
    await page.set_viewport_size({"width": 1200, "height": 1100})
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Breakfast voucher")
    await form.locator("[name=units]").fill("abc")
    await form.locator("[name=price]").fill("9.999")
    await form.locator("[name=repetition]").select_option("cron")
    await form.locator("[name=repeat]").fill("0 10 * * MON-FRI")
    await form.locator("[name=timezone]").fill("Asia/Shanghai")
    await expect(form.locator(".preview")).to_be_visible()
    await form.locator("button[type=submit]").click()
    (folder / "console-form.png").write_bytes(await still(page))
    await page.close()


async def console_line(visit: Visit, stack: Stack, folder: Path) -> None:
    """A draw with a public value that has been made, one entry removed, the next ones in sight."""
    times = {"begins_at": in_s(3600), "ends_at": in_s(7200)}
    facts = {"order": "draw", "beacon": True, "serve_per_s": 50, "price_cents": 89900, "units": 8}
    sale = await ask(stack, "POST", "/v1/sales", operator(stack), title="Sneakers, by draw", **facts, **times)
    for number in range(24):
        await ask(stack, "POST", f"/v1/sales/{sale['id']}/entries", buyer(stack, f"buyer-{number:02}"), quantity=1)
    await ask(stack, "PATCH", f"/v1/sales/{sale['id']}", operator(stack), begins_at=in_s(0))
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await page.click("[data-action=beacon]:enabled")
    await page.fill("[name=beacon]", "lottery/2026-11-17/04-11-23-31-38-44")
    await page.click("[data-form=beacon] button[type=submit]")
    await expect(page.locator("[data-figure=served] dd")).to_have_text("8")
    await page.locator("[data-action=remove]").first.click()
    await page.fill("[name=reason]", "One phone, twelve names")
    await page.click("[data-form=reason] button[type=submit]")
    await expect(page.locator("[data-entry=left]")).to_be_visible()
    await expect(page.locator("[data-draw=drawn]")).to_be_visible()
    await still(page)
    await page.locator(".line-of-sale").screenshot(path=folder / "console-line.png")


async def console_order(visit: Visit, stack: Stack, folder: Path) -> None:
    page = await visit.console()
    await page.set_viewport_size({"width": 1200, "height": 760})
    await page.goto(f"{stack.url}/console#/orders/mia")
    await expect(page.locator(".found").first).to_be_visible()
    (folder / "console-order.png").write_bytes(await still(page))
    await page.close()


async def console_phone(visit: Visit, stack: Stack) -> list[bytes]:
    """Signing in, an order that failed, what becomes of its letter, money that went back."""
    page = await visit.page(SIZE)
    await page.goto(f"{stack.url}/console")
    await page.fill("[name=key]", "not the key")
    await page.click("button[type=submit]")
    await expect(page.get_by_role("alert")).to_contain_text("not a key of this server")
    pictures = [await still(page)]
    await page.close()
    page = await visit.console()
    await page.set_viewport_size({"width": SIZE["width"], "height": SIZE["height"]})
    for address, place in (("orders/fay", ".found"), ("dead", ".found"), ("refunds", "tbody tr")):
        await page.goto(f"{stack.url}/console#/{address}")
        await expect(page.locator(place).first).to_be_visible()
        await page.locator(".view").evaluate("view => view.scrollIntoView()")
        if address == "dead":
            await page.get_by_role("button", name="Discard").click()
        pictures.append(await still(page))
        await page.keyboard.press("Escape")
    await page.close()
    return pictures


async def console_audit(visit: Visit, stack: Stack, folder: Path) -> None:
    """Something broken, in the dark and in Chinese, and what would mend it."""
    page = await visit.console(locale="zh-CN", color_scheme="dark")
    await page.set_viewport_size({"width": 1200, "height": 900})
    await page.goto(f"{stack.url}/console#/audit")
    with stopped(stack, "keeper"):
        async with stack.engine() as engine:
            ref = (await engine.ledger.sales())[-1].round.ref
        with redis.Redis.from_url(stack.settings.redis_url) as client:
            client.hincrby(keys.round_(ref), "available", -1)
            await page.get_by_role("button", name="查看修复方案").click()
            await expect(page.locator("[data-plan]")).to_be_visible()
            (folder / "console-audit.png").write_bytes(await still(page))
            client.hincrby(keys.round_(ref), "available", 1)
    await page.close()


SHOP = """<!doctype html><html lang="{lang}"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Shop</title>
<link rel="icon" href="data:,"><style>
  body {{ margin: 0; font: 16px/1.6 Georgia, "Noto Serif CJK SC", serif; background: {ground}; color: {ink} }}
  header {{ padding: 12px 16px; background: #24452f; color: #fff; font-size: 20px }}
  main {{ padding: 16px; max-width: 960px; margin: 0 auto }} h1 {{ margin: 0 0 12px; font-size: 24px }}
  seckill-sale {{ --accent: #1f6b3a; --on-accent: #fff }}
  seckill-sale[theme=dark] {{ --accent: #74d197; --on-accent: #0b2415 }}
</style><script type="module" src="{api}/embed.js"></script>
<header>{shop}</header><main><h1>{title}</h1>
<seckill-sale sale="{sale}" token-url="/seckill-token" theme="{theme}"></seckill-sale></main></html>"""


async def embedded(visit: Visit, stack: Stack, shop: Shop) -> list[bytes]:
    """Pictures of the element in shops with looks of their own: to be bought, to be paid, paid; the last one
    differs."""
    shop.sign = stack.token
    visit.hosts.add(shop.url.partition("://")[2])
    sale = await open_sale(stack, "Tea for two", price_cents=4900, list_price_cents=6900)
    tea = await open_sale(stack, "双人茶具", price_cents=4900, list_price_cents=6900)
    looks = {
        "en": {"shop": "Leaf & Cup", "title": "This week", "sale": sale["id"], "theme": "light", "ground": "#f3efe6"},
        "zh": {"shop": "叶与杯", "title": "本周特惠", "sale": tea["id"], "theme": "dark", "ground": "#191b18"},
    }
    for lang, look in looks.items():
        ink = "#222" if look["theme"] == "light" else "#eee"
        shop.pages[lang] = (SHOP.format(lang=lang, api=stack.url, ink=ink, **look), "")
    page = await visit.page(viewport=SIZE | {"height": 860})
    await page.goto(f"{shop.url}/en?user=ann")
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    pictures = [await still(page)]
    await press(page)
    await order_is(page, "unpaid")
    await expect(page.locator("[data-action=pay]")).to_be_enabled()
    pictures.append(await still(page))
    page = await visit.page(viewport=SIZE | {"height": 860})
    await page.goto(f"{shop.url}/zh?user=ann")
    await press(page)
    await order_is(page, "unpaid")
    await page.locator("[data-action=pay]").click()
    await order_is(page, "paid")
    pictures.append(await still(page))
    return pictures


async def main(folder: Path) -> None:
    os.environ["FONTCONFIG_FILE"] = str(Path(__file__).parent / "fonts.conf")  # of the browser that is started below
    path = next(found for found in map(shutil.which, NAMES) if found)
    arguments = ARGUMENTS + (["--no-sandbox"] if os.getuid() == 0 else [])
    settings = {"SECKILL_SHOP_NAME": "Shop", "SECKILL_DEMO_SIGN_IN": "on", "SECKILL_RETRY_DELAYS_S": "0.1,0.1"}
    settings["SECKILL_GATE_TIMEOUT_S"] = "10"  # a busy machine is not what is shown here
    async with open_shop() as shop:
        with tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True) as name:
            stack = Stack(Path(name), settings=settings | {"SECKILL_ORIGINS": shop.url})
            await take_all(stack, shop, folder, path, arguments)


async def take_all(stack: Stack, shop: Shop, folder: Path, path: str, arguments: list[str]) -> None:
    async with running(stack), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        visit = Visit(browser, stack)
        await sell_out(visit, stack, folder / "sell-out.webp")
        await row(browser, folder / "buyer-before.png", await before_the_press(visit, stack))
        await row(browser, folder / "buyer.png", await buyers_way(visit, stack, "en-GB", "light"))
        await row(browser, folder / "buyer-dark.png", await buyers_way(visit, stack, "zh-CN", "dark"), DARK)
        await row(browser, folder / "buyer-goods.png", await goods(visit, browser, stack, folder))
        await row(browser, folder / "buyer-line.png", await waiting(visit, stack))
        await row(browser, folder / "buyer-door.png", await at_the_door(visit, stack))
        await row(browser, folder / "buyer-refused.png", await refusals(visit, stack))
        await row(browser, folder / "buyer-ends.png", await endings(visit, stack))
        await row(browser, folder / "console-phone.png", await console_phone(visit, stack))
        await row(browser, folder / "embed.png", await embedded(visit, stack, shop))
        for take in (console, console_form, console_line, console_order, console_audit):
            await take(visit, stack, folder)
        await visit.end()
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
