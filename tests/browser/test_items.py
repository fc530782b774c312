"""Sizes and colours on the pages: chosen with mouse and keyboard, sold out one by one, announced in the console."""

import re
from typing import Any

from playwright.async_api import Page, expect

from tests.browser.visiting import PICTURE_HOST, Visit, ask, buyer, order_is, press, serious
from tests.e2e.stack import Stack

SIZES: list[dict[str, Any]] = [
    {"title": "S", "units": 1, "price_cents": 9900},
    {"title": "M", "units": 50, "price_cents": 10900, "image": f"https://{PICTURE_HOST}/m.png"},
    {"title": "L", "units": 20, "price_cents": 11900},
]


async def shirt(stack: Stack, title: str = "Shirt", **facts: Any) -> dict[str, Any]:
    return await stack.create_sale(**{"title": title, "units": None, "price_cents": None, "items": SIZES} | facts)


async def take(stack: Stack, sale: dict[str, Any], user: str, place: int) -> None:
    body = {"item_id": sale["items"][place]["item_id"]}
    await ask(stack, "POST", f"/v1/sales/{sale['id']}/orders", buyer(stack, user), **body)


def radio(page: Page, title: str) -> Any:
    return page.get_by_role("radio", name=re.compile(rf"^{title}\b"))


async def test_a_buyer_chooses_and_pays_what_that_costs(visit: Visit, stack: Stack) -> None:
    sale = await shirt(stack)
    page = await visit.sale_page(sale, "chooser")  # who has bought nothing else
    price, button = page.locator(".product .price"), page.locator("[data-action=buy]")
    await expect(price).to_have_text("from CN¥99")
    await expect(button).to_be_disabled()
    await expect(button).to_have_text("Choose an option first")
    assert await page.get_by_role("group", name="Choose an option").count() == 1
    assert await serious(page) == []
    await radio(page, "M").check()
    await expect(price).to_have_text("CN¥109")
    await expect(button).to_have_text("Buy now · CN¥109")
    await expect(page.locator("img.cover")).to_have_attribute("src", SIZES[1]["image"])
    await press(page)
    await order_is(page, "unpaid")
    await expect(page.locator("[data-order-state]")).to_contain_text("· M")
    await expect(page.locator("[data-action=pay]")).to_have_text("Pay CN¥109")
    await page.goto(f"{stack.url}/orders")
    await expect(page.locator(".order-title")).to_have_text("Shirt · M")


async def test_with_the_keyboard_alone(visit: Visit, stack: Stack) -> None:
    sale = await shirt(stack, "Shirt for keys")
    page = await visit.sale_page(sale, "key")
    await expect(page.locator("[data-action=buy]")).to_have_text("Choose an option first")
    await radio(page, "S").focus()
    await page.keyboard.press("Space")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(radio(page, "L")).to_be_checked()
    await expect(page.locator("[data-action=buy]")).to_be_enabled()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await order_is(page, "unpaid")
    await expect(page.locator("[data-order-state]")).to_contain_text("· L")


async def test_one_that_is_gone_is_marked_and_the_others_are_sold(visit: Visit, stack: Stack) -> None:
    sale = await shirt(stack, "Shirt that goes")
    page = await visit.sale_page(sale, "bob")
    await radio(page, "S").check()
    await take(stack, sale, "quick", 0)
    await press(page)
    refusal = page.locator("[data-refusal=item_sold_out]")
    await expect(refusal).to_contain_text("This option is sold out")
    await expect(radio(page, "S")).to_be_disabled()
    await expect(page.locator(".item[data-gone=true]")).to_contain_text("Sold out")
    await expect(page.locator("[data-action=buy]")).to_be_disabled()
    assert await serious(page) == []
    await radio(page, "L").check()
    await expect(refusal).not_to_be_visible()
    await press(page)
    await order_is(page, "unpaid")
    other = await visit.sale_page(sale, "eve")
    await expect(radio(other, "S")).to_be_disabled()
    await expect(other.locator("[data-action=buy]")).to_have_text("Choose an option first")


async def test_operators_announce_items_and_see_their_units(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Hat")
    await form.get_by_text("Sizes or colours").click()
    for place, (title, units, price) in enumerate((("red", "5", "10"), ("blue", "", "12"))):
        await form.locator("[data-action=add-item]").click()
        await form.locator(f"[name='items[{place}].title']").fill(title)
        await form.locator(f"[name='items[{place}].units']").fill(units)
        await form.locator(f"[name='items[{place}].price']").fill(price)
    await expect(form.locator("[name=units]")).to_have_count(0)
    await form.locator("button[type=submit]").click()
    await expect(form.locator("[data-field='items[1].units'] .problem")).to_contain_text("A whole number")
    await form.locator("[name='items[1].units']").fill("7")
    assert await serious(page) == []
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view h1")).to_have_text("Hat")
    rows = page.locator(".by-item tbody tr")
    await expect(rows.nth(1)).to_contain_text("blue")
    await expect(rows.nth(1).locator("td").nth(1)).to_have_text("7")
    await page.get_by_role("button", name="Add units").click()
    await page.locator("[name=item]").select_option(label="blue")
    await page.locator("[name=add_units]").fill("3")
    await page.locator("dialog[open]").get_by_role("button", name="Add units").click()
    await expect(rows.nth(1).locator("td").nth(1)).to_have_text("10")
    await expect(page.locator(".custody h2")).to_contain_text("15")
    await page.get_by_role("button", name="Edit").click()
    await page.locator(".sale-form").get_by_text("Sizes or colours").click()
    await page.locator("[name='items[0].title']").fill("crimson")
    await page.locator(".sale-form button[type=submit]").click()
    await expect(rows.nth(0)).to_contain_text("crimson")
