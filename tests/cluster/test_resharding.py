"""Slots move to other primaries while people buy."""

import asyncio
from collections import Counter
from pathlib import Path

from seckill.embedded.cluster import SLOTS, LocalCluster
from seckill.gates import keys
from tests.api.conftest import keeping
from tests.cluster.conftest import PATIENCE_S, make_settings, open_shop, working
from tests.cluster.test_failover import buy_in_turn


async def test_a_slot_that_moves_under_load_costs_short_refusals_and_nothing_else(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    settings = make_settings(cluster.url, tmp_path)
    async with open_shop(settings, units=200) as shop, keeping(settings, shop.engine), working(shop) as workers:
        key = keys.orders(await shop.lane())
        source = await cluster.primary_of(key)
        (target, *_) = [node for node in await cluster.primaries() if node is not source]
        buyers = [asyncio.create_task(buy_in_turn(shop, f"b{i}-", 30)) for i in range(8)]
        async with asyncio.timeout(PATIENCE_S):
            while len(shop.accepted) < 50:
                await asyncio.sleep(0.01)
        workers[0].cancel()  # the other one goes on with what it had in hand
        assert await cluster.move_slot(key, target, pause_s=0.1) >= 4, "round, buyers, stream and counter"
        assert await cluster.primary_of(key) is target
        assert len(shop.accepted) < 200, "buyers were there when it happened"
        await asyncio.gather(*buyers)
        await shop.until_settled()
        assert set(shop.refusals) == {"not_ready"}, "the window was hit, and nothing was left open"
        assert len(shop.accepted) == 200
        assert await shop.rows() == shop.accepted
        assert await shop.broken() == {}
        assert await cluster.move_slot(key, source) >= 4


async def test_every_primary_gets_its_share_of_the_lanes(cluster: LocalCluster) -> None:
    found = Counter([(await cluster.primary_of(keys.orders(lane))).port for lane in range(16)])
    assert sorted(found.values()) == [5, 5, 6]


def test_lanes_lie_evenly_for_any_number_of_them() -> None:
    """Also the first few, which are the ones that sales take first."""
    for lanes in (4, 8, 16, 32, 64, 256):
        for primaries in (2, 3, 4, 5, 6):
            found = Counter(keys.slot(keys.tag(lane)) * primaries // SLOTS for lane in range(lanes))
            assert max(found.values()) <= lanes / primaries + 1, (lanes, primaries)
