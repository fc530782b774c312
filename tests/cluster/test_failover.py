"""A primary dies and its replica takes over, with all that it had or without the newest of it."""

import asyncio
from pathlib import Path

import pytest

from seckill.backends.redis import keys, lane_home
from seckill.lab.servers.cluster import LocalCluster
from seckill.lab.servers.replicated import until
from tests.api.conftest import OPERATOR, keeping
from tests.cluster.conftest import Shop, crowd, make_settings, open_shop, working
from tests.patience import PATIENCE_S


async def lose_the_newest(shop: Shop, cluster: LocalCluster) -> None:
    """Ten orders are on the replica, ten more are in the ledger only, and three nowhere."""
    lane = await shop.lane()
    primary = await cluster.primary_of(keys.orders(lane))
    for i in range(10):
        assert await shop.insist(f"early{i}") == 202
    replica = await cluster.replica_of(primary)
    await until("the replica has all", lambda: replica.has_all_of(primary))
    await cluster.silence(primary)
    for i in range(10):
        assert await shop.insist(f"late{i}") == 202
    await shop.node.work()
    for i in range(3):
        assert await shop.insist(f"lost{i}") == 202
    await cluster.fail_over(primary)


@pytest.mark.parametrize("items", [0, 2], ids=["no items", "items"])
async def test_fast_loses_queued_orders_at_most_and_goes_on_from_the_ledger(
    cluster: LocalCluster, tmp_path: Path, items: int
) -> None:
    settings = make_settings(cluster.url, tmp_path, durability="fast")
    async with open_shop(settings, units=30, items=items) as shop:
        await lose_the_newest(shop, cluster)
        first = dict(shop.accepted)
        async with asyncio.timeout(PATIENCE_S):  # as soon as it answers at all, it refuses
            while await shop.buy("late0") != 503 or shop.refusals[-1] != "not_ready":
                await asyncio.sleep(0.05)
        assert await shop.buy("new0") == 503
        for i in range(3):
            del shop.accepted[f"lost{i}"]  # the same key may give them another order
        async with keeping(settings, shop.engine), working(shop):
            for user in first:
                assert await shop.insist(user) == 202
            for i in range(20):
                await shop.insist(f"more{i}")
            await shop.until_settled()
        assert len(shop.accepted) == 30
        assert await shop.rows() == shop.accepted, "nothing doubled, nothing oversold, nothing else lost"
        assert {user: first[user] for user in first if not user.startswith("lost")}.items() <= shop.accepted.items()
        assert await shop.broken() == {}
        (sale,) = await shop.engine.ledger.sales()
        assert sale.round.epoch > 1, "it was rebuilt"
        held = await shop.node.http.get(f"/v1/sales/{shop.sale['id']}/custody", headers=OPERATOR)
        assert [(each["sold"], each["available"]) for each in held.json().get("items", ())] == [(15, 0)] * items


async def test_without_the_keepers_word_a_replica_would_admit_a_buyer_twice(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: what the test before proves depends on the lane being closed."""

    async def everybody_is_home(*_: object) -> None: ...

    monkeypatch.setattr(lane_home, "require", everybody_is_home)
    async with open_shop(make_settings(cluster.url, tmp_path, durability="fast"), units=30) as shop:
        await lose_the_newest(shop, cluster)
        before = shop.accepted.pop("late5")
        assert await shop.insist("late5") == 202
        assert shop.accepted["late5"] != before


async def test_strict_loses_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    settings = make_settings(cluster.url, tmp_path)
    assert settings.replicas_to_wait_for == 1
    async with open_shop(settings, units=100_000) as shop, keeping(settings, shop.engine), working(shop):
        async with crowd(shop):
            await cluster.fail_over(await cluster.primary_of(keys.orders(await shop.lane())))
            await cluster.heal()  # until there is a replica again, orders are `unknown`
        await shop.until_settled()
        assert shop.refusals, "the window was hit"
        assert await shop.rows() == shop.accepted
        assert await shop.broken() == {}
        (sale,) = await shop.engine.ledger.sales()
        assert sale.round.epoch == 1, "nothing had to be rebuilt"
