"""The pages show what is sold: pictures, price, text and links."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.visiting import DESKTOP, PHONE, PICTURE_HOST, Visit, ask, buy, in_s, operator, picture, serious
from tests.e2e.stack import Stack

PICTURES = [f"https://{PICTURE_HOST}/kettle.png", f"https://{PICTURE_HOST}/gone.png"]
DESCRIPTION = """Boils a litre in **three minutes**, and *quietly*.

## What is in the box
- the kettle
- a base with <b>its</b> cable

[Manual](https://shop.example.com/manual) and [not a link](javascript:alert(1)). <img src=x onerror=alert(1)>"""


async def kettle(stack: Stack, **facts: Any) -> dict[str, Any]:
    goods = {
        "title": "Kettle",
        "units": 100,
        "price_cents": 9900,
        "list_price_cents": 14900,
        "images": PICTURES[:1],
        "description": DESCRIPTION,
        "delivery": "Sent within two days.\nFree of charge.",
        "terms_url": "https://shop.example.com/terms",
        "return_url": "https://shop.example.com/",
    }
    return await stack.create_sale(**goods | facts)


async def test_a_page_shows_the_goods(visit: Visit, stack: Stack) -> None:
    sale = await kettle(stack)
    page = await visit.page()
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await expect(page.locator(".product .price")).to_contain_text("CN¥99")
    await expect(page.locator(".product .price s")).to_have_text("CN¥149")
    await expect(page.locator(".saving")).to_have_text("You save CN¥50")
    photo = page.locator("img.cover")
    await expect(photo).to_be_visible()
    assert await photo.evaluate("image => image.naturalWidth") == 64, "the policy lets it be loaded"
    details = page.locator(".details")
    await expect(details.locator("strong")).to_have_text("three minutes")
    await expect(details.locator("em")).to_have_text("quietly")
    await expect(details.locator("h3")).to_have_text("What is in the box")
    assert await details.locator("li").all_inner_texts() == ["the kettle", "a base with <b>its</b> cable"]
    assert await details.locator("b, img").count() == 0, "markup is shown as text"
    links = [await link.get_attribute("href") for link in await details.locator("a").all()]
    assert links == ["https://shop.example.com/manual", "https://shop.example.com/terms", "https://shop.example.com/"]
    await expect(details).to_contain_text("[not a link](javascript:alert(1))")
    assert await serious(page) == []


async def test_the_list_shows_picture_and_list_price(visit: Visit, stack: Stack) -> None:
    sale = await kettle(stack)
    page = await visit.page(DESKTOP)
    await page.goto(stack.url)
    card = page.locator(f"a.card[href$='{sale['id']}']")
    await expect(card.locator("s")).to_have_text("CN¥149")
    await expect(card.locator("img.cover")).to_be_visible()


async def test_a_picture_that_is_gone_is_left_out(visit: Visit, stack: Stack) -> None:
    sale = await kettle(stack, images=[PICTURES[1], PICTURES[0], f"{PICTURES[0]}?2"])
    page = await visit.page()
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await page.get_by_role("button", name="Picture 2 of 2").click()
    await expect(page.locator("img.cover")).to_have_attribute("src", f"{PICTURES[0]}?2")
    none = await kettle(stack, images=PICTURES[1:])
    await page.goto(f"{stack.url}/sales/{none['id']}")
    await expect(page.locator("svg.cover")).to_be_visible()


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_nothing_is_wider_than_the_screen(visit: Visit, stack: Stack, viewport: dict[str, int]) -> None:
    sale = await kettle(stack, description="x" * 3000)
    page = await visit.page(viewport)
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await expect(page.locator(".details")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_who_has_an_order_of_a_hidden_sale_can_pay_for_it(visit: Visit, stack: Stack) -> None:
    sale = await kettle(stack)
    order_id = await buy(stack, sale, "hana")
    await ask(stack, "PATCH", f"/v1/sales/{sale['id']}", operator(stack), published=False)
    page = await visit.page()
    await page.goto(f"{stack.url}/orders/{order_id}#token={stack.token('hana')}")
    await expect(page.get_by_role("button", name="Pay CN¥99")).to_be_enabled()
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await expect(page.locator(".empty")).to_be_visible()


async def test_an_operator_drafts_publishes_and_hides(visit: Visit, stack: Stack) -> None:
    console = await visit.console()
    await console.click("button:has-text('New sale')")
    await console.fill("input[name=title]", "Samovar")
    await console.fill("input[name=price]", "99")
    await console.get_by_text("Page content").click()
    await console.fill("textarea[name=description]", "Of **clay**.")
    await console.fill("textarea[name=images]", "https://elsewhere.example.com/a.png")
    await console.fill("input[name=list_price]", "149")
    await console.fill("textarea[name=metadata]", "no JSON")
    await console.check("input[name=draft]")
    await console.click("button[type=submit]")
    await expect(console.locator("#wrong-metadata")).to_contain_text("JSON object")
    await console.fill("textarea[name=metadata]", '{"sku": "T-1"}')
    await console.click("button[type=submit]")
    await expect(console.locator("#wrong-images")).to_contain_text("SECKILL_IMAGE_HOSTS")
    await console.fill("textarea[name=images]", "\n".join(PICTURES))
    await console.click("button[type=submit]")
    await expect(console.locator(".view h1")).to_have_text("Samovar")
    await expect(console.locator(".view-head")).to_contain_text("hidden from buyers")
    await console.click("button:has-text('Publish')")
    await expect(console.locator("button:has-text('Hide')")).to_be_visible()
    buyers = await visit.page()
    await buyers.goto(stack.url)
    card = buyers.locator(".card", has_text="Samovar")
    await expect(card.locator("s")).to_have_text("CN¥149")
    await console.click("button:has-text('Hide')")
    await console.click("dialog button:has-text('Hide it')")
    await expect(console.locator("button:has-text('Publish')")).to_be_visible()
    await expect(card).to_have_count(0)


async def test_a_sale_to_come_is_shown_with_its_goods(visit: Visit, stack: Stack) -> None:
    sale = await kettle(stack, begins_at=in_s(3600), ends_at=in_s(7200), images=[])
    page = await visit.page(locale="zh-CN")
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    await expect(page.locator(".saving")).to_have_text("立省 ¥50")
    await expect(page.locator("svg.cover")).to_be_visible()


async def test_an_operator_uploads_a_picture(visit: Visit, stack: Stack, tmp_path: Path) -> None:
    sale = await kettle(stack, images=[], title="Camera")
    file = tmp_path / "holiday.txt"  # its name says nothing
    file.write_bytes(picture(10, 120, 200, 320, 240))
    console = await visit.console()
    await console.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await console.click("button:has-text('Edit')")
    await console.get_by_text("Page content").click()
    await console.set_input_files("input[name=picture]", file)
    await expect(console.locator("textarea[name=images]")).to_have_value(re.compile(r"^/images/[0-9a-f]{64}\.webp$"))
    file.write_bytes(b"no picture")
    await console.set_input_files("input[name=picture]", file)
    await expect(console.locator("#picture-problem")).to_contain_text("must be a JPEG, PNG or WebP picture")
    await console.click("dialog button[type=submit]")
    await expect(console.locator("dialog[open]")).to_have_count(0)
    page = await visit.page()
    await page.goto(f"{stack.url}/sales/{sale['id']}")
    photo = page.locator("img.cover")
    await expect(photo).to_be_visible()
    assert await photo.evaluate("image => image.naturalWidth") == 320
