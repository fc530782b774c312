"""Prices, as people see them."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from seckill.domain.money import DECIMALS
from tests.browser.visiting import Visit, buy, sale_called
from tests.e2e.stack import Stack

LOCALES = ["en-GB", "en-US", "en-CA", "en-AU", "zh-CN", "zh-TW"]


BY_CODE = "Object.fromEntries(currencies.currencies().map((code) => [code, {}]))"
MODULES = "Promise.all(['i18n', 'currencies'].map((name) => import(`/assets/own/app/${name}.js`)))"
BROWSERS = "new Intl.NumberFormat('en', {style: 'currency', currency: code}).resolvedOptions().maximumFractionDigits"


async def of_each(page: Page, expression: str) -> dict[str, Any]:
    """Currency → what the page's own modules make of it."""
    by_code = BY_CODE.replace("{}", expression)
    found: dict[str, Any] = await page.evaluate(f"{MODULES}.then(([i18n, currencies]) => {by_code})")
    return found


@pytest.mark.parametrize("locale", LOCALES)
async def test_no_two_currencies_look_alike(visit: Visit, stack: Stack, locale: str) -> None:
    page = await visit.page(locale=locale)
    await page.goto(stack.url)
    shown = await of_each(page, "i18n.money(5 * 10 ** currencies.decimalsOf(code), code)")
    assert set(shown) == set(DECIMALS)
    assert len(set(shown.values())) == len(shown), [
        text for text in shown.values() if list(shown.values()).count(text) > 1
    ]
    assert shown["JPY"].startswith("JP")  # JP¥, or JPY in Australia
    assert shown["CNY"] == "¥5" if locale.startswith("zh") else shown["CNY"].startswith("CN")


async def test_amounts_are_in_iso_minor_units(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await page.goto(stack.url)
    assert await of_each(page, "currencies.decimalsOf(code)") == DECIMALS
    found = await of_each(page, BROWSERS)
    others = {code for code in DECIMALS if found[code] != DECIMALS[code]}
    assert others, "the browser's own would have done"
    assert len(others) < 20
    assert all(found[code] < DECIMALS[code] for code in others), "in everyday life some have fewer, and none has more"


PRICES = [
    (19_850, "JPY", "JP¥19,850", "JP¥19,850"),
    (19_850, "CNY", "CN¥198.50", "¥198.50"),
    (9_900, "CNY", "CN¥99", "¥99"),
    (1_500, "KWD", "KWD\u00a01.500", "KWD\u00a01.500"),
]


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
async def test_a_price_is_the_same_on_every_page(visit: Visit, stack: Stack, locale: str) -> None:
    sold = []
    for cents, currency, english, chinese in PRICES:
        title = f"{currency} {cents} {locale}"
        sale = await stack.create_sale(title=title, units=5, price_cents=cents, currency=currency)
        order_id = await buy(stack, sale, f"owner-{locale}")
        sold.append((sale, order_id, english if locale == "en-GB" else chinese))
    guest = await visit.sale_page(sold[0][0], f"guest-{locale}", locale=locale)
    owner = await visit.page(locale=locale)
    await owner.goto(f"{stack.url}/orders#token={stack.token(f'owner-{locale}')}")
    prices = owner.locator(".order-price")  # in any order: those of one second are sorted by lane
    await expect(prices).to_have_count(len(sold))
    assert sorted(await prices.all_inner_texts()) == sorted(price for _, _, price in sold)
    console = await visit.console(locale=locale)
    for sale, order_id, price in sold:
        await guest.goto(f"{stack.url}/sales/{sale['id']}")
        await expect(guest.locator(".price")).to_have_text(price)
        await expect(guest.locator("[data-action=buy]")).to_contain_text(price)
        await owner.goto(f"{stack.url}/orders/{order_id}")
        await expect(owner.locator("[data-action=pay]")).to_contain_text(price)
        await console.goto(f"{stack.url}/console#/sales/{sale['id']}")
        await expect(console.locator(".view-head")).to_contain_text(price)
    await guest.goto(stack.url)
    for sale, _, price in sold:
        await expect(guest.locator(".card", has_text=sale["title"]).locator(".price")).to_have_text(price)


async def test_the_form_takes_a_price_as_the_currency_has_it(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator("form.sale-form")
    await form.locator("[name=title]").fill("Kimono")
    for currency, price, said in [
        ("JPY", "19850.5", "JPY has no decimals"),
        ("KWD", "1.2345", "such as 99 or 99.500"),
    ]:
        await form.locator("[name=currency]").select_option(currency)
        await form.locator("[name=price]").fill(price)
        await form.locator("button[type=submit]").click()
        await expect(form.locator(".problem", has_text=said)).to_be_visible()
    await form.locator("[name=currency]").select_option("JPY")
    await form.locator("[name=price]").fill("19850")
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view-head")).to_contain_text("JP¥19,850")
    made = await sale_called(stack, "Kimono")
    assert (made["price_cents"], made["currency"]) == (19_850, "JPY")
