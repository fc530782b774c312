"""`POST /v1/sales/{id}/orders`, answer by answer."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine, open_engine
from seckill.loops import Stop
from seckill.settings import Settings
from seckill.web.connections.listening_socket import bind
from seckill.web.server import ApiServer, serve_until
from tests.api.conftest import OPERATOR, Node, buyer, make_node, token
from tests.patience import PATIENCE_S


@pytest.fixture(params=["framework", "short way"])
async def node(request: pytest.FixtureRequest, settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    """A node as an ASGI application, and one behind the protocol that answers most claims by itself: both answer
    alike."""
    node = await make_node(settings, engine)
    if request.param == "framework":
        yield node
        await node.http.aclose()
        return
    await node.http.aclose()
    listener, stop = bind("127.0.0.1", 0), Stop()
    serving = asyncio.create_task(serve_until(stop, ApiServer(node.api), listener, node.api))
    # Not even to read the certificates of the world, which takes as long as a test: no TLS is spoken.
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE_S, verify=False) as node.http:
        yield node
    stop.set()
    await serving


async def test_an_accepted_claim_is_queued_then_written(node: Node) -> None:
    """202 means queued; one id everywhere (F17, F19)."""
    sale = await node.create()
    response = await node.buy(sale, "ann")
    assert response.status_code == 202
    order = response.json()
    assert order == {
        "order_id": order["order_id"],
        "state": "queued",
        "sale_id": sale["id"],
        "round": sale["round"],
        "quantity": 1,
    }
    assert response.headers["location"] == f"/v1/orders/{order['order_id']}"
    url = response.headers["location"]
    assert (await node.http.get(url, headers=buyer("ann"))).json()["state"] == "queued"
    await node.work()
    shown = (await node.http.get(url, headers=buyer("ann"))).json()
    assert (shown["state"], shown["price_cents"], shown["order_id"]) == ("unpaid", 9900, order["order_id"])
    assert shown["pay_before"] > shown["created_at"]


async def test_a_free_order_needs_no_payment(node: Node) -> None:
    sale = await node.create(price_cents=0)
    order = (await node.buy(sale, "ann")).json()
    await node.work()
    shown = (await node.http.get(f"/v1/orders/{order['order_id']}", headers=buyer("ann"))).json()
    assert (shown["state"], shown["pay_before"]) == ("paid", None)


@pytest.mark.parametrize("quantity", [0, -1, 1.5, "1", True, 2**53, [1], None, {}, 1001])
async def test_a_bad_quantity_is_invalid(node: Node, quantity: Any) -> None:
    sale = await node.create(limit_per_buyer=1000, units=5000)
    response = await node.buy(sale, "ann", quantity=quantity)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    assert response.json()["errors"][0]["field"] == "quantity"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 400),
        (b"{", 400),
        (b'{"quantity":NaN}', 400),
        (b"\xff\xfe", 400),
        (b"[" * 20_000, 400),
        (b'{"quantity":' + b"[" * 20_000, 400),
        (b'{"a":"' + b"x" * 70_000 + b'"}', 413),
        (b'{"quantity":1,"user_id":"eve"}', 422),
        (b'{"quantity":1,"price_cents":1}', 422),
        (b'{"quantity":1e999}', 422),
        (b"[]", 422),
        (b"3", 422),
        (b"null", 422),
        (b"", 202),
        (b"{}", 202),
        (b'{"quantity":1}', 202),
    ],
)
async def test_bodies(node: Node, body: bytes, status: int) -> None:
    sale = await node.create()
    response = await node.http.post(f"/v1/sales/{sale['id']}/orders", content=body, headers=buyer("ann"))
    assert response.status_code in ((status,) if status != 422 else (400, 422)), response.text
    if status != 202:
        assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "sale_id", ["a:b", "{1}", "%0d%0aX", "x" * 10_000, "*", "..%2f..", "1", "%00", "0000000000000", "ZZZZZZZZZZZZZ"]
)
async def test_odd_sale_ids_are_unknown_and_make_no_key(node: Node, redis_url: str, sale_id: str) -> None:
    client = connect(redis_url)
    before = await client.keys("*")
    response = await node.http.post(f"/v1/sales/{sale_id}/orders", headers=buyer("ann"))
    assert response.status_code in (404, 422)
    assert sorted(await client.keys("*")) == sorted(before)
    await client.aclose()


async def test_the_order_of_refusals(node: Node) -> None:
    """401 before 404 before 422 before anything of the gate's."""
    sale = await node.create(units=1)
    orders = f"/v1/sales/{sale['id']}/orders"
    await node.buy(sale, "ann")
    bad = {"quantity": 0}
    assert (await node.http.post("/v1/sales/nothing/orders", json=bad)).json()["code"] == "unauthenticated"
    unknown = await node.http.post("/v1/sales/nothing/orders", json=bad, headers=buyer("bob"))
    assert unknown.json()["code"] == "unknown_sale"
    assert (await node.http.post(orders, json=bad, headers=buyer("bob"))).json()["code"] == "invalid"
    assert (await node.http.post(orders, json={}, headers=buyer("bob"))).json()["code"] == "sold_out"
    assert (await node.http.post(orders, json={}, headers=buyer("ann"))).json()["code"] == "limit_reached"


async def test_without_a_token(node: Node) -> None:
    sale = await node.create()
    url = f"/v1/sales/{sale['id']}/orders"
    for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Bearer x.y.z"}):
        response = await node.http.post(url, headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")
    assert (await node.http.post(f"{url}?token={token('ann')}")).status_code == 401


async def test_the_same_key_gives_the_same_order(node: Node, settings: Settings, engine: Engine) -> None:
    """It does so after the answer was lost, after the sell-out, with its state by then, and on another node (F8,
    F9)."""
    sale = await node.create(units=1)
    first = await node.buy(sale, "ann", key="k-1")
    assert (await node.buy(sale, "bob")).json()["code"] == "sold_out"
    again = await node.buy(sale, "ann", key="k-1")
    assert (again.status_code, again.json()) == (202, first.json())
    await node.work()
    other = await make_node(settings, engine)
    for where in (node, other):
        repeated = await where.buy(sale, "ann", key="k-1")
        assert repeated.status_code == 202
        assert repeated.json() == first.json() | {"state": "unpaid"}
        without = await where.buy(sale, "ann")
        assert (without.status_code, without.json()["code"]) == (409, "limit_reached")
        assert without.json()["order_ids"] == [first.json()["order_id"]]
    await other.http.aclose()


async def test_a_key_with_another_body_is_refused(node: Node) -> None:
    sale = await node.create(limit_per_buyer=2)
    assert (await node.buy(sale, "ann", key="k")).status_code == 202
    response = await node.buy(sale, "ann", key="k", quantity=2)
    assert (response.status_code, response.json()["code"]) == (422, "key_reused")


async def test_a_refusal_is_not_remembered(node: Node) -> None:
    sale = await node.create(units=1)
    await node.buy(sale, "ann")
    assert (await node.buy(sale, "bob", key="k")).json()["code"] == "sold_out"
    await node.http.patch(f"/v1/sales/{sale['id']}", json={"add_units": 1}, headers=OPERATOR)
    await node.refresh()
    assert (await node.buy(sale, "bob", key="k")).status_code == 202


@pytest.mark.parametrize("key", ["x" * 256, "schlüssel", "tab\there"])
async def test_bad_keys(node: Node, key: str) -> None:
    sale = await node.create()
    headers = buyer("ann")
    raw = [*headers.items(), (b"Idempotency-Key", key.encode())]
    response = await node.http.post(f"/v1/sales/{sale['id']}/orders", headers=raw)  # type: ignore[arg-type]
    assert response.status_code == 422


async def test_fifty_presses_of_one_buyer_are_one_order(node: Node) -> None:
    sale = await node.create(units=100)
    responses = await asyncio.gather(*(node.buy(sale, "ann", key="same") for _ in range(50)))
    assert {response.status_code for response in responses} == {202}
    assert len({response.json()["order_id"] for response in responses}) == 1
    view = await node.engine.gate.inspect((await node.engine.ledger.sales())[0].round.ref)
    assert view is not None
    assert view.admitted == 1


async def test_after_the_sell_out_losers_cost_no_call_and_winners_find_their_order(node: Node) -> None:
    sale = await node.create(units=2)
    won = {user: (await node.buy(sale, user, key="k")).json() for user in ("ann", "bob")}
    assert (await node.buy(sale, "loser-0")).json()["code"] == "sold_out"
    round_id = int(sale["round"])
    while not node.api.context.desk.sold_out.is_raised(round_id):
        await asyncio.sleep(0)
    await node.refresh()
    asked: list[Any] = []
    gate = node.engine.gate
    original = gate.admit

    async def counting(ref: Any, claims: Any) -> Any:
        asked.extend(claims)
        return await original(ref, claims)

    gate.admit = counting  # type: ignore[method-assign]
    for i in range(200):
        if i % 10 == 0:
            await node.refresh()  # what is known by heart counts for a second only
        response = await node.buy(sale, f"stranger-{i}")
        assert (response.status_code, response.json()["code"]) == (409, "sold_out")
    assert len(asked) < 10, "only those whom the filter takes for winners go to the gate"
    for user, order in won.items():
        assert (await node.buy(sale, user, key="k")).json()["order_id"] == order["order_id"]
        assert (await node.buy(sale, user)).json()["order_ids"] == [order["order_id"]]
    await node.http.patch(f"/v1/sales/{sale['id']}", json={"add_units": 1}, headers=OPERATOR)
    await node.refresh()
    assert not node.api.context.desk.sold_out.is_raised(round_id)
    assert (await node.buy(sale, "loser-0")).status_code == 202
    gate.admit = original  # type: ignore[method-assign]


async def test_a_flag_of_an_older_version_is_never_raised(node: Node) -> None:
    """The reading is overtaken by units that come back (F46)."""
    sale = await node.create(units=1)
    await node.buy(sale, "ann")
    flags = node.api.context.desk.sold_out
    ref = (await node.engine.ledger.sales())[0].round.ref
    view = await node.engine.gate.inspect(ref)
    assert view is not None
    await node.http.patch(f"/v1/sales/{sale['id']}", json={"add_units": 1}, headers=OPERATOR)
    flags._raising[ref.id] = asyncio.create_task(flags._raise(ref, view.version))
    await flags._raising[ref.id]
    assert not flags.is_raised(ref.id)


async def test_a_gate_that_forgot_everything_is_not_sold_out(node: Node, redis_url: str) -> None:
    """FLUSHALL in the middle of a sale: 503, never 409, and nothing is sold again (F3)."""
    sale = await node.create(units=5)
    assert (await node.buy(sale, "ann")).status_code == 202
    await node.work()
    client = connect(redis_url)
    await client.flushall()
    for _ in range(3):
        response = await node.buy(sale, "bob")
        assert (response.status_code, response.json()["code"]) == (503, "not_ready")
        assert response.headers["retry-after"]
        await node.refresh()
    for round_ in await node.engine.ledger.rounds_to_sync():
        pytest.fail(f"round {round_.id} would be filled again")
    assert await client.exists(keys.round_((await node.engine.ledger.sales())[0].round.ref)) == 0
    await client.aclose()


async def test_the_backlog_cap(node: Node, settings: Settings, redis_url: str) -> None:
    """Refused before anything is deducted; goes on when the worker is back (F12)."""

    async with open_engine(replace(settings, backlog_max=2)) as engine:
        tight = await make_node(settings, engine)
        sale = await tight.create(units=10)
        codes = [(await tight.buy(sale, f"u{i}")).status_code for i in range(4)]
        assert codes == [202, 202, 503, 503]
        refused = await tight.buy(sale, "u9")
        assert (refused.json()["code"], refused.headers["retry-after"]) == ("overloaded", "1")
        view = await engine.gate.inspect((await engine.ledger.sales())[0].round.ref)
        assert view is not None
        assert view.available == 8
        await tight.work()
        assert (await tight.buy(sale, "u9")).status_code == 202
        await tight.http.aclose()


async def a_second_after(second: int) -> None:
    while int(time.monotonic()) == second:
        await asyncio.sleep(0.01)


async def test_a_buyer_who_hammers_is_slowed_down_and_nobody_else(settings: Settings, engine: Engine) -> None:
    """The limit comes after everything that can be wrong with the request, and before the gate is asked (S17)."""
    node = await make_node(replace(settings, claims_per_second=3), engine)
    sale = await node.create(units=100, limit_per_buyer=50)
    ended = 0
    while True:
        await a_second_after(ended)
        began = int(time.monotonic())
        answers = [await node.buy(sale, "eve") for _ in range(5)]
        invalid = await node.buy(sale, "eve", quantity=0)
        other = await node.buy(sale, "ann")
        ended = int(time.monotonic())
        if ended == began:  # otherwise the second changed in the middle of it
            break
    assert [answer.status_code for answer in answers] == [202, 202, 202, 429, 429]
    assert (answers[4].json()["code"], answers[4].headers["retry-after"]) == ("rate_limited", "1")
    assert (invalid.status_code, other.status_code) == (422, 202)
    await a_second_after(began)
    assert (await node.buy(sale, "eve")).status_code == 202
    await node.http.aclose()
