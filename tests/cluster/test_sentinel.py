"""A primary and its replica behind Sentinel."""

from pathlib import Path

import pytest

from seckill.backends.redis.gate import RedisGate
from seckill.errors import StartError
from seckill.lab.servers.sentinel import LocalSentinel
from tests.api.conftest import keeping
from tests.cluster.conftest import make_settings, open_shop, working
from tests.patience import PATIENCE_S


async def test_a_replica_that_sentinel_has_promoted_is_found_compared_and_sold_from(
    sentinel: LocalSentinel, tmp_path: Path
) -> None:
    settings = make_settings(sentinel.url, tmp_path, durability="fast")
    async with open_shop(settings, units=20) as shop, keeping(settings, shop.engine), working(shop):
        for i in range(10):
            assert await shop.insist(f"before{i}") == 202
        await shop.until_settled()
        primary, replica = sentinel.nodes
        await primary.kill()
        async with sentinel.noticing():
            assert await shop.insist("first-after") == 202
        assert await sentinel.primary_of() is replica
        for i in range(12):
            assert await shop.insist(f"after{i}") == (202 if i < 9 else 409)
        for i in range(10):
            assert await shop.insist(f"before{i}") == 202, "the same key, the same order"
        await shop.until_settled()
        assert len(shop.accepted) == 20
        assert await shop.rows() == shop.accepted
        assert await shop.broken() == {}
        assert "not_ready" in shop.refusals, "the window was hit"

    gate = RedisGate(sentinel.url.replace("/seckill", "/other"), timeout_s=PATIENCE_S, backlog_max=1)
    with pytest.raises(StartError, match="watches no primary named 'other'"):
        await gate.check("fast")
    await gate.close()
