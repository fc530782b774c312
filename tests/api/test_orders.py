"""A buyer's own orders over HTTP."""

import asyncio
import re
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from prometheus_client import REGISTRY

from seckill import telemetry
from seckill.bootstrap.engine import Engine
from seckill.errors import GateUnavailable, LedgerUnavailable
from seckill.settings import Settings
from seckill.web.pages.pages import EMBED_PATHS
from tests.api.conftest import OPERATOR, Node, buyer, listening, make_node, until_watched


async def test_another_buyers_order_is_as_unknown_as_none(node: Node) -> None:
    """Queued and written, the same status and the same body (S8)."""
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    url = f"/v1/orders/{order['order_id']}"
    for _ in range(2):
        theirs = await node.http.get(url, headers=buyer("eve"))
        nobodys = await node.http.get("/v1/orders/0123456789ABC", headers=buyer("eve"))
        assert (theirs.status_code, nobodys.status_code) == (404, 404)
        assert theirs.content == nobodys.content
        assert theirs.json()["detail"] == "There is no such order, or it is somebody else's."
        assert (await node.http.get(url)).status_code == 401
        await node.work()


async def test_an_order_in_a_sale_that_is_new_to_this_node_is_found(
    node: Node, settings: Settings, engine: Engine
) -> None:
    other = await make_node(settings, engine)
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    found = await other.http.get(f"/v1/orders/{order['order_id']}", headers=buyer("ann"))
    assert (found.status_code, found.json()["state"]) == (200, "queued")
    await other.http.aclose()


async def test_waiting_ends_when_the_order_is_written(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    async with listening(node):
        waiting = asyncio.create_task(node.http.get(f"/v1/orders/{order['order_id']}?wait=20", headers=buyer("ann")))
        await until_watched(node)
        await node.work()
        assert (await waiting).json()["state"] == "unpaid"


async def test_waiting_ends_also_when_the_announcement_was_missed(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    waiting = asyncio.create_task(node.http.get(f"/v1/orders/{order['order_id']}?wait=20", headers=buyer("ann")))
    await until_watched(node)
    await node.work()
    await asyncio.wait([waiting], timeout=0.2)
    assert not waiting.done(), "nobody has told it yet"
    assert await node.api.context.orders.look_up_waiting() == 1
    assert (await waiting).json()["state"] == "unpaid"


async def test_a_payment_in_the_sandbox_is_counted(node: Node) -> None:
    def counted(fate: str) -> float:
        return REGISTRY.get_sample_value("seckill_captures_total", {"fate": fate}) or 0.0

    before = counted("settled"), counted("repeated")
    order = (await node.buy(await node.create(), "ann")).json()
    await node.work()
    for _ in range(2):
        paid = await node.http.post(f"/v1/orders/{order['order_id']}/pay", headers=buyer("ann"))
        assert paid.json()["state"] == "paid"
    assert (counted("settled"), counted("repeated")) == (before[0] + 1, before[1] + 1)


async def test_waiting_has_an_end(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    url = f"/v1/orders/{order['order_id']}"
    assert (await node.http.get(f"{url}?wait=0.1", headers=buyer("ann"))).json()["state"] == "queued"
    await node.work()
    assert (await node.http.get(f"{url}?wait=20&seen=queued", headers=buyer("ann"))).json()["state"] == "unpaid"
    assert (await node.http.get(f"{url}?wait=0.1&seen=unpaid", headers=buyer("ann"))).json()["state"] == "unpaid"
    assert node.api.context.orders._watches == {}


@pytest.mark.parametrize("query", ["wait=-1", "wait=31", "wait=x", "wait=nan", "wait=1&seen=happy"])
async def test_bad_waits(node: Node, query: str) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    response = await node.http.get(f"/v1/orders/{order['order_id']}?{query}", headers=buyer("ann"))
    assert (response.status_code, response.json()["code"]) == (422, "invalid")


async def test_own_orders_newest_first_in_pages(node: Node) -> None:
    mine = []
    for i in range(5):
        sale = await node.create(title=f"Sale {i}")
        mine.append((await node.buy(sale, "ann")).json()["order_id"])
        await node.buy(sale, "bob")
        await node.work()
    found: list[str] = []
    cursor = ""
    while True:
        page: dict[str, Any] = (await node.http.get(f"/v1/orders?limit=2{cursor}", headers=buyer("ann"))).json()
        found += [order["order_id"] for order in page["orders"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert sorted(found) == sorted(mine)
    numbers = [node.engine.order_ids.decode(order_id) for order_id in found]
    assert numbers == sorted(numbers, key=lambda number: -(number or 0))


async def test_queued_orders_are_listed_too(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()
    assert [(o["order_id"], o["state"]) for o in listed["orders"]] == [(order["order_id"], "queued")]
    await node.work()
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()
    assert [(o["order_id"], o["state"]) for o in listed["orders"]] == [(order["order_id"], "unpaid")]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=x", "limit=99999999999", "limit=0100000000", f"limit=0001{'0' * 30}", "cursor=x"],
)
async def test_bad_pages(node: Node, query: str) -> None:
    response = await node.http.get(f"/v1/orders?{query}", headers=buyer("ann"))
    assert response.status_code == 422


async def test_health(node: Node, engine: Engine) -> None:
    assert (await node.http.get("/healthz")).json() == {"status": "ok"}
    assert (await node.http.get("/readyz")).json() == {"status": "ready", "gate": "ok", "ledger": "ok"}
    assert (await node.http.get("/version")).json()["name"] == "seckill"


async def test_figures_are_for_operators_unless_all_may_see_them(settings: Settings, engine: Engine) -> None:
    node = await make_node(settings, engine)
    assert (await node.http.get("/metrics")).status_code == 401
    assert (await node.http.get("/metrics", headers=buyer("ann"))).status_code == 403
    assert "seckill_admit_batch_size" in (await node.http.get("/metrics", headers=OPERATOR)).text
    await node.http.aclose()
    node = await make_node(replace(settings, metrics="public"), engine)
    assert "seckill_admit_batch_size" in (await node.http.get("/metrics")).text
    await node.http.aclose()


async def test_figures_are_put_together_once_a_second_however_many_ask(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def make(registry: object) -> bytes:
        made.append(registry)
        return b"figures"

    monkeypatch.setattr(telemetry, "generate_latest", make)
    monkeypatch.setattr(telemetry, "MADE_EVERY_S", 3600.0)
    answers = await asyncio.gather(*(node.http.get("/metrics", headers=OPERATOR) for _ in range(50)))
    assert {answer.content for answer in answers} == {b"figures"}
    # This includes requests that came before the orders were cached, and waited for each other.
    assert {node.api.context.exposition.now() for _ in range(50)} == {b"figures"}
    assert len(made) == 1


async def test_ready_without_the_ledger_but_not_without_the_gate(node: Node, engine: Engine) -> None:
    """Claims are accepted while the database is away, so a balancer must not take the node out."""
    engine.ledger.ping = AsyncMock(side_effect=LedgerUnavailable("away"))  # type: ignore[method-assign]
    response = await node.http.get("/readyz")
    assert (response.status_code, response.json()["ledger"]) == (200, "away")
    engine.gate.ping = AsyncMock(side_effect=GateUnavailable("away"))  # type: ignore[method-assign]
    assert (await node.http.get("/readyz")).status_code == 503


async def test_a_wrong_method_learns_the_right_ones(node: Node) -> None:
    for method, url, allowed in [
        ("PUT", "/v1/sales/x", {"GET", "HEAD", "PATCH"}),
        ("GET", "/v1/sales/x/orders", {"POST"}),
        ("DELETE", "/v1/sales", {"GET", "HEAD", "POST"}),
    ]:
        response = await node.http.request(method, url)
        assert response.status_code == 405
        assert set(response.headers["allow"].split(", ")) == allowed


async def test_an_order_written_between_two_readings_is_listed(node: Node, engine: Engine) -> None:
    """The ledger is read, then the order is committed, then the gate is read: it must be in one of them."""
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    original = engine.gate.holdings

    async def meanwhile(*args: Any) -> Any:
        await node.work()
        return await original(*args)

    engine.gate.holdings = meanwhile  # type: ignore[assignment,method-assign]
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert [(o["order_id"], o["state"]) for o in listed] == [(order["order_id"], "unpaid")]


async def test_queued_orders_of_a_closed_sale_are_listed(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    await node.http.post(f"/v1/sales/{sale['id']}/close", headers=OPERATOR)
    listed = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    assert [(o["order_id"], o["state"]) for o in listed] == [(order["order_id"], "queued")]


async def test_unknown_addresses_and_methods(node: Node) -> None:
    for method, url, status in [("GET", "/nothing", 404), ("DELETE", "/v1/sales", 405), ("GET", "/static/nope", 404)]:
        response = await node.http.request(method, url)
        assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")


async def test_the_docs_work_offline(node: Node) -> None:
    page = await node.http.get("/docs")
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]

    links = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert links
    for link in links:
        if link.startswith("data:"):
            continue
        assert not link.startswith(("http:", "https:", "//")), "nothing from other hosts"
        assert (await node.http.get(link)).status_code == 200


# For browsers, not for programs.
PAGES = {
    *("/", "/sales/{sale_id}", "/sales/{sale_id}/calendar.ics", "/orders", "/orders/{order_id}", "/console", "/docs"),
    *("/openapi.json", "/help", "/help/{path:path}", "/brand.css", "/assets/{version}/{path:path}", *EMBED_PATHS),
}


async def test_the_openapi_document_knows_every_route(node: Node) -> None:
    document = (await node.http.get("/openapi.json")).json()
    served = {
        (getattr(route, "path", "").replace(":path}", "}"), method)
        for route in node.api._rest.routes
        for method in getattr(route, "methods", None) or ()
        if method != "HEAD" and getattr(route, "path", "") not in PAGES
    }
    documented = {(path, verb.upper()) for path, verbs in document["paths"].items() for verb in verbs}
    assert documented == served


async def test_waiting_buyers_are_answered_when_the_node_stops(node: Node) -> None:
    sale = await node.create()
    order = (await node.buy(sale, "ann")).json()
    waiting = asyncio.create_task(node.http.get(f"/v1/orders/{order['order_id']}?wait=30", headers=buyer("ann")))
    await until_watched(node)
    node.api.context.orders.close()
    assert (await waiting).json()["state"] == "queued"


async def test_a_crowd_that_asks_for_orders_that_are_not_there_reads_the_catalogue_once_or_twice(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any buyer with a token can ask for any id, and most ids stand for a number that an order could have."""
    await node.create()
    ledger, reads = node.engine.ledger, 0
    real = ledger.sales

    async def counting(*args: Any, **facts: Any) -> Any:
        nonlocal reads
        reads += 1
        return await real(*args, **facts)

    monkeypatch.setattr(ledger, "sales", counting)
    number = node.engine.order_ids.decode((await node.buy(await node.create(), "ann")).json()["order_id"])
    assert number is not None
    ids = [node.engine.order_ids.encode(number + more) for more in range(1, 101)]
    answers = await asyncio.gather(*(node.http.get(f"/v1/orders/{each}", headers=buyer("eve")) for each in ids))
    assert {answer.status_code for answer in answers} == {404}
    assert reads < 10, "each of them read it"


async def test_an_order_is_found_though_the_node_hears_of_its_sale_while_it_looks(
    node: Node, settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await make_node(settings, engine)
    await node.refresh()
    await other.refresh()
    order_id = (await node.buy(await node.create(), "ann")).json()["order_id"]
    orders = other.api.context.orders
    held = orders._held

    async def hears(*args: Any) -> Any:
        found = await held(*args)
        await other.api.context.sale_cache.refresh_sales()  # as its loop does twice a second
        return found

    monkeypatch.setattr(orders, "_held", hears)
    found = await other.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
    assert (found.status_code, found.json().get("state")) == (200, "queued")
    await other.http.aclose()
