"""Pay and cancel over HTTP, units that come back, and where every unit is."""

import asyncio
from typing import Any

import httpx2
import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine
from seckill.engine.orders.releases import ReleaseDesk
from tests.api.conftest import OPERATOR, Node, buyer, listening, until_watched
from tests.patience import PATIENCE_S


@pytest.fixture
def release_desk(engine: Engine) -> ReleaseDesk:
    return ReleaseDesk(engine.gate, engine.transport, engine.ledger)


async def order(node: Node, sale: dict[str, Any], user: str = "ann", **body: Any) -> str:
    made = (await node.buy(sale, user, **body)).json()
    await node.work()
    return str(made["order_id"])


async def act(node: Node, order_id: str, verb: str, user: str = "ann") -> httpx2.Response:
    return await node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer(user))


async def custody(node: Node, sale: dict[str, Any]) -> dict[str, Any]:
    response = await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    where = ("available", "queued", "unpaid", "paid", "returning", "dead")
    assert found["total"] == sum(found[place] for place in where)
    assert all(found[place] >= 0 for place in where)
    return found


async def test_paying(node: Node) -> None:
    sale = await node.create()
    order_id = await order(node, sale)
    paid = await act(node, order_id, "pay")
    assert (paid.status_code, paid.json()["state"]) == (200, "paid")
    assert paid.json()["paid_at"]
    assert (await act(node, order_id, "pay")).status_code == 200, "repeating is harmless"
    late = await act(node, order_id, "cancel")
    assert (late.status_code, late.json()["code"], late.json()["state"]) == (409, "order_over", "paid")


async def test_cancelling_puts_the_unit_on_sale_again(node: Node, release_desk: ReleaseDesk) -> None:
    sale = await node.create(units=1)
    order_id = await order(node, sale)
    assert (await node.buy(sale, "bob")).json()["code"] == "sold_out"
    ended = await act(node, order_id, "cancel")
    assert (ended.status_code, ended.json()["state"]) == (200, "cancelled")
    assert (await custody(node, sale))["returning"] == 1
    assert await release_desk.pass_on() == 1
    assert await release_desk.pass_on() == 0
    await node.refresh()
    assert (await node.buy(sale, "bob")).status_code == 202
    late = await act(node, order_id, "pay")
    assert (late.status_code, late.json()["state"]) == (409, "cancelled")


async def test_a_key_finds_its_order_after_it_was_cancelled(node: Node, release_desk: ReleaseDesk) -> None:
    sale = await node.create(units=1, cool_down_s=0)
    first = (await node.buy(sale, "ann", key="k")).json()
    await node.work()
    await act(node, first["order_id"], "cancel")
    await release_desk.pass_on()
    again = await node.buy(sale, "ann", key="k")
    assert (again.status_code, again.json()) == (202, first | {"state": "cancelled"})
    assert (await node.buy(sale, "ann", key="another")).status_code == 202


async def test_expiry(node: Node, release_desk: ReleaseDesk) -> None:
    sale = await node.create(units=1, pay_within_s=1)
    order_id = await order(node, sale)
    assert (await custody(node, sale))["next_return_at"]
    async with asyncio.timeout(PATIENCE_S):
        while not await release_desk.expire():
            await asyncio.sleep(0.05)
    assert (await act(node, order_id, "pay")).json()["state"] == "expired"
    await release_desk.pass_on()
    await node.refresh()
    assert (await node.buy(sale, "bob")).status_code == 202


async def test_waiting_buyers_are_told(node: Node, release_desk: ReleaseDesk) -> None:
    sale = await node.create()
    order_id = await order(node, sale)
    async with listening(node):
        url = f"/v1/orders/{order_id}?wait=20&seen=unpaid"
        waiting = asyncio.create_task(node.http.get(url, headers=buyer("ann")))
        await until_watched(node)
        await act(node, order_id, "cancel")
        await release_desk.pass_on()
        assert (await waiting).json()["state"] == "cancelled"


async def test_nobody_touches_what_is_not_theirs(node: Node) -> None:
    sale = await node.create()
    order_id = await order(node, sale)
    for verb in ("pay", "cancel"):
        theirs = await act(node, order_id, verb, "eve")
        nobodys = await act(node, "0123456789ABC", verb, "eve")
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)
    shown = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))).json()
    assert shown["state"] == "unpaid"


async def test_a_queued_order_can_wait_a_moment(node: Node) -> None:
    sale = await node.create()
    made = (await node.buy(sale, "ann")).json()
    refused = await act(node, made["order_id"], "pay")
    assert (refused.status_code, refused.json()["code"]) == (409, "still_queued")
    await node.work()
    assert (await act(node, made["order_id"], "pay")).status_code == 200


async def test_where_every_unit_is(node: Node, release_desk: ReleaseDesk) -> None:
    sale = await node.create(units=10, limit_per_buyer=3)
    bought = [await order(node, sale, f"u{i}", quantity=2) for i in range(3)]
    await act(node, bought[0], "pay", "u0")
    await act(node, bought[1], "cancel", "u1")
    await node.buy(sale, "late")
    found = await custody(node, sale)
    assert {name: found[name] for name in ("available", "queued", "unpaid", "paid", "returning", "sold")} == {
        "available": 3,
        "queued": 1,
        "unpaid": 2,
        "paid": 2,
        "returning": 2,
        "sold": 4,
    }
    await release_desk.pass_on()
    await node.work()
    found = await custody(node, sale)
    assert (found["available"], found["returning"], found["unpaid"]) == (5, 0, 3)
    assert (await node.http.get(f"/v1/sales/{sale['id']}/custody")).status_code == 401
    other = await node.http.get(f"/v1/sales/{sale['id']}/custody?round=99", headers=OPERATOR)
    assert (other.status_code, other.json()["detail"]) == (404, "This sale has no round 99.")


async def test_a_round_that_the_gate_lost_holds_up_no_other(
    node: Node, release_desk: ReleaseDesk, redis_url: str
) -> None:
    lost, kept = [await node.create(), await node.create()]
    orders = {sale["id"]: await order(node, sale) for sale in (lost, kept)}
    for order_id in orders.values():
        await act(node, order_id, "cancel")
    sales = {sale.round.id: sale for sale in await node.engine.ledger.sales()}

    client = connect(redis_url)
    await client.delete(keys.round_(sales[int(lost["round"])].round.ref))
    await client.aclose()
    assert await release_desk.pass_on() == 1
    assert len(await node.engine.ledger.outbox(10)) == 1, "it waits for its round"
