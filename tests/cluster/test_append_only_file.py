"""A file that is switched on counts from the end of its first rewrite. Until then a crash loses what was answered."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis.asyncio

from seckill.backends.redis import keys, suitability
from seckill.backends.redis.gate import RedisGate
from seckill.errors import StartError
from seckill.lab.servers.replicated import Node, ReplicatedServers
from tests.cluster.conftest import Shop, make_settings, open_shop
from tests.cluster.test_server_watch import alone, closed, readiness, restart, until_readiness, until_refused
from tests.fixtures.valkey import redis_program, valkey_program
from tests.patience import PATIENCE_S

# A rewrite that is still under way when the test is over, however small the data: 10 s for each key.
SLOW = {"rdb-key-save-delay": "10000000"}
NOT_WHOLE = "is writing its append-only file"


@pytest.fixture(params=["valkey", "redis7"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Node]:
    program = valkey_program() if request.param == "valkey" else redis_program()
    async with alone(tmp_path, program) as node:
        yield node


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suitability, "LOOKS_AGAIN_MAX", 1)


async def off_and_on(server: Node) -> None:
    """Does it at one instant, so that no one sees it switched off."""
    async with redis.asyncio.Redis(host="127.0.0.1", port=server.port) as client:
        pipeline = client.pipeline(transaction=True)
        pipeline.config_set("appendonly", "no")
        pipeline.config_set("appendonly", "yes")
        await pipeline.execute()


async def slowly(server: Node) -> None:
    await server.ask("CONFIG", "SET", *(word for pair in SLOW.items() for word in pair))


async def is_rewriting(server: Node) -> bool:
    facts = await server.facts("persistence")
    return "1" in (facts["aof_rewrite_in_progress"], facts["aof_rewrite_scheduled"])


async def write_it_now(server: Node) -> None:
    """Ends the slow rewrite, and waits for a quick one."""
    await server.ask("CONFIG", "SET", "rdb-key-save-delay", 0, "appendonly", "no")
    await server.ask("CONFIG", "SET", "appendonly", "yes")
    async with asyncio.timeout(PATIENCE_S):
        while await is_rewriting(server):
            await asyncio.sleep(0.05)


async def start_a_role(url: str, replica_acks: int = 0) -> None:
    gate = RedisGate(url, timeout_s=5, backlog_max=1, replica_acks=replica_acks)
    try:
        await gate.check("strict")
    finally:
        await gate.close()


async def test_a_file_that_is_switched_on_counts_when_it_is_whole(server: Node, tmp_path: Path) -> None:
    url = f"redis://{server.address}/0"
    async with open_shop(make_settings(url, tmp_path), units=10_000) as shop, shop.node.api.running():
        assert await shop.insist("early") == 202
        await server.ask("CONFIG", "SET", "appendonly", "no")
        await until_refused(shop)
        await slowly(server)
        await server.ask("CONFIG", "SET", "appendonly", "yes")
        assert (await server.facts("persistence"))["aof_enabled"] == "1"
        assert await readiness(shop) == (503, "unfit")
        await closed(shop)
        with pytest.raises(StartError, match=NOT_WHOLE):  # a process that knows nothing of what was before
            await start_a_role(url)
        assert await is_rewriting(server), "the window was hit"
        await write_it_now(server)
        assert await shop.insist("late") == 202
        await start_a_role(url)


async def test_off_and_on_at_one_instant_is_noticed(server: Node, tmp_path: Path) -> None:
    """From then on, nothing that is answered is lost with the server."""
    url = f"redis://{server.address}/0"
    async with open_shop(make_settings(url, tmp_path), units=10_000) as shop, shop.node.api.running():
        assert await shop.insist("early") == 202
        await slowly(server)
        await off_and_on(server)
        await until_refused(shop)
        await closed(shop)
        assert await is_rewriting(server), "the window was hit"
        with pytest.raises(StartError, match=NOT_WHOLE):
            await start_a_role(url)
        await write_it_now(server)
        for i in range(5):
            assert await shop.insist(f"late{i}") == 202
        await restart(server)
        await until_readiness(shop, (200, "ok"))
        await all_are_known(shop)


async def all_are_known(shop: Shop) -> None:
    for user in [*shop.accepted]:
        assert await shop.insist(user) == 202, "the same key, the same order"


async def test_control_what_is_answered_before_the_file_is_whole_is_lost(server: Node) -> None:
    """The server is asked without our watch."""
    await server.ask("SET", "before", 1)
    await slowly(server)
    await off_and_on(server)
    async with asyncio.timeout(PATIENCE_S):
        while (await server.facts("persistence"))["aof_rewrite_in_progress"] != "1":
            await asyncio.sleep(0.02)
    await server.ask("SET", "after", 1)
    await restart(server)
    assert [await server.ask("EXISTS", name) for name in ("before", "after")] == [1, 0]


async def test_a_rewrite_of_a_file_that_counts_closes_nothing(server: Node, tmp_path: Path) -> None:
    url = f"redis://{server.address}/0"
    await restart(server, **SLOW)  # so that it need not be told while it runs
    async with open_shop(make_settings(url, tmp_path), units=10_000) as shop, shop.node.api.running():
        assert await shop.insist("early") == 202
        await server.ask("BGREWRITEAOF")
        await sells_on(shop, server, "rewrite")
        await start_a_role(url)  # it sees that no one has changed the server's settings
        await server.ask("CONFIG", "SET", "maxmemory-samples", 6)
        await sells_on(shop, server, "told")
        await restart(server)  # in the middle of it
        await until_readiness(shop, (200, "ok"))
        await all_are_known(shop)


async def look_anew(shop: Shop) -> None:
    """A look that begins now, not one that is remembered or was under way."""
    before = await shop.engine.gate.watch_servers()
    async with asyncio.timeout(PATIENCE_S):
        while await shop.engine.gate.watch_servers() is before:
            await asyncio.sleep(0.05)


async def sells_on(shop: Shop, server: Node, name: str) -> None:
    """Checks for as long as it takes to look twice that no claim is refused."""
    looks = shop.engine.gate
    for i in range(4):
        assert not any((await looks.watch_servers()).values())
        assert await shop.buy(f"{name}{i}") == 202
        await asyncio.sleep(0.3)
    assert await is_rewriting(server), "the window was hit"


async def test_a_replica_whose_file_does_not_count_closes_its_primary(
    sentinel: ReplicatedServers, tmp_path: Path
) -> None:
    async with open_shop(make_settings(sentinel.url, tmp_path), units=10_000) as shop, shop.node.api.running():
        assert await shop.insist("early") == 202
        replica = await sentinel.replica_of(await sentinel.primary_of(keys.orders(await shop.lane())))
        await slowly(replica)
        await look_anew(shop)  # or it could not tell what the replica was told from what the rewrite is for
        await replica.ask("BGREWRITEAOF")
        await sells_on(shop, replica, "rewrite")
        await off_and_on(replica)
        await until_refused(shop)
        await closed(shop)
        with pytest.raises(StartError, match=f"The replica at {replica.address} {NOT_WHOLE}"):
            await start_a_role(sentinel.url, replica_acks=1)
        await write_it_now(replica)
        assert await shop.insist("late") == 202
