"""The door on the pages: a pass that is prepared before the start, early access, and why there was nothing left."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import jwt
from playwright.async_api import Page, expect

from tests.browser.visiting import PHONE, Visit, ask, buy, buyer, in_s, operator, sale_called
from tests.e2e.stack import Stack
from tests.patience import PATIENCE_S

SALE = {"units": 3, "price_cents": 0}


async def announce(stack: Stack, **facts: Any) -> dict[str, Any]:
    wanted = {"title": "A lamp", **SALE, "begins_at": in_s(-60), "ends_at": in_s(3600)} | facts
    return await ask(stack, "POST", "/v1/sales", operator(stack), **wanted)


def token_of(stack: Stack, user: str, **claims: Any) -> str:
    """The stack's own token, with more in it."""
    known = jwt.decode(stack.token(user), options={"verify_signature": False})
    secret = stack.settings.jwt_secret
    assert secret is not None
    return jwt.encode(known | claims, secret.reveal(), "HS256")


async def test_the_page_solves_the_work_before_the_start(visit: Visit) -> None:
    sale = await announce(visit.stack, begins_at=in_s(8), **{"pass": "work", "pass_work": 2000})
    page = await visit.sale_page(sale, "ann-of-the-pass")
    await expect(page.locator("[data-pass=ready]")).to_be_visible()
    await expect(page.locator("[role=timer]")).to_be_visible()
    await page.click("[data-action=buy]:enabled")
    await expect(page.locator(".headline[data-state=paid]")).to_be_visible()


async def test_without_javascript_of_ours_a_press_is_refused_and_with_an_old_pass_the_page_gets_another(
    visit: Visit,
) -> None:
    sale = await announce(visit.stack, **{"pass": "work", "pass_work": 2000})
    page = await visit.sale_page(sale, "bob-of-the-pass")
    await expect(page.locator("[data-pass=ready]")).to_be_visible()
    place = f"seckill.pass.bob-of-the-pass.{sale['id']}.{sale['round']}"
    await page.evaluate(
        "([place, pass]) => sessionStorage.setItem(place, JSON.stringify(pass))",
        [place, {"pass": "1.wrong", "expires_at": "2100-01-01T00:00:00Z"}],
    )
    await page.reload()
    await page.click("[data-action=buy]:enabled")
    await expect(page.locator(".headline[data-state=paid]")).to_be_visible()


async def test_who_is_early_sees_their_own_beginning_and_who_is_not_invited_is_told(visit: Visit) -> None:
    early = [{"groups": ["vip"], "minutes": 10}]
    sale = await announce(visit.stack, begins_at=in_s(300), audience={"groups": ["gold"], "early": early})
    page = await visit.page()
    await page.goto(f"{visit.stack.url}/sales/{sale['id']}#token={token_of(visit.stack, 'vic', groups=['vip'])}")
    await expect(page.locator("[data-audience]")).to_have_text("Only for: gold")
    await expect(page.locator("[data-early]")).to_contain_text("vip")
    await page.click("[data-action=buy]:enabled")
    await expect(page.locator(".headline[data-state=paid]")).to_be_visible()
    on = await announce(visit.stack, audience={"groups": ["gold"]})
    outside = await visit.sale_page(on, "eve-outside", locale="zh-CN")
    await expect(outside.locator("[data-audience]")).to_have_text("仅限：gold")
    await outside.click("[data-action=buy]:enabled")
    await expect(outside.locator("[data-refusal=not_invited]")).to_be_visible()
    await expect(outside.locator(".action")).to_have_text("全部秒杀")  # and no button that would only be refused again


async def test_who_comes_too_late_is_told_why(visit: Visit) -> None:
    sale = await announce(visit.stack, units=1, price_cents=100)
    page = await visit.sale_page(sale, "late-lily")
    await expect(page.locator("[data-action=buy]:enabled")).to_be_visible()
    await buy(visit.stack, sale, "quick-quin")
    await page.click("[data-action=buy]")
    await expect(page.locator("[data-why]")).to_contain_text("Decided at")


async def test_the_number_is_found_as_the_browser_itself_would_hash_it(visit: Visit) -> None:
    page = await visit.page()
    await page.goto(visit.stack.url)
    for salt, number in (("a1b2c3d4?expires=1800000000&for=0123456789&", 0), ("x" * 40, 12_345), ("", 999)):
        challenge = hashlib.sha256(f"{salt}{number}".encode()).hexdigest()
        found = await solve(page, {"challenge": challenge, "salt": salt, "maxnumber": 20_000})
        assert found == number
    assert await solve(page, {"challenge": "0" * 64, "salt": "x", "maxnumber": 100}) is None


async def solve(page: Page, challenge: dict[str, Any]) -> Any:
    base = await page.evaluate("new URL('../app/', document.querySelector('script[src]').src).href")
    return await page.evaluate(
        "([url, challenge]) => import(url).then((module) => module.solve(challenge))", [f"{base}sha256.js", challenge]
    )


async def test_an_operator_sets_the_door_in_the_form_and_uploads_a_list(visit: Visit, tmp_path: Path) -> None:
    page = await visit.console()
    await page.click("button:has-text('New sale'), a:has-text('New sale')")
    await page.fill("[name=title]", "A lamp for some")
    await page.check("[name=free]")
    await page.click("summary:has-text('Who may buy')")
    await page.select_option("[name=pass]", "work")
    await page.fill("[name=pass_work]", "5000")
    await page.fill("[name=groups]", "gold, staff")
    await page.fill("[name=early]", "vip")
    await page.click("form.sale-form button[type=submit]")
    await expect(page.locator("#wrong-early")).not_to_be_empty()
    await page.fill("[name=early]", "vip 10")
    await page.check("[name=listed]")
    await page.click("form.sale-form button[type=submit]")
    await page.click("button:has-text('Upload the list')")
    file = tmp_path / "buyers.csv"
    file.write_text("ann\nbob\n")
    await page.set_input_files("[name=audience]", file)
    await page.click("dialog[open] button[type=submit]")
    await expect(page.locator("dialog[open] [role=status]")).to_have_text("The list now has 2 buyers.")
    async with asyncio.timeout(PATIENCE_S):
        while (made := await sale_called(visit.stack, "A lamp for some"))["list_buyers"] == 0:
            await asyncio.sleep(0.1)  # another node than the one that took the list
    assert (made["pass"], made["pass_work"], made["list_buyers"]) == ("work", 5000, 2)
    assert made["audience"] == {
        "groups": ["gold", "staff"],
        "early": [{"groups": ["vip"], "minutes": 10}],
        "list": True,
    }


async def test_the_captchas_widget_is_shown_and_its_answer_becomes_a_pass(checked: Visit) -> None:
    sale = await announce(checked.stack, **{"pass": "check"})
    page = await checked.sale_page(sale, "ann", viewport=PHONE)
    await expect(page.locator("[data-pass=ready]")).to_be_visible()
    await page.click("[data-action=buy]:enabled")
    await expect(page.locator(".headline[data-state=paid]")).to_be_visible()
    script = checked.stack._settings["SECKILL_CHECK_SCRIPT_URL"]
    assert checked.faults == [f"a request to another host: {script}"], "and to none but the service's"
    assert len((await ask(checked.stack, "GET", "/v1/orders", buyer(checked.stack, "ann")))["orders"]) == 1
