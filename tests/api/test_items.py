"""A sale of several sizes, over HTTP: announced, bought, refused, changed, given back, rebuilt, told."""

import asyncio
import csv
import io
import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.client import AsyncClient
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Settings
from tests.api.conftest import ADMIN_KEY, OPERATOR, Node, buyer, sale_body
from tests.api.test_rebuild import custody, flush, rebuild
from tests.making import use_cases
from tests.patience import PATIENCE_S
from tests.public.serving import on_a_port

IMAGE = "https://cdn.example.com/s.png"
SIZES: list[dict[str, Any]] = [
    {"title": "S", "units": 1, "price_cents": 9900, "external_id": "sku-s", "image": IMAGE},
    {"title": "M", "units": 3, "price_cents": 10900, "external_id": "sku-m"},
    {"title": "L", "units": 2},
]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, image_hosts=("cdn.example.com",))


async def announce(node: Node, **changes: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The sale, and the ids of its items by their titles."""
    body = sale_body(**({"items": SIZES, "price_cents": 12900, "limit_per_buyer": 2} | changes))
    del body["units"]
    response = await node.http.post("/v1/sales", json=body, headers=OPERATOR)
    assert response.status_code == 201, response.text
    sale = response.json()
    await node.refresh()
    return sale, {item["title"]: item["item_id"] for item in sale["items"]}


async def shown(node: Node, sale: dict[str, Any], **headers: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await node.http.get(f"/v1/sales/{sale['id']}", headers=headers)).json()
    return found


async def by_title(node: Node, sale: dict[str, Any]) -> dict[str, dict[str, Any]]:
    items: Any = (await custody(node, sale))["items"]
    return {item["title"]: item for item in items}


async def test_a_sale_shows_its_items_and_buyers_see_no_shop_ids(node: Node) -> None:
    sale, ids = await announce(node)
    assert (sale["units"], sale["price_cents"]) == (6, 9900), "all together, and the lowest price"
    assert [(item["title"], item["units"], item["price_cents"], item["image"]) for item in sale["items"]] == [
        ("S", 1, 9900, IMAGE),
        ("M", 3, 10900, None),
        ("L", 2, 12900, None),
    ]
    assert [item["external_id"] for item in sale["items"]] == ["sku-s", "sku-m", None]
    public = await shown(node, sale)
    assert [item["item_id"] for item in public["items"]] == list(ids.values())
    assert not any("external_id" in item or item["sold_out"] for item in public["items"])
    plain = await node.create()
    assert "items" not in plain
    assert "items" not in await custody(node, plain)


async def test_one_item_sells_out_and_the_others_go_on(node: Node) -> None:
    sale, ids = await announce(node)
    first = await node.buy(sale, "ann", key="k", item_id=ids["S"])
    assert (first.status_code, first.json()["item_id"]) == (202, ids["S"])
    refused = await node.buy(sale, "bob", item_id=ids["S"])
    assert (refused.status_code, refused.json()["code"], refused.json()["item_id"]) == (409, "sold_out", ids["S"])
    assert (await node.buy(sale, "bob", item_id=ids["L"].lower())).status_code == 202, "as people may type it"
    again = await node.buy(sale, "ann", key="k", item_id=ids["S"])
    assert (again.status_code, again.json()["order_id"]) == (202, first.json()["order_id"])
    other = await node.buy(sale, "ann", key="k", item_id=ids["M"])
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    await node.buy(sale, "ann", item_id=ids["M"])
    limit = await node.buy(sale, "ann", item_id=ids["L"])
    assert (limit.status_code, limit.json()["code"]) == (409, "limit_reached"), "one limit over all of them"
    await node.refresh()
    assert {item["title"]: item["sold_out"] for item in (await shown(node, sale))["items"]} == {
        "S": True,
        "M": False,
        "L": False,
    }
    assert (await shown(node, sale))["state"] == "open"


async def test_an_order_costs_what_its_item_costs(node: Node) -> None:
    sale, ids = await announce(node)
    order_id = (await node.buy(sale, "ann", quantity=2, item_id=ids["M"])).json()["order_id"]
    queued = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))).json()
    await node.work()
    order = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))).json()
    for each in (queued, order):
        assert (each["price_cents"], each["item_id"], each["item_title"]) == (21800, ids["M"], "M")
        assert "item_external_id" not in each, "the shop's own business"
    paid = await node.http.post(f"/v1/orders/{order_id}/pay", headers=buyer("ann"))
    assert paid.json()["state"] == "paid"
    found = (await node.http.get(f"/v1/admin/orders?order_id={order_id}", headers=OPERATOR)).json()["orders"][0]
    assert [payment["amount_cents"] for payment in found["payments"]] == [21800]
    assert found["order"]["item_external_id"] == "sku-m"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "item_id: is missing"),
        ({"item_id": None}, "item_id: is missing"),
        ({"item_id": "0000000000000"}, "unknown item"),
        ({"item_id": ""}, "unknown item"),
        ({"item_id": 1}, "item_id"),
        ({"item_id": "x" * 65}, "item_id"),
    ],
)
async def test_a_claim_that_names_no_item_of_the_sale(node: Node, body: dict[str, Any], says: str) -> None:
    sale, _ = await announce(node)
    answer = await node.buy(sale, "ann", **body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text
    assert says in answer.json()["detail"]


async def test_an_item_of_another_sale_is_unknown(node: Node) -> None:
    sale, _ = await announce(node)
    _, others = await announce(node)
    assert "unknown item" in (await node.buy(sale, "ann", item_id=others["S"])).json()["detail"]
    plain = await node.create()
    answer = await node.buy(plain, "ann", item_id=others["S"])
    assert (answer.status_code, "has no items" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"items": [{"title": "S", "units": 1}] * 51}, "items"),
        ({"items": [{"title": "S", "units": 0}]}, "items[0].units"),
        ({"items": [{"title": "S", "units": 4504, "price_cents": 10**12}] * 2}, "items"),
        ({"items": [{"title": "", "units": 1}]}, "items[0].title"),
        ({"items": [{"title": "a\nb", "units": 1}]}, "items[0].title"),
        ({"items": [{"title": "S", "units": 1, "price_cents": -1}]}, "items[0].price_cents"),
        ({"items": [{"title": "S", "units": 1, "colour": "red"}]}, "colour"),
        ({"items": [{"title": "S", "units": 1, "image": "https://evil.example/x"}]}, "items[0].image"),
        ({"items": [{"title": "S", "units": 1, "external_id": " x"}]}, "items[0].external_id"),
        ({"items": [{"title": t, "units": 1, "external_id": "x"} for t in "ab"]}, "items[1].external_id"),
        ({"items": [{"title": t, "units": 1_000_000_000} for t in "ab"]}, "items"),
        ({"items": [{"title": "S", "units": 1, "price_cents": 5}], "price_cents": 5}, "price_cents"),
        ({"items": SIZES, "units": 7, "price_cents": 9900}, "units"),
        ({"items": []}, "units"),
    ],
)
async def test_items_that_make_no_sale(node: Node, changes: dict[str, Any], field: str) -> None:
    body = {name: value for name, value in sale_body().items() if name not in ("units", "price_cents")} | changes
    answer = await node.http.post("/v1/sales", json=body, headers=OPERATOR)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text
    assert field in answer.text
    assert (await node.http.get("/v1/sales")).json()["sales"] == []


async def test_units_that_add_up_may_be_said(node: Node) -> None:
    body = sale_body(items=SIZES, units=6)
    assert (await node.http.post("/v1/sales", json=body, headers=OPERATOR)).status_code == 201


async def test_operators_add_units_to_an_item(node: Node) -> None:
    sale, ids = await announce(node)
    await node.buy(sale, "ann", item_id=ids["S"])
    path = f"/v1/sales/{sale['id']}"
    change = {"items": [{"item_id": ids["S"], "add_units": 4, "title": "Small", "external_id": None, "image": None}]}
    changed = (await node.http.patch(path, json=change, headers=OPERATOR)).json()
    assert changed["units"] == 10
    small = changed["items"][0]
    assert (small["title"], small["units"], small["external_id"], small["image"]) == ("Small", 5, None, None)
    assert small["price_cents"] == 9900, "as with every sale, the price stays"
    assert (await by_title(node, sale))["Small"]["available"] == 4
    assert (await node.buy(sale, "bob", item_id=ids["S"])).status_code == 202
    for body, status, says in (
        ({"items": [{"item_id": "0000000000000", "add_units": 1}]}, 422, "unknown item"),
        ({"items": [{"item_id": ids["S"], "price_cents": 1}]}, 422, "price_cents"),
        ({"items": [{"item_id": ids["S"], "add_units": 0}]}, 422, "add_units"),
        ({"items": [{"item_id": ids["S"]}, {"item_id": ids["S"]}]}, 422, "twice"),
        ({"items": [{"item_id": ids["S"], "external_id": "sku-m"}]}, 409, "same external_id"),
        ({"add_units": 1}, 409, "add units to one of them"),
    ):
        answer = await node.http.patch(path, json=body, headers=OPERATOR)
        assert (answer.status_code, says in answer.text) == (status, True), answer.text


async def test_custody_by_item_through_buying_cancelling_and_giving_back(node: Node, engine: Engine) -> None:
    sale, ids = await announce(node, lanes=3)
    order_id = (await node.buy(sale, "ann", item_id=ids["S"])).json()["order_id"]
    await node.buy(sale, "bob", quantity=2, item_id=ids["M"])
    queued = await by_title(node, sale)
    assert (queued["S"]["queued"], queued["M"]["queued"], queued["L"]["available"]) == (1, 2, 2)
    await node.work()
    await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    returning = await by_title(node, sale)
    assert (returning["S"]["returning"], returning["S"]["available"], returning["M"]["unpaid"]) == (1, 0, 2)
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    whole, parts = await custody(node, sale), await by_title(node, sale)
    assert (parts["S"]["available"], parts["M"]["available"]) == (1, 1)
    for count in ("total", "available", "queued", "unpaid", "paid", "returning", "sold", "orders"):
        assert sum(part[count] for part in parts.values()) == whole[count], count


async def test_an_empty_gate_is_rebuilt_by_item(node: Node, engine: Engine, redis_url: str) -> None:
    sale, ids = await announce(node, lanes=2)
    kept = (await node.buy(sale, "ann", key="k", item_id=ids["S"])).json()
    await node.buy(sale, "bob", item_id=ids["M"])
    await node.work()
    keeper = use_cases(engine).keeper
    await flush(redis_url)
    await rebuild(keeper)
    await node.refresh()
    parts = await by_title(node, sale)
    assert {title: part["available"] for title, part in parts.items()} == {"S": 0, "M": 2, "L": 2}
    assert (await node.buy(sale, "ann", key="k", item_id=ids["S"])).json()["order_id"] == kept["order_id"]
    assert (await node.buy(sale, "cid", item_id=ids["S"])).json()["code"] == "sold_out"


@pytest.mark.parametrize("lost", ["items", "available:", "released:"])
async def test_lost_counts_of_items_are_found_and_mended(node: Node, engine: Engine, redis_url: str, lost: str) -> None:
    sale, ids = await announce(node)
    await node.buy(sale, "ann", item_id=ids["S"])
    await node.work()
    (known,) = [each for each in await engine.ledger.sales() if each.round.id == int(sale["round"])]
    client: Any = connect(redis_url)
    field = f"{lost}{known.items[0].id}" if lost.endswith(":") else lost
    assert await client.hdel(keys.round_(known.round.ref), field) == 1
    await client.aclose()
    await rebuild(use_cases(engine).keeper)
    parts = await by_title(node, sale)
    assert {title: part["available"] for title, part in parts.items()} == {"S": 0, "M": 3, "L": 2}


async def test_a_sold_out_item_is_refused_without_the_gate(node: Node, engine: Engine) -> None:
    """It is refused until a unit of it comes back. Its winner is still sent there, and other items are sold all the
    time."""
    sale, ids = await announce(node)
    won = (await node.buy(sale, "ann", key="k", item_id=ids["S"])).json()
    asked: list[Any] = []
    real = engine.gate.admit

    async def counting(ref: Any, claims: Any) -> Any:
        asked.extend(claim.user for claim in claims)
        return await real(ref, claims)

    engine.gate.admit = counting  # type: ignore[method-assign]
    flags = node.api.context.desk.sold_out
    await node.refresh()
    assert (await node.buy(sale, "bob", item_id=ids["S"])).json()["code"] == "sold_out"
    await _until(lambda: len(flags.standing) == 1)
    await node.refresh()
    asked.clear()
    assert (await node.buy(sale, "cid", item_id=ids["S"])).json()["item_id"] == ids["S"]
    assert asked == []
    assert (await node.buy(sale, "dan", item_id=ids["M"])).status_code == 202
    assert (await node.buy(sale, "ann", key="k", item_id=ids["S"])).json()["order_id"] == won["order_id"]
    assert asked == ["dan", "ann"]
    # A unit of another item comes back: the flag goes, and is raised again without reading all buyers once more.
    reads: list[Any] = []
    buyers = engine.gate.buyers

    def reading(ref: Any) -> Any:
        reads.append(ref)
        return buyers(ref)

    engine.gate.buyers = reading  # type: ignore[method-assign]
    await node.work()
    await _give_back(node, engine, "dan")
    await node.refresh()
    assert not flags.standing
    assert (await node.buy(sale, "eve", item_id=ids["S"])).json()["code"] == "sold_out"
    await _until(lambda: len(flags.standing) == 1)
    assert reads == []
    # And when it is of this one, it is sold.
    await _give_back(node, engine, "ann")
    await node.refresh()
    assert (await node.buy(sale, "fay", item_id=ids["S"])).status_code == 202
    assert (await node.buy(sale, "gus", item_id=ids["S"])).json()["code"] == "sold_out"
    await _until(lambda: len(flags.standing) == 1)
    assert len(reads) == 1, "there is a new winner"


async def _until(happened: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not happened():
            await asyncio.sleep(0.005)


async def _give_back(node: Node, engine: Engine, user: str) -> None:
    [order] = (await node.http.get("/v1/orders", headers=buyer(user))).json()["orders"]
    await node.http.post(f"/v1/orders/{order['order_id']}/cancel", headers=buyer(user))
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()


async def test_events_and_exports_name_the_item(node: Node, engine: Engine) -> None:
    sale, ids = await announce(node)
    await node.buy(sale, "ann", item_id=ids["M"])
    await node.work()
    await engine.ledger.feed.line_up()
    events = (await node.http.get("/v1/admin/events", headers=OPERATOR)).json()["events"]
    [created] = [event["data"] for event in events if event["type"] == "order.created"]
    told = {name: created[name] for name in ("item_id", "item_title", "item_external_id", "price_cents")}
    assert told == {"item_id": ids["M"], "item_title": "M", "item_external_id": "sku-m", "price_cents": 10900}
    [announced] = [event["data"] for event in events if event["type"] == "sale.created"]
    assert [(item["item_id"], item["units"]) for item in announced["items"]] == list(
        zip(ids.values(), (1, 3, 2), strict=True)
    )
    [line] = (await node.http.get("/v1/admin/orders.jsonl", headers=OPERATOR)).text.splitlines()
    assert json.loads(line)["item_external_id"] == "sku-m"
    [row] = csv.DictReader(io.StringIO((await node.http.get("/v1/admin/orders.csv", headers=OPERATOR)).text))
    assert (row["item_id"], row["item_title"], row["item_external_id"]) == (ids["M"], "M", "sku-m")


async def test_a_price_that_was_forgotten_is_asked_for(node: Node) -> None:
    """A shop cannot give a size away by mistake. If no size has a price, all are free."""
    priced, forgotten = {"title": "S", "units": 2, "price_cents": 9900}, {"title": "M", "units": 1}
    body = {"title": "Shirt", "begins_at": "2026-01-01T00:00:00Z", "ends_at": "2036-01-01T00:00:00Z"}
    refused = await node.http.post("/v1/sales", json=body | {"items": [priced, forgotten]}, headers=OPERATOR)
    assert refused.status_code == 422
    assert "items[1].price_cents" in refused.text
    made = await node.http.post("/v1/sales", json=body | {"items": [forgotten]}, headers=OPERATOR)
    assert (made.status_code, made.json()["items"][0]["price_cents"]) == (201, 0)


async def test_orders_of_an_item(node: Node) -> None:
    sale, ids = await announce(node)
    other, others = await announce(node)
    bought = {title: (await node.buy(sale, title, item_id=ids[title])).json()["order_id"] for title in "SML"}
    await node.buy(other, "ann", item_id=others["M"])
    await node.work()

    async def found(path: str = "/v1/admin/orders", **query: str) -> httpx2.Response:
        return await node.http.get(path, params=query, headers=OPERATOR)

    [one] = (await found(item_id=ids["M"])).json()["orders"]
    assert (one["order"]["order_id"], one["buyer"], one["user"]) == (bought["M"], "M", "M")
    [row] = csv.DictReader(io.StringIO((await found("/v1/admin/orders.csv", item_id=ids["S"])).text))
    assert (row["order_id"], row["item_id"]) == (bought["S"], ids["S"])
    lines = (await found("/v1/admin/orders.jsonl", item_id=ids["L"], sale_id=sale["id"])).text.splitlines()
    assert [json.loads(line)["order_id"] for line in lines] == [bought["L"]]
    assert (await found(item_id=ids["M"], state="paid")).json()["orders"] == []
    assert (await found(item_id=ids["M"], round=other["round"])).json()["orders"] == []
    refused = await found(item_id=others["M"], sale_id=sale["id"])
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "item_id")
    async with on_a_port(node.api) as url, AsyncClient(url, ADMIN_KEY) as shop:
        assert [order.order_id async for order in shop.all_orders(item_id=ids["M"])] == [bought["M"]]
        cancelled = await shop.cancel_order(bought["M"], reason="a mistake")
        assert (cancelled.buyer, cancelled.item_external_id) == ("M", "sku-m")
