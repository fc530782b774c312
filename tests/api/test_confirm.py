"""Claims that are answered when the ledger has the order: `Prefer: wait=S`, and sales with `confirm: "ledger"`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from seckill.bootstrap.engine import Engine
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Confirm
from seckill.engine.orders import buyer_orders
from seckill.errors import LedgerUnavailable
from seckill.settings import Settings
from seckill.web.connections.waiting_seats import SEATS_PER_BUYER_MAX
from seckill.web.requests import prefer_header
from tests.api.conftest import OPERATOR, Node, Served, buyer, make_node, sale_body
from tests.api.repeating import make_keeper
from tests.api.test_live import count_queries
from tests.api.test_rebuild import flush, rebuild
from tests.api.test_set_aside import give_up, refuse_its_entry
from tests.api.test_short_way import connected, read, request
from tests.patience import PATIENCE_S, STORY_PATIENCE_S

SHORT_S = 0.2
LONG = f"{STORY_PATIENCE_S:.0f}"  # seconds


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """However slow the machine is, a claim waits until its order is written."""
    for module in (buyer_orders, prefer_header):
        monkeypatch.setattr(module, "WAIT_S_MAX", STORY_PATIENCE_S)
    return replace(settings, confirm_within_s=STORY_PATIENCE_S)


@pytest.fixture
async def hasty(settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    """A node without loops that could hear of an order, and with little time."""
    node = await make_node(replace(settings, confirm_within_s=SHORT_S), engine)
    yield node
    await node.http.aclose()


async def buy(
    node: Node, sale: dict[str, Any], user: str, wait: str | None = None, key: str | None = None
) -> httpx2.Response:
    headers = buyer(user, key) | ({} if wait is None else {"Prefer": f"wait={wait}"})
    return await node.http.post(f"/v1/sales/{sale['id']}/orders", headers=headers, timeout=PATIENCE_S)


def now_waiting(node: Node) -> int:
    return sum(map(len, node.api.context.orders._watches.values()))


async def until_waiting(node: Node, claims: int = 1) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while now_waiting(node) < claims:
            await asyncio.sleep(0.01)


async def listed(node: Node, user: str) -> list[str]:
    found = (await node.http.get("/v1/orders", headers=buyer(user))).json()["orders"]
    return [order["order_id"] for order in found]


def is_unknown(response: httpx2.Response) -> bool:
    return (response.status_code, response.json().get("code"), response.headers.get("Retry-After")) == (
        503,
        "unknown",
        "1",
    )


# Prefer: wait=S


@pytest.mark.parametrize("confirm", Confirm)
async def test_who_prefers_to_wait_gets_the_order_as_it_is_written(served: Served, confirm: Confirm) -> None:
    node = served.node
    sale = await node.create(confirm=confirm)
    pressing = asyncio.create_task(buy(node, sale, "ann", LONG))
    await until_waiting(node)
    assert not pressing.done()
    await node.work()
    bought = await pressing
    assert (bought.status_code, bought.headers["Preference-Applied"]) == (201, f"wait={LONG}")
    shown = await node.http.get(bought.headers["Location"], headers=buyer("ann"))
    assert bought.json() == shown.json()
    assert bought.json()["state"] == "unpaid"
    await served.until_all_are_gone()


async def test_a_free_order_is_paid_with_the_answer(served: Served) -> None:
    sale = await served.node.create(price_cents=0)
    pressing = asyncio.create_task(buy(served.node, sale, "ann", LONG))
    await until_waiting(served.node)
    await served.node.work()
    assert ((await pressing).status_code, (await pressing).json()["state"]) == (201, "paid")


async def test_when_the_time_is_over_it_is_accepted_as_without_waiting(node: Node) -> None:
    sale = await node.create()
    waited = await buy(node, sale, "ann", "1", key="k")
    assert (waited.status_code, waited.headers["Preference-Applied"]) == (202, "wait=1")
    again = await buy(node, sale, "ann", key="k")
    assert (again.status_code, again.content) == (202, waited.content)
    assert again.headers["Location"] == waited.headers["Location"]


async def test_a_repeat_waits_as_well(served: Served) -> None:
    node = served.node
    sale = await node.create()
    first = await node.buy(sale, "ann", key="k")
    pressing = asyncio.create_task(buy(node, sale, "ann", LONG, key="k"))
    await until_waiting(node)
    await node.work()
    for repeated in (await pressing, await buy(node, sale, "ann", LONG, key="k")):
        assert (repeated.status_code, repeated.json()["order_id"]) == (201, first.json()["order_id"])
    await node.http.post(f"/v1/orders/{first.json()['order_id']}/cancel", headers=buyer("ann"))
    over = await buy(node, sale, "ann", LONG, key="k")
    assert (over.status_code, over.json()["state"]) == (201, "cancelled"), "the same order, with its state by then"


async def test_what_is_refused_is_refused_at_once(node: Node) -> None:
    sale = await node.create(units=1)
    assert (await node.buy(sale, "ann")).status_code == 202
    for user, code in (("ann", "limit_reached"), ("bob", "sold_out")):
        refused = await buy(node, sale, user, LONG)
        assert (refused.status_code, refused.json()["code"]) == (409, code)
        assert "Preference-Applied" not in refused.headers


@pytest.mark.parametrize("wait", ["abc", "-1", "1e9", "", "0"])
async def test_a_wish_that_is_none_is_ignored(node: Node, wait: str) -> None:
    bought = await buy(node, await node.create(), "ann", wait)
    assert bought.status_code == 202
    assert "Preference-Applied" not in bought.headers


async def test_an_order_that_fails_is_no_yes(served: Served, redis_url: str) -> None:
    node = served.node
    sale = await node.create(units=5)
    pressing = asyncio.create_task(buy(node, sale, "ann", LONG, key="k"))
    await until_waiting(node)
    await refuse_its_entry(node, redis_url)
    await give_up(node.engine)
    failed = await pressing
    assert (failed.status_code, failed.json()["code"], failed.json()["state"]) == (409, "order_over", "failed")
    assert failed.json()["order"]["state"] == "failed"
    assert (await buy(node, sale, "ann", LONG, key="k")).content == failed.content


# confirm: "ledger"


async def test_nobody_hears_yes_before_the_row_is_there(served: Served) -> None:
    """The claims come from their bytes; those in pieces, and those of other servers, as any other request."""
    node = served.node
    sale = await node.create(confirm="ledger", units=5)
    async with AsyncExitStack() as stack:
        reader, writer = await stack.enter_async_context(connected(served))
        writer.write(request(sale, "ann", key="k"))
        framed = asyncio.create_task(buy(node, sale, "bob"))
        await until_waiting(node, 2)
        assert not framed.done()
        assert not reader._buffer, "nobody is told anything"  # type: ignore[attr-defined]
        await node.work()
        status, headers, order = await read(reader)
        assert (status, order["state"], headers["location"]) == (201, "unpaid", f"/v1/orders/{order['order_id']}")
        assert (await framed).status_code == 201
        writer.write(request(sale, "ann", key="k"))
        assert (await read(reader))[::2] == (201, order), "and a repeat gets the same, over the same connection"
    await served.until_all_are_gone()


async def test_until_it_is_written_no_answer_tells_of_it(served: Served, hasty: Node) -> None:
    """Neither a repeat nor the limit nor the list tells of it; once it is written, all of them do."""
    node = served.node
    sale = await node.create(confirm="ledger")
    await hasty.refresh()
    assert is_unknown(await buy(hasty, sale, "ann", key="k"))
    assert is_unknown(await buy(hasty, sale, "ann", key="k"))
    assert is_unknown(await buy(hasty, sale, "ann", "0", key="k"))
    assert is_unknown(await buy(hasty, sale, "ann")), "at the limit, because of that order"
    assert await listed(hasty, "ann") == []
    (found,) = (await node.http.get("/v1/admin/orders?user=ann", headers=OPERATOR)).json()["orders"]
    assert found["order"]["state"] == "queued", "operators see it"
    limited = asyncio.create_task(buy(node, sale, "ann"))
    repeated = asyncio.create_task(buy(node, sale, "ann", key="k"))
    await until_waiting(node, 2)
    await node.work()
    order_id = (await repeated).json()["order_id"]
    assert (await repeated).status_code == 201
    assert ((await limited).status_code, (await limited).json()["order_ids"]) == (409, [order_id])
    assert await listed(hasty, "ann") == [order_id]
    assert (await buy(hasty, sale, "ann", "0", key="k")).json()["order_id"] == order_id


async def test_control_the_gate_tells_before_the_row_is_there(hasty: Node) -> None:
    sale = await hasty.create()
    order_id = (await buy(hasty, sale, "ann", key="k")).json()["order_id"]
    assert (await buy(hasty, sale, "ann", key="k")).json()["order_id"] == order_id
    assert (await buy(hasty, sale, "ann")).json()["order_ids"] == [order_id]
    assert await listed(hasty, "ann") == [order_id]


@pytest.mark.parametrize("confirm", Confirm)
async def test_a_gate_that_forgets_takes_no_yes_with_it(
    hasty: Node, engine: Engine, redis_url: str, confirm: Confirm
) -> None:
    """Orders that no worker has written are gone. A buyer who was accepted by the gate alone has lost theirs: the
    control."""
    sale = await hasty.create(confirm=confirm)
    first = await buy(hasty, sale, "ann", key="k")
    await flush(redis_url)
    await rebuild(make_keeper(engine))
    await hasty.refresh()
    assert await listed(hasty, "ann") == []
    if confirm is Confirm.GATE:
        lost = await hasty.http.get(first.headers["Location"], headers=buyer("ann"))
        assert (first.status_code, lost.status_code) == (202, 404)
        return
    assert is_unknown(first)
    assert is_unknown(await buy(hasty, sale, "ann", key="k"))
    await hasty.work()
    again = await buy(hasty, sale, "ann", key="k")
    assert (again.status_code, await listed(hasty, "ann")) == (201, [again.json()["order_id"]])


async def test_several_orders_at_the_limit_are_waited_for_together(served: Served, hasty: Node) -> None:
    sale = await served.node.create(confirm="ledger", units=9, limit_per_buyer=3)
    await hasty.refresh()
    for key in ("a", "b", "c"):
        assert is_unknown(await buy(hasty, sale, "ann", key=key))
    limited = asyncio.create_task(buy(served.node, sale, "ann", key="d"))
    await until_waiting(served.node)
    await served.node.work()
    assert sorted((await limited).json()["order_ids"]) == sorted(await listed(hasty, "ann"))


async def test_a_database_that_does_not_answer_is_no_yes(hasty: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    sale = await hasty.create(confirm="ledger")

    async def away(*_: Any) -> Any:
        raise LedgerUnavailable("away")

    for name in ("order", "orders"):
        monkeypatch.setattr(hasty.engine.ledger, name, away)
    assert is_unknown(await buy(hasty, sale, "ann", key="k"))
    assert is_unknown(await buy(hasty, sale, "ann", key="k")), "a repeat"
    assert is_unknown(await buy(hasty, sale, "ann")), "the limit"


# Both


@pytest.mark.parametrize("confirm", Confirm)
async def test_who_goes_leaves_nothing_behind_and_finds_the_order(served: Served, confirm: Confirm) -> None:
    node = served.node
    sale = await node.create(confirm=confirm)
    async with connected(served) as (_, writer):
        writer.write(request(sale, "ann", key="k", head="Prefer: wait=900\r\nContent-Length: 2"))
        await until_waiting(node)
        writer.transport.abort()
        await served.until_all_are_gone()
    await node.work()
    assert (await buy(node, sale, "ann", LONG, key="k")).status_code == 201


@pytest.mark.parametrize(("confirm", "status"), [(Confirm.GATE, 202), (Confirm.LEDGER, 503)])
@pytest.mark.parametrize("late", [False, True])
async def test_who_closes_their_side_is_told_what_is_known(
    served: Served, confirm: Confirm, status: int, late: bool
) -> None:
    """It looks like leaving, but such a client may still listen."""
    sale = await served.node.create(confirm=confirm)
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann", key="k", head=f"Prefer: wait={LONG}\r\nContent-Length: 2"))
        if late:
            await until_waiting(served.node)
        writer.write_eof()
        assert (await read(reader))[0] == status
        assert await reader.read() == b""
    await served.node.work()
    assert (await buy(served.node, sale, "ann", LONG, key="k")).status_code == 201


@pytest.mark.parametrize("confirm", Confirm)
async def test_one_buyer_has_so_many_seats_and_no_more(served: Served, confirm: Confirm) -> None:
    node = served.node
    sale = await node.create(confirm=confirm, units=100, limit_per_buyer=100)
    waiting = [asyncio.create_task(buy(node, sale, "ann", LONG)) for _ in range(SEATS_PER_BUYER_MAX)]
    await until_waiting(node, SEATS_PER_BUYER_MAX)
    pressing = asyncio.create_task(buy(node, sale, "ann", LONG, key="k"))
    while not pressing.done():
        assert now_waiting(node) == SEATS_PER_BUYER_MAX
        await asyncio.sleep(0)
    one_more = await pressing
    sold = (await node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()["queued"]
    if confirm is Confirm.LEDGER:
        assert (one_more.status_code, one_more.json()["code"]) == (503, "overloaded")
        assert sold == SEATS_PER_BUYER_MAX, "the gate was not asked: nothing is decided"
    else:
        assert one_more.status_code == 202, "accepted, as without waiting"
        assert sold == SEATS_PER_BUYER_MAX + 1
    await node.work()
    assert {(await each).status_code for each in waiting} == {201}
    again = asyncio.create_task(buy(node, sale, "ann", LONG, key="k"))
    while not again.done():
        await node.work()
        await asyncio.sleep(0.01)
    assert (await again).status_code == 201
    await served.until_all_are_gone()


@pytest.mark.parametrize(("confirm", "status"), [(Confirm.GATE, 202), (Confirm.LEDGER, 503)])
async def test_a_node_that_stops_says_what_it_knows(served: Served, confirm: Confirm, status: int) -> None:
    sale = await served.node.create(confirm=confirm)
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann", head="Prefer: wait=900\r\nContent-Length: 2"))
        await until_waiting(served.node)
        served.stop.set()
        assert (await read(reader))[0] == status


async def test_waiting_costs_no_query_for_each_claim(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    node = served.node
    sale = await node.create(confirm="ledger", units=300)
    calls = count_queries(node.engine.ledger, monkeypatch)
    looked: list[object] = []
    find = buyer_orders.BuyerOrders.find

    async def counted(self: buyer_orders.BuyerOrders, user: str, number: OrderNumber) -> buyer_orders.OrderView | None:
        looked.append(number)
        return await find(self, user, number)

    monkeypatch.setattr(buyer_orders.BuyerOrders, "find", counted)
    began = asyncio.get_running_loop().time()
    pressing = [asyncio.create_task(buy(node, sale, f"buyer-{i}")) for i in range(300)]
    await until_waiting(node, 300)
    assert looked == [], "what the gate has just said is known"
    await node.work()
    assert {(await each).status_code for each in pressing} == {201}
    assert calls["order"] == 0
    # One for each announcement, and the net under it once a second.
    assert calls["orders"] <= 10 + (asyncio.get_running_loop().time() - began) * 3


@pytest.mark.parametrize("wrong", ["", "Ledger", "ledger\n", "both", 1, None])
async def test_a_sale_confirms_at_the_gate_or_in_the_ledger(node: Node, wrong: Any) -> None:
    assert (await node.create())["confirm"] == "gate"
    sale = await node.create(confirm="ledger")
    assert (await node.http.get(f"/v1/sales/{sale['id']}")).json()["confirm"] == "ledger"
    refused = await node.http.post("/v1/sales", json=sale_body(confirm=wrong), headers=OPERATOR)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert refused.json()["errors"][0]["field"] == "confirm"
    if isinstance(wrong, str):
        assert refused.json()["errors"][0]["message"] == "must be gate or ledger"
    changed = await node.http.patch(f"/v1/sales/{sale['id']}", json={"confirm": "gate"}, headers=OPERATOR)
    assert changed.status_code == 422, "it is what its buyers were promised"
