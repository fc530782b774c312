"""Event streams of one node, on a real port, with a worker that runs when told to."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from seckill.ports.ledger import Ledger
from seckill.web.connections.waiting_seats import SEATS_PER_BUYER_MAX
from seckill.web.live_updates import event_stream
from tests.api.conftest import Served, buyer, token, token_that_ends
from tests.live import socket, stream
from tests.patience import PATIENCE_S


async def test_a_stream_tells_the_state_now_and_each_change_and_ends(served: Served) -> None:
    order_id = await served.order()
    async with stream(served.url, order_id, token("ann")) as told:
        first = await told.next()
        assert first is not None
        assert (first.id, first.name, first.order["order_id"]) == ("queued", "state", order_id)
        assert told.retry_ms is not None
        assert event_stream.RETRY_MS_MIN <= told.retry_ms <= event_stream.RETRY_MS_MAX
        headers = told.response.headers
        assert headers["content-type"].startswith("text/event-stream")
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-store", "no")
        await served.node.work()
        second = await told.next()
        assert second is not None
        shown = await served.node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
        assert second.order == shown.json()
        await served.act(order_id, "pay")
        assert await told.states() == ["paid"]
    await served.until_all_are_gone()


async def test_streams_that_end_together_come_back_one_after_the_other(served: Served) -> None:
    """All of a node that stops: the others would have to answer them in the same millisecond."""
    order_id = await served.order()
    told = []
    for _ in range(SEATS_PER_BUYER_MAX):
        async with stream(served.url, order_id, token("ann")) as opened:
            assert (await opened.next()) is not None
            told.append(opened.retry_ms)
    assert all(1000 <= (retry_ms or 0) <= 3000 for retry_ms in told)
    assert len(set(told)) > 1


@pytest.mark.parametrize("verb", ["pay", "cancel"])
async def test_a_late_listener_gets_the_last_state_and_the_end(served: Served, verb: str) -> None:
    order_id = await served.order()
    await served.node.work()
    await served.act(order_id, verb)
    async with stream(served.url, order_id, token("ann")) as told:
        assert await told.states() == [{"pay": "paid", "cancel": "cancelled"}[verb]]


async def test_a_free_order_is_paid_at_once(served: Served) -> None:
    order_id = await served.order(price_cents=0)
    async with stream(served.url, order_id, token("ann")) as told:
        assert (await told.next()) is not None
        await served.node.work()
        assert await told.states() == ["paid"]


async def test_what_was_seen_last_is_not_told_again(served: Served) -> None:
    order_id = await served.order()
    await served.node.work()
    async with stream(served.url, order_id, token("ann"), seen="unpaid") as told:
        await served.act(order_id, "pay")
        assert await told.states() == ["paid"]
    async with stream(served.url, order_id, token("ann"), seen="queued") as told:
        assert await told.states() == ["paid"]
    async with stream(served.url, order_id, token("ann"), seen="nonsense") as told:
        assert await told.states() == ["paid"]
    async with stream(served.url, order_id, token("ann"), seen="paid") as told:
        assert told.response.status_code == 204, "nothing will ever come: an EventSource stops here"


async def test_another_buyers_stream_is_as_unknown_as_none(served: Served) -> None:
    order_id = await served.order()
    for user, public_id, status in [("eve", order_id, 404), ("eve", "0123456789ABC", 404), ("ann", "*", 404)]:
        async with stream(served.url, public_id, token(user)) as told:
            assert told.response.status_code == status
            assert told.response.headers["content-type"] == "application/problem+json"
    async with stream(served.url, order_id, "x.y.z") as told:
        assert told.response.status_code == 401
    await served.until_all_are_gone()


async def test_a_silent_stream_shows_that_it_is_alive(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_EVERY_S", 0.02)
    order_id = await served.order()
    async with stream(served.url, order_id, token("ann")) as told:
        hearing = asyncio.create_task(told.states())
        async with asyncio.timeout(PATIENCE_S):
            while told.comments <= 3:
                await asyncio.sleep(0.01)
        served.stop.set()
        assert await hearing == ["queued"]


async def test_a_stream_ends_with_its_token(served: Served) -> None:
    order_id = await served.order()
    async with stream(served.url, order_id, token_that_ends("ann", 4)) as told:
        assert await told.states() == ["queued"]
    await served.until_all_are_gone()


async def test_a_stream_ends_when_the_node_stops(served: Served) -> None:
    order_id = await served.order()
    async with stream(served.url, order_id, token("ann")) as told:
        assert (await told.next()) is not None
        served.stop.set()
        assert await told.states() == []


async def test_a_client_that_goes_leaves_nothing_behind(served: Served) -> None:
    order_id = await served.order()
    async with stream(served.url, order_id, token("ann")) as told:
        assert (await told.next()) is not None
        assert len(served.node.api.context.orders._watches) == 1
    await served.until_all_are_gone()


async def test_asking_for_the_head_does_not_wait(served: Served) -> None:
    order_id = await served.order()
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.head(f"{served.url}/v1/orders/{order_id}/events", headers=buyer("ann"))
    assert answer.headers["content-type"].startswith("text/event-stream")
    await served.until_all_are_gone()


async def test_one_buyer_has_a_limited_number_of_streams(served: Served) -> None:
    order_id = await served.order()
    async with AsyncExitStack() as opened:
        for _ in range(SEATS_PER_BUYER_MAX):
            told = await opened.enter_async_context(stream(served.url, order_id, token("ann")))
            assert told.response.status_code == 200
        async with stream(served.url, order_id, token("ann")) as refused:
            assert refused.response.status_code == 429
            assert refused.response.headers["retry-after"]
        async with stream(served.url, order_id, token("eve")) as other:
            assert other.response.status_code == 404, "it is each buyer's own number"
    await served.until_all_are_gone()


def count_queries(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    calls: Counter[str] = Counter()
    for name in ("order", "orders"):
        real = getattr(ledger, name)

        async def counted(*args: Any, name: str = name, real: Any = real) -> Any:
            calls[name] += 1
            return await real(*args)

        monkeypatch.setattr(ledger, name, counted)
    return calls


async def test_waiting_costs_no_query_for_each_buyer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 buyers, half on sockets: at most one look each when they come, then one for all, whatever happens."""
    node = served.node
    sale = await node.create(units=300)
    users = [f"buyer-{i}" for i in range(300)]
    ids = [str((await node.buy(sale, user)).json()["order_id"]) for user in users]
    calls = count_queries(node.engine.ledger, monkeypatch)
    told: list[str] = []

    async def by_stream(user: str, order_id: str) -> None:
        async with stream(served.url, order_id, token(user)) as events:
            for _ in range(2):
                event = await events.next()
                assert event is not None
                told.append(event.id)

    async def by_socket(user: str, order_id: str) -> None:
        async with socket(served.url, token(user)) as opened:
            await opened.say({"watch": order_id})
            for _ in range(2):
                heard = await opened.hear()
                told.append(heard["state"])

    async with asyncio.TaskGroup() as tasks:
        for i, (user, order_id) in enumerate(zip(users, ids, strict=True)):
            tasks.create_task((by_stream if i % 2 else by_socket)(user, order_id))
        while told.count("queued") < 300:
            await asyncio.sleep(0.01)
        assert calls["order"] == 0
        assert calls["orders"] <= 300 + 30, "at most one look each, and the net under them once a second"
        began = asyncio.get_running_loop().time()
        calls.clear()
        await node.work()
    seconds = asyncio.get_running_loop().time() - began
    assert Counter(told) == {"queued": 300, "unpaid": 300}
    assert calls["order"] == 0
    assert calls["orders"] <= 5 + 2 * seconds, "one for each announcement and one a second"
    await served.until_all_are_gone()
