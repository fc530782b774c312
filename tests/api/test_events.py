"""The feed over HTTP."""

import asyncio
from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import feed
from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.event import EventType
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, Served, buyer
from tests.backends.sql.looking import write
from tests.patience import PATIENCE_S


async def read(node: Node, **query: Any) -> dict[str, Any]:
    response = await node.http.get("/v1/admin/events", params=query, headers=OPERATOR)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def act(node: Node, order_id: str, verb: str) -> None:
    response = await node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer("ann"))
    assert response.status_code == 200, response.text


async def test_a_sale_is_followed_from_its_announcement_to_a_paid_order(node: Node) -> None:
    sale = await node.create(title="Phone", external_id="P-1", metadata={"sku": "P"})
    claimed = (await node.buy(sale, "ann")).json()
    await node.work()
    await act(node, claimed["order_id"], "pay")
    found = await read(node)
    assert [event["type"] for event in found["events"]] == [
        "sale.created",
        "round.created",
        "round.opened",
        "order.created",
        "order.paid",
        "payment.received",
    ]
    cursors = [event["cursor"] for event in found["events"]]
    assert cursors == sorted(set(cursors))
    assert found["next"] == cursors[-1]
    announced, _, _, created, paid, received = found["events"]
    assert announced["data"]["sale_id"] == created["data"]["sale_id"] == sale["id"]
    assert announced["data"]["begins_at"] == sale["begins_at"]
    assert created["data"]["order_id"] == paid["data"]["order_id"] == received["data"]["pays"] == claimed["order_id"]
    assert (created["data"]["state"], created["data"]["paid_at"]) == ("unpaid", None)
    assert (paid["data"]["state"], paid["data"]["buyer"], paid["data"]["cause"]) == ("paid", "ann", "paid:sandbox")
    assert paid["data"]["paid_at"] == paid["at"]
    assert (announced["data"]["external_id"], announced["data"]["metadata"]) == ("P-1", {"sku": "P"})
    assert (received["data"]["amount_cents"], received["data"]["buyer"]) == (9900, "ann")
    assert await read(node, after=found["next"]) == {"events": [], "next": found["next"]}
    assert await read(node) == found, "replayed, it is the same"


async def test_filters(node: Node) -> None:
    one, other = await node.create(), await node.create()
    found = await read(node, sale_id=other["id"], types="sale.created,round.*")
    assert [event["type"] for event in found["events"]] == ["sale.created", "round.created", "round.opened"]
    assert {event["data"]["sale_id"] for event in found["events"]} == {other["id"]}
    assert len((await read(node, types="sale.*", limit=1))["events"]) == 1
    assert one["id"] != other["id"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"tpyes": "order.paid"}, "tpyes"),
        ({"types": "order.payed"}, "types"),
        ({"types": ""}, "types"),
        ({"types": "nothing.*"}, "types"),
        ({"after": "x"}, "after"),
        ({"after": "-1"}, "after"),
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"wait": "31"}, "wait"),
        ({"sale_id": "0000000000000"}, "sale_id"),
    ],
)
async def test_what_is_wrong_is_named(node: Node, query: dict[str, str], field: str) -> None:
    response = await node.http.get("/v1/admin/events", params=query, headers=OPERATOR)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field
    if "payed" in query.get("types", ""):
        assert "order.payed" in response.text
        assert all(each in response.text for each in EventType)


async def test_only_operators_read_it(node: Node) -> None:
    assert (await node.http.get("/v1/admin/events")).status_code == 401
    assert (await node.http.get("/v1/admin/events", headers=buyer("ann"))).status_code == 403


async def test_the_keeper_forgets_what_is_too_old_and_a_reader_of_it_is_told(
    node: Node, engine: Engine, settings: Settings
) -> None:
    await node.create()
    after = (await read(node))["next"]
    assert isinstance(engine.ledger, SqlLedger)
    await write(engine.ledger, update(feed).values(at_ms=1))
    assert await UseCases(engine, settings).event_feed.keep() == 3
    response = await node.http.get("/v1/admin/events", params={"after": 1}, headers=OPERATOR)
    assert response.status_code == 410
    problem = response.json()
    assert (problem["code"], problem["oldest"], problem["newest"]) == ("cursor_gone", after, after)
    assert f"after={after}" in problem["detail"]
    assert (await node.http.get("/v1/admin/events", params={"after": after + 1}, headers=OPERATOR)).status_code == 410
    sale = await node.create()
    found = await read(node, after=problem["oldest"], types="sale.created")
    assert [event["data"]["sale_id"] for event in found["events"]] == [sale["id"]]


async def test_a_reader_waits_until_something_happens(served: Served) -> None:
    node = served.node
    sale = await node.create()
    after = (await read(node))["next"]
    async with httpx2.AsyncClient(base_url=served.url, headers=OPERATOR, timeout=PATIENCE_S) as http:
        nothing = await http.get("/v1/admin/events", params={"after": after, "wait": "0.3"})
        assert nothing.json() == {"events": [], "next": after}
        query = {"after": after, "wait": 30, "types": "order.*"}
        waiting = asyncio.create_task(http.get("/v1/admin/events", params=query))
        await node.http.post(f"/v1/sales/{sale['id']}/pause", headers=OPERATOR)
        await node.http.post(f"/v1/sales/{sale['id']}/resume", headers=OPERATOR)
        await node.refresh()
        assert (await node.buy(sale, "ann")).status_code == 202
        await node.work()
        found = (await asyncio.wait_for(waiting, PATIENCE_S)).json()
        assert [event["type"] for event in found["events"]] == ["order.created"]
        waiting = asyncio.create_task(http.get("/v1/admin/events", params={"after": found["next"], "wait": 30}))
        async with asyncio.timeout(PATIENCE_S):
            while not served.server.server_state.tasks:
                await asyncio.sleep(0.01)
        served.stop.set()
        answer = await asyncio.wait_for(waiting, PATIENCE_S)
        assert answer.json()["events"] == [], "who waits does not hold up the end"
