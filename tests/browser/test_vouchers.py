"""Codes on the pages: an operator uploads them, a buyer reads and copies theirs."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Page, expect

from tests.browser.visiting import DESKTOP, PHONE, Visit, ask, buy, operator, order_is, press, sale_called, serious
from tests.e2e.stack import Stack


async def coupon(stack: Stack, *codes: str, **facts: Any) -> dict[str, Any]:
    wanted = {"title": "Coupon", "units": len(codes), "price_cents": 0, "limit_per_buyer": 2, "vouchers": True}
    sale = await stack.create_sale(**wanted | facts)
    headers = operator(stack) | {"Content-Type": "text/csv"}
    content = "".join(f"{code}\n" for code in codes).encode()
    async with httpx2.AsyncClient(base_url=stack.url) as http:
        added = await http.post(f"/v1/admin/sales/{sale['id']}/vouchers", content=content, headers=headers)
    assert added.status_code == 200, added.text
    return sale


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_a_buyer_reads_and_copies_the_code(visit: Visit, stack: Stack, viewport: dict[str, int]) -> None:
    code = f"SAVE-{viewport['width']}-{'X' * 60}"
    sale = await coupon(stack, code, "other-" + code)
    page = await visit.sale_page(sale, "kim", viewport=viewport, permissions=["clipboard-read", "clipboard-write"])
    await press(page)
    await order_is(page, "paid")
    await expect(page.locator(".code")).to_have_text(code)
    await expect(page.locator("svg.qr path")).to_be_visible()
    await page.click(".codes [data-action=copy]")
    await expect(page.locator(".codes [data-action=copy]")).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == code
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await serious(page) == []
    await page.reload()
    await expect(page.locator(".code")).to_have_text(code)


async def test_two_codes_in_chinese_and_what_a_refund_leaves(visit: Visit, stack: Stack) -> None:
    sale = await coupon(stack, "双-1", "双-2", title="优惠券")
    order_id = await buy(stack, sale, "lin", quantity=2)
    page = await visit.page(locale="zh-CN")
    await page.goto(f"{stack.url}/orders/{order_id}#token={stack.token('lin')}")
    await expect(page.locator(".codes h2")).to_have_text("你的券码")
    assert await page.locator(".code").all_inner_texts() == ["双-1", "双-2"]
    await expect(page.locator("svg.qr")).to_have_count(0)
    await page.get_by_role("button", name="二维码").first.click()
    await expect(page.locator("svg.qr")).to_have_count(1)
    refund = {"return_unit": False, "reason": "r"}
    await ask(stack, "POST", f"/v1/admin/orders/{order_id}/refund", operator(stack), **refund)
    await page.reload()
    await order_is(page, "refunded")
    await expect(page.locator(".code")).to_have_count(0)


async def test_an_operator_uploads_codes_and_finds_who_has_one(visit: Visit, stack: Stack, tmp_path: Path) -> None:
    console = await visit.console()
    await console.click("button:has-text('New sale')")
    await console.fill("input[name=title]", "Lunch")
    await console.fill("input[name=units]", "2")
    await console.check("input[name=free]")
    await console.fill("input[name=begins_at]", "2020-01-01T00:00")
    await console.check("input[name=vouchers]")
    await console.click("button[type=submit]")
    await expect(console.locator(".view h1")).to_have_text("Lunch")
    await expect(console.locator(".vouchers .notice")).to_contain_text("2 codes are missing")
    await _upload(console, tmp_path, "LUNCH-1\nLUNCH-1\n")
    await expect(console.locator("#codes-problem")).to_contain_text("line 2: has the same code as line 1")
    await _upload(console, tmp_path, "LUNCH-1\nLUNCH-2\n")
    await expect(console.locator(".vouchers")).to_contain_text("2 codes added.")
    await expect(console.locator(".vouchers .notice")).to_have_count(0)
    assert await serious(console) == []
    await buy(stack, await sale_called(stack, "Lunch"), "mia")
    await console.goto(f"{stack.url}/console#/orders/LUNCH-1")
    await expect(console.locator(".found .codes-of")).to_contain_text("LUNCH-1")
    await expect(console.locator(".found")).to_contain_text("mia")


async def test_an_operator_uploads_codes_of_one_item(visit: Visit, stack: Stack, tmp_path: Path) -> None:
    kinds = [{"title": "10 €", "units": 1}, {"title": "50 €", "units": 2}]
    sale = await stack.create_sale(title="Gift card", units=None, items=kinds, price_cents=0, vouchers=True)
    console = await visit.console()
    await console.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await console.select_option("select[name=item]", label="50 €")
    await _upload(console, tmp_path, "FIFTY-1\nFIFTY-2\n")
    await expect(console.locator(".vouchers")).to_contain_text("2 codes added.")
    rows = console.locator(".vouchers .by-item tbody tr")
    await expect(rows).to_have_text([re.compile(r"10 €\s*0\s*1"), re.compile(r"50 €\s*2\s*2")])
    await expect(console.locator(".vouchers .notice")).to_contain_text("1 codes are missing")
    assert await serious(console) == []


async def _upload(console: Page, folder: Path, content: str) -> None:
    path = folder / "codes.csv"
    path.write_text(content)
    await console.set_input_files("input[name=codes]", path)
    await console.click(".upload button")
