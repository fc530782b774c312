"""A link with a token in it. Anyone can make one and send it to a buyer who is signed in."""

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.browser.visiting import DESKTOP, PHONE, Visit, order_is, orders_of, press, serious
from tests.e2e.stack import Stack

WORDS = {
    "en-GB": ("You are signed in as mia. The link you opened would sign you in as eve.", "Stay mia", "Continue as eve"),
    "zh-CN": ("你当前的账号是 mia，而打开的链接会以 eve 的身份登录。", "继续使用 mia", "切换为 eve"),
}


async def follow(page: Page, stack: Stack, user: str, path: str = "/") -> None:
    await page.goto(f"{stack.url}{path}#token={stack.token(user)}")


async def signed_in(page: Page) -> str | None:
    token: str | None = await page.evaluate("sessionStorage.getItem('seckill.token')")
    return token


@pytest.mark.parametrize(("locale", "viewport"), list(zip(WORDS, (PHONE, DESKTOP), strict=True)), ids=list(WORDS))
async def test_a_buyer_who_is_signed_in_is_asked_first(
    visit: Visit, stack: Stack, locale: str, viewport: dict[str, int]
) -> None:
    effect, stay, go = WORDS[locale]
    page = await visit.page(viewport, locale)
    await follow(page, stack, "mia")
    await expect(page.locator("header")).to_contain_text("mia")
    before = await signed_in(page)
    # In the same tab, as from a chat; and on another page of the shop.
    for path in ("/", "/orders"):
        await follow(page, stack, "eve", path)
        question = page.locator("dialog[open]")
        await expect(question).to_contain_text(effect)
        assert "token" not in page.url
        assert await signed_in(page) == before
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await serious(page) == []
        await expect(page.get_by_role("button", name=stay)).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(question).to_have_count(0)
        await expect(page.locator("header")).to_contain_text("mia")
        assert await signed_in(page) == before
    await page.reload()
    await expect(page.locator("header")).to_contain_text("mia")
    await expect(page.locator("dialog[open]")).to_have_count(0)
    await follow(page, stack, "eve")
    await expect(page.get_by_role("button", name=stay)).to_be_focused()
    await page.keyboard.press("Enter")  # what has the focus is the safe one
    await expect(page.locator("dialog[open]")).to_have_count(0)
    assert await signed_in(page) == before
    await follow(page, stack, "eve")
    await page.get_by_role("button", name=go).click()
    await expect(page.locator("header")).to_contain_text("eve")
    assert await signed_in(page) != before


async def test_a_purchase_after_such_a_link_is_of_the_buyer_who_stayed(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=3)
    page = await visit.sale_page(sale, "mara")
    await follow(page, stack, "thief", f"/sales/{sale['id']}")
    await page.locator("[data-action=stay]").click()
    await press(page)
    await order_is(page, "unpaid")
    assert len(await orders_of(stack, "mara")) == 1
    assert await orders_of(stack, "thief") == []


async def test_the_same_person_is_not_asked(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await follow(page, stack, "sam")
    await expect(page.locator("header")).to_contain_text("sam")
    before = await signed_in(page)
    async with page.expect_event("framenavigated"):
        await page.evaluate(f"location.hash = 'token={stack.token('sam', 7200)}'")
    await expect(page.locator("header")).to_contain_text("sam")
    # Not with `wait_for_function`: it evaluates a text in the page, which the policy forbids.
    while await page.evaluate("sessionStorage.getItem('seckill.token')") == before:
        await asyncio.sleep(0.05)
    await expect(page.locator("dialog[open]")).to_have_count(0)


REFUSED = {
    "en-GB": "The link you opened is not valid and signs nobody in. You are still signed in as tom.",
    "zh-CN": "打开的链接无效，无法登录。你当前的账号仍是 tom。",
}


def forged(token: str) -> str:
    """The same person, as the maker of the link states."""
    head, payload, signature = token.split(".")
    return f"{head}.{payload}.{'A' * len(signature)}"


@pytest.mark.parametrize(("locale", "path"), list(zip(REFUSED, ("/", "/orders"), strict=True)))
async def test_a_link_that_the_server_does_not_accept_changes_nothing(
    visit: Visit, stack: Stack, locale: str, path: str
) -> None:
    page = await visit.page(PHONE, locale)
    await follow(page, stack, "tom")
    await expect(page.locator("header")).to_contain_text("tom")
    before = await signed_in(page)
    for token in (forged(stack.token("tom", 7200)), forged(stack.token("eve")), "nonsense"):
        await page.goto(f"{stack.url}{path}#token={token}")
        await expect(page.locator("main")).to_contain_text(REFUSED[locale])
        assert "token" not in page.url
        assert await signed_in(page) == before
        await expect(page.locator("header")).to_contain_text("tom")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        assert await serious(page) == []
        await page.reload()  # it is said once
        await expect(page.locator("header")).to_contain_text("tom")
        await expect(page.locator("main")).not_to_contain_text(REFUSED[locale])


async def test_a_link_that_cannot_be_tried_changes_nothing(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await follow(page, stack, "tim")
    await expect(page.locator("header")).to_contain_text("tim")
    before = await signed_in(page)
    await page.route("**/v1/orders?limit=1", lambda route: route.abort())
    await page.evaluate(f"location.hash = 'token={stack.token('tim', 7200)}'")
    await expect(page.locator("main")).to_contain_text(
        "couldn't check the link you opened. You are still signed in as tim"
    )
    assert await signed_in(page) == before


async def test_a_name_that_is_one_long_word(visit: Visit, stack: Stack) -> None:
    page = await visit.page()
    await follow(page, stack, "m" * 128)
    await expect(page.locator("header")).to_contain_text("mmm")
    await follow(page, stack, "e" * 128)
    await expect(page.locator("dialog[open]")).to_contain_text("e" * 128)
    dialog = "document.querySelector('dialog[open]')"
    assert await page.evaluate(f"{dialog}.scrollWidth <= {dialog}.clientWidth")
