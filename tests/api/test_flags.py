"""Sold-out flags of several nodes: withdrawn by an announcement, by asking the gate, and never by what is old."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.bootstrap.engine import Engine, open_engine
from seckill.engine.keeper import PASS_ON_EVERY_S
from seckill.engine.orders.releases import ReleaseDesk
from seckill.loops import Stop, repeat
from seckill.ports.gate import Released
from seckill.settings import Settings
from seckill.web import node_schedule
from tests.api.conftest import Node, buyer, make_node
from tests.patience import PATIENCE_S


@pytest.fixture
async def nodes(settings: Settings, engine: Engine) -> AsyncIterator[list[Node]]:
    """Two, each with connections of its own."""
    async with AsyncExitStack() as opened:
        made = [await make_node(settings, await opened.enter_async_context(open_engine(settings))) for _ in range(2)]
        for node in made:
            opened.push_async_callback(node.http.aclose)
        yield made


@pytest.fixture
def release_desk(engine: Engine) -> ReleaseDesk:
    return ReleaseDesk(engine.gate, engine.transport, engine.ledger)


async def sell_out(nodes: list[Node]) -> tuple[dict[str, Any], str, int]:
    """Both nodes have the flag and keep it, since what they know never grows old. The sale, ann's order, the round."""
    sale = await nodes[0].create(units=1)
    order_id = str((await nodes[0].buy(sale, "ann")).json()["order_id"])
    await nodes[0].work()
    round_id = int(sale["round"])
    for node in nodes:
        await node.refresh()
        sale_cache = node.api.context.sale_cache
        now_s = sale_cache._monotonic()
        sale_cache._monotonic = lambda now_s=now_s: now_s  # type: ignore[misc]
        assert (await node.buy(sale, "early")).json()["code"] == "sold_out"
        async with asyncio.timeout(PATIENCE_S):
            while not node.api.context.desk.sold_out.is_raised(round_id):
                await asyncio.sleep(0)
        assert await refuses_by_itself(node, sale)
    return sale, order_id, round_id


async def refuses_by_itself(node: Node, sale: dict[str, Any]) -> bool:
    asked: list[Any] = []
    gate, real = node.engine.gate, node.engine.gate.admit

    async def counting(ref: Any, claims: Any) -> Any:
        asked.extend(claims)
        return await real(ref, claims)

    gate.admit = counting  # type: ignore[method-assign]
    try:
        return (await node.buy(sale, "probe")).json().get("code") == "sold_out" and not asked
    finally:
        gate.admit = real  # type: ignore[method-assign]


async def cancel(node: Node, order_id: str) -> None:
    ended = await node.http.post(f"/v1/orders/{order_id}/cancel", headers=buyer("ann"))
    assert ended.status_code == 200


@asynccontextmanager
async def listening(node: Node, redis_url: str) -> AsyncIterator[None]:
    task = asyncio.create_task(node.api.context.desk.sold_out.listen(node.engine.transport))
    client: Any = connect(redis_url)
    async with asyncio.timeout(PATIENCE_S):
        while (await client.pubsub_numsub(keys.VERSIONS_CHANNEL))[0][1] == 0:
            await asyncio.sleep(0.01)
    yield
    task.cancel()
    await asyncio.wait([task])
    await client.aclose()


async def until_not_flagged(node: Node, round_id: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while node.api.context.desk.sold_out.is_raised(round_id):
            await asyncio.sleep(0.01)


async def test_an_announcement_withdraws_the_flag_without_a_question_to_the_gate(
    nodes: list[Node], release_desk: ReleaseDesk, redis_url: str
) -> None:
    """Node B hears of it. Node A does not, and knows nothing until it asks the gate (F45)."""
    a, b = nodes
    sale, order_id, round_id = await sell_out(nodes)
    async with listening(b, redis_url):
        await cancel(a, order_id)
        assert await release_desk.pass_on() == 1
        await until_not_flagged(b, round_id)
    assert (await b.buy(sale, "bob")).status_code == 202
    assert await refuses_by_itself(a, sale), "the control: it has not been told"
    await a.refresh()
    assert not a.api.context.desk.sold_out.is_raised(round_id)


async def test_a_lost_announcement_is_made_up_for_by_asking(nodes: list[Node], release_desk: ReleaseDesk) -> None:
    """No node listens, so the announcement is lost. The round's version in the gate shows it all the same (F58)."""
    sale, order_id, round_id = await sell_out(nodes)
    await cancel(nodes[0], order_id)
    assert await release_desk.pass_on() == 1
    for node in nodes:
        assert await refuses_by_itself(node, sale)
        await node.refresh()
        assert not node.api.context.desk.sold_out.is_raised(round_id)
    assert (await nodes[1].buy(sale, "bob")).status_code == 202


async def test_a_flag_counts_for_nothing_once_the_gate_is_known_to_have_another_version(
    nodes: list[Node], release_desk: ReleaseDesk
) -> None:
    """It counts for nothing from the moment that the pulse is there, even before flags are withdrawn because of it
    (F46)."""
    node = nodes[0]
    sale, order_id, round_id = await sell_out(nodes)
    await cancel(node, order_id)
    assert await release_desk.pass_on() == 1
    await node.api.context.sale_cache.refresh_pulses()
    assert node.api.context.desk.sold_out.is_raised(round_id), "the control: the flag still stands"
    assert (await node.buy(sale, "bob")).status_code == 202


async def test_who_repeats_a_dead_keepers_release_announces_it(
    nodes: list[Node], engine: Engine, release_desk: ReleaseDesk, redis_url: str
) -> None:
    """The unit is back, and the keeper that gave it back died before it told the nodes."""
    _, order_id, round_id = await sell_out(nodes)
    await cancel(nodes[0], order_id)
    (item,) = await engine.ledger.outbox(10)
    assert item.release is not None
    assert (await engine.gate.release(item.ref, [item.release])).results == [Released.RELEASED]
    async with listening(nodes[1], redis_url):
        assert nodes[1].api.context.desk.sold_out.is_raised(round_id)
        assert await release_desk.pass_on() == 1
        await until_not_flagged(nodes[1], round_id)


async def test_a_gate_that_went_back_to_the_same_version_is_not_sold_out(nodes: list[Node], redis_url: str) -> None:
    """A replica took over without the last admissions. Nothing is announced: only the count of units shows it."""
    node = nodes[0]
    sale, _, round_id = await sell_out(nodes)
    (stored,) = [each for each in await node.engine.ledger.sales() if each.round.id == round_id]
    client: Any = connect(redis_url)
    await client.hset(keys.round_(stored.round.ref), mapping={"available": 1, "admitted": 0, "buyers": 0})
    await client.delete(keys.buyers(stored.round.ref))
    await client.aclose()
    assert await refuses_by_itself(node, sale), "the control: it knows nothing of it yet"
    await node.refresh()
    assert not node.api.context.desk.sold_out.is_raised(round_id)
    assert (await node.buy(sale, "bob")).status_code == 202


async def test_only_a_newer_version_withdraws_a_flag(nodes: list[Node], engine: Engine, redis_url: str) -> None:
    """Late, repeated and made-up announcements (F46)."""
    node = nodes[0]
    sale, _, round_id = await sell_out(nodes)
    version = node.api.context.desk.sold_out.standing[round_id].version
    async with listening(node, redis_url):
        for old in (version, version - 1, 0, -5, version):
            await engine.transport.publish_version(round_id, old)
        await engine.transport.publish_version(round_id + 1, version + 7)  # of another round
        await engine.transport.publish_version(999, 1)
        async with asyncio.timeout(PATIENCE_S):
            while 999 not in node.api.context.desk.sold_out._announced:  # so all before it were heard
                await asyncio.sleep(0.01)
        assert await refuses_by_itself(node, sale)
        # A newer one sets nothing either: the gate is asked, and the gate says the truth.
        await engine.transport.publish_version(round_id, version + 1)
        await until_not_flagged(node, round_id)
    assert (await node.buy(sale, "bob")).json()["code"] == "sold_out"
    assert not node.api.context.desk.sold_out.is_raised(round_id), "not for a version that is said to be over"


async def test_a_flag_is_not_raised_for_a_version_that_was_announced_to_be_over(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The announcement comes while the winners are being read, or between the gate's answer and that."""
    sale = await node.create(units=1)
    await node.buy(sale, "ann")
    flags, round_id = node.api.context.desk.sold_out, int(sale["round"])
    real = node.engine.gate.buyers

    async def overtaken(ref: Any) -> Any:
        async for portion in real(ref):
            flags.hear(round_id, 10**6)
            yield portion

    monkeypatch.setattr(node.engine.gate, "buyers", overtaken)
    assert (await node.buy(sale, "bob")).json()["code"] == "sold_out"
    async with asyncio.timeout(PATIENCE_S):
        while flags._raising:
            await asyncio.sleep(0)
    assert flags._announced == {round_id: 10**6}, "it was overtaken"
    assert not flags.is_raised(round_id)
    assert (await node.buy(sale, "cid")).json()["code"] == "sold_out"
    assert (flags._raising, flags.is_raised(round_id)) == ({}, False)
    await node.refresh()
    assert flags._announced, "the round is on"
    flags.keep({})
    assert flags._announced == {}, "nothing is kept of rounds that are over"


async def test_a_cancelled_unit_is_sold_on_another_node(
    nodes: list[Node], release_desk: ReleaseDesk, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything runs as in production, except that the nodes never ask the gate again by themselves."""
    monkeypatch.setattr(node_schedule, "PULSES_EVERY_S", 3600.0)
    a, b = nodes
    stop = Stop()
    async with a.api.running(), b.api.running():
        sale, order_id, round_id = await sell_out(nodes)
        client: Any = connect(redis_url)
        async with asyncio.timeout(PATIENCE_S), client:
            while (await client.pubsub_numsub(keys.VERSIONS_CHANNEL))[0][1] < 2:
                await asyncio.sleep(0.01)
        passing_on = asyncio.create_task(repeat("releases", release_desk.pass_on, stop, every_s=PASS_ON_EVERY_S))
        await cancel(a, order_id)
        for node in nodes:
            await until_not_flagged(node, round_id)
        assert (await b.buy(sale, "bob")).status_code == 202
        stop.set()
        await passing_on
