"""Slots move to other primaries while people buy."""

from collections import Counter
from pathlib import Path

from seckill.backends.redis import keys
from seckill.lab.servers.cluster import SLOTS, LocalCluster
from tests.api.conftest import keeping
from tests.cluster.conftest import crowd, make_settings, open_shop, working


async def test_a_slot_that_moves_under_load_costs_short_refusals_and_nothing_else(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    settings = make_settings(cluster.url, tmp_path)
    async with open_shop(settings, units=100_000) as shop, keeping(settings, shop.engine), working(shop):
        key = keys.orders(await shop.lane())
        source = await cluster.primary_of(key)
        (target, *_) = [node for node in await cluster.primaries() if node is not source]
        async with crowd(shop):
            assert await cluster.move_slot(key, target, pause_s=0.1) >= 4, "round, buyers, stream and counter"
            assert await cluster.primary_of(key) is target
        await shop.until_settled()
        assert set(shop.refusals) == {"not_ready"}, "the window was hit, and nothing was left open"
        assert await shop.rows() == shop.accepted
        assert await shop.broken() == {}
        (sale,) = await shop.engine.ledger.sales()
        assert sale.round.epoch == 1, "nothing had to be rebuilt"
        assert await cluster.move_slot(key, source) >= 4


async def test_every_primary_gets_its_share_of_the_lanes(cluster: LocalCluster) -> None:
    found = Counter([(await cluster.primary_of(keys.orders(lane))).port for lane in range(16)])
    assert sorted(found.values()) == [5, 5, 6]


def test_lanes_lie_evenly_for_any_number_of_them() -> None:
    """So do the first few, which sales take first."""
    for lanes in (4, 8, 16, 32, 64, 256):
        for primaries in (2, 3, 4, 5, 6):
            found = Counter(keys.slot(keys.tag(lane)) * primaries // SLOTS for lane in range(lanes))
            assert max(found.values()) <= lanes / primaries + 1, (lanes, primaries)
