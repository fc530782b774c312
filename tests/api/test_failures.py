"""A poison entry among good ones, from the stream to the operator's desk."""

from typing import Any

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.orders.dead_letters import DeadLetterDesk
from seckill.engine.orders.releases import ReleaseDesk
from tests.api.conftest import OPERATOR, Node, buyer


async def fail(node: Node, engine: Engine) -> None:
    failures = DeadLetterDesk(engine.ledger, Alarm(""), (0, 0, 0))
    while await failures.retry_due():
        pass


async def test_a_poison_entry_that_the_gate_never_made(node: Node, engine: Engine, redis_url: str) -> None:
    """The good ones are done at once; the bad one ends as failed, and its buyer is told (F13, F36)."""
    sale = await node.create(units=100, limit_per_buyer=2)
    responses = [await node.buy(sale, f"u{i}") for i in range(20)]
    orders = [response.json()["order_id"] for response in responses]
    client: Any = connect(redis_url)
    (found,) = await engine.ledger.sales()
    # Another row has the slot of u10's order, so that the ledger must refuse it.
    stream = keys.orders(found.round.lane)
    entries = await client.xrange(stream)
    await client.xadd(stream, {"order": "{garbage"})
    poison = entries[10][1][b"order"]
    await client.xadd(stream, {"order": poison.replace(b'"counter":11', b'"counter":9999').decode()})
    await node.work()
    for order_id, user in zip(orders, range(20), strict=True):
        shown = await node.http.get(f"/v1/orders/{order_id}", headers=buyer(f"u{user}"))
        assert shown.json()["state"] == "unpaid"
    assert await client.xlen(stream) == 0, "nothing is stuck in the stream"
    await fail(node, engine)
    dead = (await node.http.get("/v1/admin/dead", headers=OPERATOR)).json()["dead"]
    assert sorted(letter["order_id"] is None for letter in dead) == [False, True]
    (failed,) = [letter for letter in dead if letter["order_id"]]
    told = await node.http.get(f"/v1/orders/{failed['order_id']}", headers=buyer("u10"))
    assert told.json()["state"] == "failed"
    await ReleaseDesk(engine.gate, engine.transport, engine.ledger).pass_on()
    view = await engine.gate.inspect(found.round.ref)
    assert view is not None
    assert view.available == 80, "the gate knew no such order, so nothing was given back"
    await client.aclose()


async def test_the_unit_of_a_failed_order_comes_back(node: Node, engine: Engine, redis_url: str) -> None:
    """Cut the ledger's stock, so that it must refuse what the gate admitted (F15)."""
    sale = await node.create(units=2)
    first, second = [(await node.buy(sale, user)).json()["order_id"] for user in ("ann", "bob")]
    client: Any = connect(redis_url)
    (found,) = await engine.ledger.sales()
    stream = keys.orders(found.round.lane)
    ((entry_id, fields),) = [e for e in await client.xrange(stream) if b'"user":"bob"' in e[1][b"order"]]
    # Bob's entry claims an epoch that is not the round's: void.
    await client.xdel(stream, entry_id)
    await client.xadd(stream, {"order": fields[b"order"].replace(b'"epoch":1', b'"epoch":9').decode()})
    await node.work()
    await fail(node, engine)
    shown = await node.http.get(f"/v1/orders/{second}", headers=buyer("bob"))
    assert shown.json()["state"] == "failed"
    release_desk = ReleaseDesk(engine.gate, engine.transport, engine.ledger)
    assert await release_desk.pass_on() == 1
    await node.refresh()
    assert (await node.buy(sale, "cid")).status_code == 202, "sold again"
    assert (await node.buy(sale, "dan")).json()["code"] == "sold_out"
    custody: dict[str, Any] = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    assert (custody["available"], custody["unpaid"], custody["queued"], custody["returning"]) == (0, 1, 1, 0)
    assert (await node.http.get(f"/v1/orders/{first}", headers=buyer("ann"))).json()["state"] == "unpaid"
    await client.aclose()


async def test_the_operators_desk(node: Node, engine: Engine, redis_url: str) -> None:
    sale = await node.create()
    (found,) = await engine.ledger.sales()
    client: Any = connect(redis_url)
    await client.xadd(keys.orders(found.round.lane), {"order": "{garbage"})
    await client.aclose()
    await node.work()
    assert (await node.http.get("/v1/admin/dead", headers=OPERATOR)).json()["dead"] == [], "still being tried"
    await fail(node, engine)
    ((letter),) = (await node.http.get("/v1/admin/dead", headers=OPERATOR)).json()["dead"]
    url = f"/v1/admin/dead/{letter['id']}"
    assert (await node.http.get(url, headers=OPERATOR)).json() == letter
    assert len(letter["history"]) == 4
    refused = await node.http.post(f"{url}/replay", headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_possible")
    assert (await node.http.post(f"{url}/discard", headers=OPERATOR)).json()["state"] == "discarded"
    assert (await node.http.post(f"{url}/discard", headers=OPERATOR)).status_code == 409
    for path in ("/v1/admin/dead", url, f"{url}/replay"):
        method = "POST" if path.endswith("replay") else "GET"
        assert (await node.http.request(method, path)).status_code == 401
        assert (await node.http.request(method, path, headers=buyer("ann"))).status_code == 403
    for nonsense in ("0", "x", "9" * 30, "-1"):
        assert (await node.http.get(f"/v1/admin/dead/{nonsense}", headers=OPERATOR)).status_code == 404
    assert sale
