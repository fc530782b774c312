"""The owner of a slot, by what several nodes of a cluster say."""

from typing import Any

from seckill.backends.redis.cluster import ClusterServers

SEED = ("127.0.0.1", 1)


def view(*claims: tuple[int, int, str, int]) -> list[Any]:
    return [[first, last, [b"127.0.0.1", port, name.encode(), []]] for first, last, name, port in claims]


async def owner(servers: ClusterServers) -> str:
    found = servers._owners[0]
    assert found is not None
    return found.server.name


async def test_a_node_that_was_cut_off_does_not_lead_back_to_a_primary_that_was_replaced() -> None:
    servers = ClusterServers("redis+cluster://127.0.0.1:1")
    servers._learn(SEED, view((0, 16383, "old", 1)), {"old": 1, "new": 0})
    servers._learn(SEED, view((0, 16383, "new", 2)), {"old": 1, "new": 2})
    assert await owner(servers) == "new"
    changes = servers.changes
    servers._learn(SEED, view((0, 16383, "old", 1)), {"old": 1, "new": 0})
    assert await owner(servers) == "new", "an older claim"
    assert servers.changes > changes
    servers._learn(SEED, view((0, 16383, "other", 3)), {"other": 1})
    assert await owner(servers) == "other", "nobody knows the old ones any more: it is another cluster"
    assert servers.uncovered == 0
    await servers.close()


async def test_a_slot_that_nobody_claims_is_uncovered() -> None:
    servers = ClusterServers("redis+cluster://127.0.0.1:1")
    servers._learn(SEED, view((0, 99, "one", 1), (101, 16383, "two", 2)), {"one": 1, "two": 2})
    assert servers.uncovered == 1
    await servers.close()
