"""Orders at hand: listed page by page, and exported whole."""

import asyncio
import csv
import io
import json
import re
from typing import Any

import pytest

from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine
from seckill.web.orders import order_export
from seckill.web.requests.parameters import MANY
from seckill.web.routes import ROUTES
from tests.api.conftest import OPERATOR, Node, buyer
from tests.backends.sql.filling import fill

EXPORTS = ("/v1/admin/orders.csv", "/v1/admin/orders.jsonl")


async def get(node: Node, path: str = "/v1/admin/orders", **query: Any) -> Any:
    response = await node.http.get(path, params=query, headers=OPERATOR)
    assert response.status_code == 200, response.text
    return response


async def every_page(node: Node, **query: Any) -> list[str]:
    found: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = (await get(node, **query, **after)).json()
        found += [each["order"]["order_id"] for each in page["orders"]]
        if page["next"] is None:
            return found
        assert page["next"] == found[-1]
        after = {"after": page["next"]}


async def sell(node: Node, sale: dict[str, Any], *users: str) -> list[str]:
    bought = [str((await node.buy(sale, user)).json()["order_id"]) for user in users]
    await node.work()
    return bought


async def test_all_orders_page_by_page(node: Node) -> None:
    sale, other = await node.create(units=9), await node.create(units=9)
    bought = await sell(node, sale, "ann", "bob", "eve", "joe", "max")
    also = await sell(node, other, "ann")
    assert sorted(await every_page(node)) == sorted([*bought, *also])
    for limit in (1, 2, 5, 100):
        assert await every_page(node, sale_id=sale["id"], limit=limit) == bought[::-1]
    assert await every_page(node, sale_id=sale["id"], round=sale["round"]) == bought[::-1]
    assert await every_page(node, sale_id=other["id"], round=sale["round"]) == []
    assert sorted(await every_page(node, buyer="ann")) == sorted([bought[0], also[0]])
    await node.http.post(f"/v1/orders/{bought[1]}/cancel", headers=buyer("bob"))
    assert await every_page(node, state="cancelled") == [bought[1]]
    assert await every_page(node, state="unpaid", sale_id=sale["id"]) == [bought[n] for n in (4, 3, 2, 0)]
    created_at = (await get(node, order_id=bought[0])).json()["orders"][0]["order"]["created_at"]
    assert bought[0] in await every_page(node, since=created_at)
    assert bought[0] not in await every_page(node, until=created_at)
    (one,) = (await get(node, state="cancelled")).json()["orders"]
    assert [event["state"] for event in one["events"]] == ["unpaid", "cancelled"], "with their past"


@pytest.mark.parametrize("path", ["/v1/admin/orders", *EXPORTS])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"sate": "paid"}, "sate"),
        ({"state": "payed"}, "state"),
        ({"state": "queued"}, "state"),
        ({"sale_id": "NOTHING"}, "sale_id"),
        ({"round": "x"}, "round"),
        ({"item_id": "NOTHING"}, "item_id"),
        ({"item_id": ""}, "item_id"),
        ({"buyer": ""}, "buyer"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-11-20T10:00:00"}, "until"),
        ({"after": "x"}, "after"),
        ({"limit": "0"}, "limit"),
    ],
)
async def test_what_is_wrong_is_named(node: Node, path: str, query: dict[str, str], field: str) -> None:
    response = await node.http.get(path, params=query, headers=OPERATOR)
    assert response.status_code == 422, response.text
    assert response.json()["errors"][0]["field"] == field


async def test_no_address_passes_over_a_parameter_that_it_does_not_have(node: Node) -> None:
    """A filter with a typing error would give everything; of two, one would not count."""
    strict = [route for route in ROUTES if route.who in ("buyer", "operator") and route.handler is not None]
    assert len(strict) > 30
    for route in strict:
        path = re.sub(r"\{\w+\}", "1", route.path)
        sender = OPERATOR if route.who == "operator" else buyer("ann")
        twice = {name: f"{name}=1&{name}=2" for name, _ in route.query if name not in MANY}
        for field, query in {"sate": "sate=paid", **twice}.items():
            response = await node.http.request(route.method, f"{path}?{query}", headers=sender)
            assert response.status_code == 422, (route.path, response.text)
            assert response.json()["errors"][0]["field"] == field


@pytest.mark.parametrize("path", EXPORTS)
async def test_only_operators_export(node: Node, path: str) -> None:
    assert (await node.http.get(path)).status_code == 401
    assert (await node.http.get(path, headers=buyer("ann"))).status_code == 403


async def test_exports_have_every_order_once(node: Node) -> None:
    sale = await node.create(units=9)
    bought = await sell(node, sale, "ann", "bob", "eve")
    answer = await get(node, "/v1/admin/orders.csv", sale_id=sale["id"])
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["order_id"], row["buyer"], row["state"]) for row in rows] == [
        (order_id, user, "unpaid") for order_id, user in zip(bought[::-1], ("eve", "bob", "ann"), strict=True)
    ]
    assert rows[0]["paid_at"] == ""
    assert not {"pay_url", "pay_qr"} & rows[0].keys(), "where to pay is for the buyer, from `pay`"
    lines = (await get(node, "/v1/admin/orders.jsonl", buyer="bob")).text.splitlines()
    (line,) = map(json.loads, lines)
    assert (line["order_id"], line["buyer"], line["price_cents"]) == (bought[1], "bob", 9900)
    assert (await get(node, "/v1/admin/orders.jsonl", state="paid")).text == ""
    assert len((await get(node, "/v1/admin/orders.csv", state="paid")).text.splitlines()) == 1, "the columns' names"


@pytest.mark.parametrize("path", EXPORTS)
async def test_an_export_in_portions_is_the_same(node: Node, path: str) -> None:
    sale = await node.create(units=9)
    await sell(node, sale, "ann", "bob", "eve", "joe", "max")
    whole, parts = (await get(node, path)).text, ""
    after: dict[str, str | None] = {}
    for _ in range(3):
        answer = await get(node, path, limit=2, **after)
        parts += answer.text
        after = {"after": answer.headers.get("seckill-next")}
    assert parts == whole
    assert after == {"after": None}


@pytest.mark.parametrize("user", ["=1+1", "+86138", "-2", "@sum", "＝1+1", "＠sum"])
async def test_no_cell_is_a_formula(user: str) -> None:
    assert order_export._cell(user) == f"'{user}"
    assert order_export._cell("ann=1") == "ann=1"


async def test_an_export_is_sent_while_it_is_read(node: Node, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many orders there are, one portion of them is in memory: the next is read when the one before is sent."""
    monkeypatch.setattr(order_export, "PORTION", 100)
    await node.create(units=5000)
    (known,) = await engine.ledger.sales()
    assert isinstance(engine.ledger, SqlLedger)
    await fill(engine.ledger, known.round, 1050)
    search = node.api.context.search
    happened: list[tuple[str, int]] = []
    page = type(search).page

    async def read(self: Any, *args: Any) -> Any:
        found = await page(self, *args)
        happened.append(("read", len(found)))
        return found

    monkeypatch.setattr(type(search), "page", read)

    request = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        return request.pop() if request else await asyncio.Event().wait()  # the client never hangs up

    async def send(part: Any) -> None:
        if part["type"] == "http.response.body" and part["body"]:
            happened.append(("sent", part["body"].count(b"\n")))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/admin/orders.jsonl",
        "raw_path": b"/v1/admin/orders.jsonl",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in OPERATOR.items()],
        "client": ("127.0.0.1", 1),
        "server": ("seckill", 80),
    }
    await node.api(scope, receive, send)
    assert happened == [*[("read", 100), ("sent", 100)] * 10, ("read", 50), ("sent", 50)]
