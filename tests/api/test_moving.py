"""The keeper notices that a lane is on another server than before: each of its steps, one by one."""

from collections.abc import Collection
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate, connect
from seckill.engine.rounds.failover import AGAIN_AFTER_S, LaneFailover
from seckill.engine.sale_cache import SaleCache
from seckill.ports.gate import MovedLane
from tests.api.conftest import Node, buyer


class Elsewhere:
    """Makes the gate say that its lanes are on another server, until that is vouched for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vouched: list[tuple[int, bool]] = []  # lane, and whether for good
        elsewhere = self

        async def moved_lanes(_: object, lanes: Collection[int]) -> dict[int, MovedLane]:
            return {
                lane: MovedLane("another", compared=(lane, False) in elsewhere.vouched)
                for lane in lanes
                if (lane, True) not in elsewhere.vouched
            }

        async def vouch(_: object, lane: int, server: str, *, for_good: bool) -> None:
            assert server == "another"
            elsewhere.vouched.append((lane, for_good))

        monkeypatch.setattr(RedisGate, "moved_lanes", moved_lanes)
        monkeypatch.setattr(RedisGate, "vouch", vouch)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(monkeypatch)


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def make_moving(node: Node, clock: Clock) -> LaneFailover:
    sale_cache = SaleCache(node.engine.ledger, node.engine.gate, node.engine.sale_ids)
    await sale_cache.refresh_sales()
    return LaneFailover(node.engine.gate, node.engine.ledger, sale_cache, clock)


async def sell(node: Node, *users: str) -> dict[str, Any]:
    sale = await node.create(units=5, cool_down_s=600)
    for user in users:
        assert (await node.buy(sale, user)).status_code == 202
    await node.work()
    return sale


async def test_a_release_that_was_lost_is_made_again_once(node: Node, elsewhere: Elsewhere) -> None:
    sale = await sell(node, "ann", "bob")
    orders = (await node.http.get("/v1/orders", headers=buyer("ann"))).json()["orders"]
    await node.http.post(f"/v1/orders/{orders[0]['order_id']}/cancel", headers=buyer("ann"))
    waiting = await node.engine.ledger.outbox(10)
    await node.engine.ledger.outbox_done([item.id for item in waiting])  # relayed to the server that is gone
    moving = await make_moving(node, Clock())
    assert await moving.step() == 1
    assert await moving.step() == 0
    assert await moving.lost() == []
    (known,) = await node.engine.ledger.sales()
    view = await node.engine.gate.inspect(known.round.ref)
    assert view is not None
    assert (view.admitted, view.released, view.available, view.status) == (2, 1, 4, "open")
    await node.refresh()
    assert (await node.buy(sale, "ann")).json()["code"] == "cooling_down", "she let it lapse"
    assert (await node.buy(sale, "cid")).status_code == 202


@pytest.mark.parametrize("late", [False, True])
async def test_an_order_that_is_missing_closes_its_round_until_the_rebuild(
    node: Node, elsewhere: Elsewhere, redis_url: str, late: bool
) -> None:
    """The same goes for an order that a worker had in hand and writes after the lane was opened again."""
    sale = await sell(node, "ann", "bob")
    (known,) = await node.engine.ledger.sales()
    clock = Clock()
    moving = await make_moving(node, clock)
    if late:
        assert await moving.step() == 1
    async with connect(redis_url) as client:
        await client.hdel(keys.buyers(known.round.ref), "bob")
    if late:
        clock.now_s += AGAIN_AFTER_S
    await moving.step()
    assert elsewhere.vouched == [(known.round.lane, False), (known.round.lane, True)][: 1 + late]
    assert [lost.id for lost in await moving.lost()] == [known.round.id]
    assert (await node.buy(sale, "cid")).status_code == 503
    raised = await node.engine.ledger.next_epoch(known.round)
    assert raised is not None
    assert [lost.epoch for lost in await moving.lost()] == [raised.epoch], "not rebuilt yet"
    await node.engine.ledger.mark_opened(known.round.id, raised.epoch, 1)
    assert await moving.lost() == []


async def test_a_second_comparison_is_made_by_whichever_keeper_is_there(node: Node, elsewhere: Elsewhere) -> None:
    """The one that made the first may be gone. Until then, nothing is vouched for for good."""
    await sell(node, "ann")
    (known,) = await node.engine.ledger.sales()
    assert await (await make_moving(node, Clock())).step() == 1
    clock = Clock()
    other = await make_moving(node, clock)
    assert await other.step() == 0
    clock.now_s += AGAIN_AFTER_S - 1
    assert await other.step() == 0
    assert elsewhere.vouched == [(known.round.lane, False)]
    clock.now_s += 1
    assert await other.step() == 0
    assert elsewhere.vouched == [(known.round.lane, False), (known.round.lane, True)]
