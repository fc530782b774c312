"""The console asks for live figures over all processes, and for orders with their history."""

import asyncio
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, Served, buyer, make_node
from tests.api.test_failures import fail


async def live(node: Node) -> dict[str, Any]:
    response = await node.http.get("/v1/admin/live", headers=OPERATOR)
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


async def found(node: Node, **query: Any) -> list[dict[str, Any]]:
    response = await node.http.get("/v1/admin/orders", params=query, headers=OPERATOR)
    assert response.status_code == 200, response.text
    orders: list[dict[str, Any]] = response.json()["orders"]
    return orders


@pytest.mark.parametrize("path", ["/v1/admin/live", "/v1/admin/orders?user=ann"])
async def test_only_operators_may_look(node: Node, path: str) -> None:
    assert (await node.http.get(path)).status_code == 401
    assert (await node.http.get(path, headers=buyer("ann"))).status_code == 403
    assert (await node.http.get(path, headers=OPERATOR)).headers["cache-control"] == "no-store"


async def test_accepted_persisted_backlog_and_lag(node: Node) -> None:
    sale = await node.create(units=5, limit_per_buyer=2)
    await node.buy(sale, "ann", quantity=2)
    await node.buy(sale, "bob")
    await asyncio.sleep(0.05)
    await node.refresh()
    (figures,) = (await live(node))["sales"]
    assert (figures["sale_id"], figures["available"]) == (sale["id"], 2)
    assert (figures["accepted_units"], figures["persisted_units"], figures["backlog"]) == (3, 0, 2)
    assert figures["lag_ms"] >= 40
    await node.work()
    (figures,) = (await live(node))["sales"]
    assert (figures["persisted_units"], figures["backlog"], figures["lag_ms"]) == (3, 0, 0)


async def test_figures_add_up_over_all_processes_and_go_with_them(
    served: Served, settings: Settings, engine: Engine
) -> None:
    sale = await served.node.create(units=1)
    other = await make_node(settings, engine)
    async with other.api.running():
        await served.node.buy(sale, "ann")
        for number in range(3):
            await served.node.buy(sale, f"one{number}")
        for number in range(4):
            await other.buy(sale, f"two{number}")
        await asyncio.wait_for(_until_refused(served.node, 7), 30)
        answer = await live(served.node)
        assert [node["role"] for node in answer["nodes"]] == ["api", "api"]
        assert sorted(node["claims"] for node in answer["nodes"]) == [4, 4]
        assert {node["state"] for node in answer["nodes"]} == {"ok"}
        assert answer["answers"]["claims"] <= 8
    await other.http.aclose()
    answer = await live(served.node)
    assert len(answer["nodes"]) == 1, "who stops in good order is not missed"


async def _until_refused(node: Node, many: int) -> None:
    while True:
        (figures,) = (await live(node))["sales"]
        if figures["refused"] == {"sold_out": many}:
            return
        await asyncio.sleep(0.05)


async def test_a_round_that_the_gate_has_lost_has_no_figures(node: Node, redis_url: str) -> None:
    await node.create(units=5)
    client: Any = connect(redis_url)
    await client.flushall()
    await client.aclose()
    await node.refresh()
    (figures,) = (await live(node))["sales"]
    assert (figures["available"], figures["accepted_units"]) == (None, None)


async def test_an_order_with_everything_that_happened_to_it(node: Node, engine: Engine) -> None:
    sale = await node.create(units=5)
    order_id = (await node.buy(sale, "ann")).json()["order_id"]
    (queued,) = await found(node, user="ann")
    assert (queued["order"]["state"], queued["events"]) == ("queued", [])
    assert await found(node, order_id=order_id) == [], "only its buyer's name leads to a queued order"
    await node.work()
    await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    for query in ({"order_id": order_id}, {"user": "ann"}, {"sale_id": sale["id"]}):
        (one,) = await found(node, **query)
        assert one["user"] == "ann"
        assert one["order"]["order_id"] == order_id
        assert [(event["before"], event["state"]) for event in one["events"]] == [
            ("queued", "unpaid"),
            ("unpaid", "cancelled"),
        ]
        assert all(event["cause"] and event["at"] for event in one["events"])


async def test_what_was_never_written_is_found_by_its_letter(node: Node, engine: Engine, redis_url: str) -> None:
    sale = await node.create(units=5)
    order_id = (await node.buy(sale, "ann")).json()["order_id"]
    (known,) = await engine.ledger.sales()
    client: Any = connect(redis_url)
    stream = keys.orders(known.round.lane)
    ((entry, fields),) = await client.xrange(stream)
    await client.xdel(stream, entry)
    await client.xadd(stream, {"order": fields[b"order"].replace(b'"epoch":1', b'"epoch":9')})
    await client.aclose()
    await node.work()
    await fail(node, engine)
    (one,) = await found(node, order_id=order_id)
    assert one["letters"][0]["state"] == "dead"
    assert one["order"] is None or one["order"]["state"] == "failed"


@pytest.mark.parametrize(
    "query",
    [
        "sale_id=NOTHING",
        "user=ann&order_id=X",
        "user=ann&state=paid",
        "user=ann&limit=0",
        "user=ann&limit=101",
        "user=ann&limit=1e9",
        "user=ann&limit=٣",
    ],
)
async def test_questions_that_make_no_sense(node: Node, query: str) -> None:
    response = await node.http.get(f"/v1/admin/orders?{query}", headers=OPERATOR)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize("query", ["order_id=nonsense", "order_id=0000000000000", "user=a%00b", "user=%F0%9F%98%80"])
async def test_what_does_not_exist_is_an_empty_list(node: Node, query: str) -> None:
    response = await node.http.get(f"/v1/admin/orders?{query}", headers=OPERATOR)
    assert (response.status_code, response.json()) == (200, {"orders": [], "next": None})
