"""The console's list of orders, its files, and a sale that is announced once or copied."""

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

from playwright.async_api import Page, Route, expect

from tests.browser.visiting import Visit, ask, buy, buyer, in_s, operator, serious
from tests.e2e.stack import Stack


async def saved(page: Page, kind: str) -> str:
    async with page.expect_download() as download:
        await page.locator(f"[data-export={kind}]").click()
    path = await (await download.value).path()
    return Path(path).read_text(encoding="utf-8")


async def test_who_bought_page_by_page_filtered_and_as_a_file(visit: Visit, stack: Stack) -> None:
    sale = await stack.create_sale(units=30, price_cents=4900)
    ids = [await buy(stack, sale, f"buyer-{place}") for place in range(23)]
    await ask(stack, "POST", f"/v1/orders/{ids[4]}/pay", buyer(stack, "buyer-4"))
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await page.get_by_role("link", name="All orders").click()
    rows = page.locator("[data-list=orders] tbody tr")
    await expect(rows).to_have_count(20)
    await expect(rows.first).to_contain_text("buyer-22")
    await page.locator("[data-action=more]").click()
    await expect(rows).to_have_count(23)
    await expect(page.locator("[data-action=more]")).to_have_count(0)
    assert await serious(page) == []
    found = list(csv.DictReader(io.StringIO(await saved(page, "csv"))))
    assert [row["order_id"] for row in found] == ids[::-1]
    await page.locator(".filters [name=state]").select_option("paid")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(rows).to_have_count(1)
    [line] = (await saved(page, "jsonl")).splitlines()
    assert json.loads(line)["buyer"] == "buyer-4"
    await expect(page.locator(".filters [name=buyer]")).not_to_be_visible()  # folded away, until it is wanted
    await page.locator(".filters summary").click()
    await page.locator(".filters [name=buyer]").fill("nobody")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(page.locator(".view")).to_contain_text("No order in the ledger matches.")
    await page.locator(".filters [name=buyer]").fill("buyer-4")
    await page.get_by_role("button", name="Show", exact=True).click()
    await rows.get_by_role("link").click()
    await expect(page.locator(".found")).to_contain_text("buyer-4")


async def test_announced_again_after_a_lost_answer_it_is_one_sale(visit: Visit, stack: Stack) -> None:
    page = await visit.console()
    await page.locator("aside").get_by_role("button", name="New sale").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Only one")
    await form.locator("[name=free]").check()
    answers: list[dict[str, Any]] = []

    async def lose_the_first(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        answer = await route.fetch()
        answers.append({"status": answer.status, "id": (await answer.json())["id"]})
        await (route.abort() if len(answers) == 1 else route.fulfill(response=answer))

    await page.route("**/v1/sales", lose_the_first)
    await form.locator("button[type=submit]").click()
    await expect(form.locator(".form-foot > .problem")).not_to_be_empty()
    await form.locator("button[type=submit]").click()
    await expect(page.locator(".view h1")).to_have_text("Only one")
    first, second = answers
    assert (first["status"], second["status"]) == (201, 200)
    assert first["id"] == second["id"]


async def test_a_sale_is_announced_like_another(visit: Visit, stack: Stack) -> None:
    facts: dict[str, Any] = {
        "title": "Shirt",
        "limit_per_buyer": 2,
        "currency": "EUR",
        "confirm": "ledger",
        "cool_down_s": 7,
        "pay_within_s": 600,
        "description": "Of **cotton**.",
        "external_id": "shirt-1",
        "metadata": {"sku": "S-1"},
        "audience": {"groups": ["gold"], "list": False, "early": []},
        "items": [
            {"title": "M", "units": 5, "price_cents": 1990, "external_id": "m"},
            {"title": "L", "units": 6, "price_cents": 2190},
        ],
        "begins_at": in_s(-60),
        "ends_at": in_s(3540),
    }
    sale = await ask(stack, "POST", "/v1/sales", operator(stack), **facts)
    page = await visit.console()
    await page.add_init_script("delete Crypto.prototype.randomUUID")  # which pages without TLS do not have
    await page.goto(f"{stack.url}/console#/sales/{sale['id']}")
    await page.reload()
    for own in ("shirt-1", '"sku": "S-1"'):
        await expect(page.locator(".own-facts")).to_contain_text(own)
    await page.get_by_role("button", name="Duplicate").click()
    form = page.locator(".sale-form")
    await form.locator("[name=title]").fill("Shirt again")
    async with page.expect_response(lambda answer: answer.request.method == "POST") as announced:
        await form.locator("button[type=submit]").click()
    copy = await (await announced.value).json()
    await expect(page.locator(".view h1")).to_have_text("Shirt again")
    same = ("limit_per_buyer", "currency", "confirm", "cool_down_s", "pay_within_s", "description", "metadata")
    assert {name: copy[name] for name in same} == {name: sale[name] for name in same}
    kept = ("title", "units", "price_cents", "external_id")
    assert [[item[name] for name in kept] for item in copy["items"]] == [
        [item[name] for name in kept] for item in sale["items"]
    ]
    assert (copy["external_id"], copy["published"]) == (None, False), "no two sales have the same; and it is a draft"
    assert copy["audience"] == sale["audience"]
    await page.get_by_role("button", name="Duplicate").click()
    await form.locator("summary").get_by_text("Page content").click()
    await form.locator("[name=description]").fill("")
    async with page.expect_response(lambda answer: answer.request.method == "POST") as announced:
        await form.locator("button[type=submit]").click()
    assert (await (await announced.value).json())["description"] == "", "what is taken away is not copied"


async def test_orders_of_an_item_and_what_the_shop_has_said_of_them(visit: Visit, stack: Stack) -> None:
    items = [{"title": "M", "units": 5, "price_cents": 1990, "external_id": "sku-m"}, {"title": "L", "units": 6}]
    window = {"begins_at": in_s(-60), "ends_at": in_s(3540)}
    facts = {"title": "Shirt", "external_id": "shirt-2", "items": [items[0], items[1] | {"price_cents": 5}]}
    sale = await ask(stack, "POST", "/v1/sales", operator(stack), **facts, **window)
    for user, item in zip(("ann", "bob"), sale["items"], strict=True):
        body = {"item_id": item["item_id"], "metadata": {"gift for": user}}
        claimed = await ask(stack, "POST", f"/v1/sales/{sale['id']}/orders", buyer(stack, user), **body)
        await ask(stack, "GET", f"/v1/orders/{claimed['order_id']}?wait=30", buyer(stack, user))
    page = await visit.console()
    await page.goto(f"{stack.url}/console#/orders//{sale['id']}")
    rows = page.locator("[data-list=orders] tbody tr")
    await expect(rows).to_have_count(2)
    await page.locator(".filters [name=item_id]").select_option("M")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("ann")
    assert await serious(page) == []
    await rows.get_by_role("link").click()
    for own in ("shirt-2", "sku-m", '"gift for": "ann"'):
        await expect(page.locator(".found .own-facts")).to_contain_text(own)
    assert await serious(page) == []


async def test_orders_of_long_titles_and_prices_fit_a_phone(visit: Visit, stack: Stack) -> None:
    """Nothing lies on anything else, and nothing is to be looked for to the right."""
    sale = await stack.create_sale(title="Unbroken" * 25, units=3, price_cents=999_999_999_900)
    order_id = await buy(stack, sale, "phone-orders")
    await ask(stack, "POST", f"/v1/orders/{order_id}/pay", buyer(stack, "phone-orders"))
    page = await visit.console()
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{stack.url}/console#/orders//{sale['id']}")
    row = page.locator("[data-list=orders] tbody tr", has_text="phone-orders")
    await expect(row.locator("td")).to_have_count(6)
    cells = await row.locator("td").evaluate_all(BOXES)
    assert all(right <= 390 for _, _, right, _ in cells)
    assert not [pair for pair in itertools.combinations(cells, 2) if overlap(*pair)]
    await page.goto(f"{stack.url}/console#/")
    row = page.locator(f"tr[data-sale='{sale['id']}']")
    await expect(row.locator("[data-cell=revenue]")).to_contain_text("9,999,999,999")
    cells = await row.locator("td, th").evaluate_all(BOXES)
    assert not [pair for pair in itertools.combinations(cells, 2) if overlap(*pair)]
    await page.goto(f"{stack.url}/console#/system")
    await expect(page.locator(".nodes-table tbody tr").first).to_be_visible()
    assert await page.locator(".scroll").evaluate("table => table.scrollWidth <= table.clientWidth")


# The boxes of what the cells show, even if it is wider than its cell; of a title, only as much as is shown.
BOXES = """cells => cells.map((cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  const shown = cell.querySelector(".clamped") ?? (cell.matches("th") ? cell.firstElementChild : text);
  const { left, top, right, bottom } = shown.getBoundingClientRect();
  return [left, top, right, bottom];
})"""


def overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[2] - 1 and other[0] < one[2] - 1 and one[1] < other[3] - 1 and other[1] < one[3] - 1
