"""The keeper asks all the time for what `strict` needs, of every server that a lane may land on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from seckill.backends.redis import keys, server_watch
from seckill.backends.redis.gate import RedisGate
from seckill.bootstrap.engine import open_engine
from seckill.engine.alarms.alarm import Alarm
from seckill.errors import GateError, StartError
from seckill.lab.servers.ports import free_ports
from seckill.lab.servers.replicated import Node, ReplicatedServers
from seckill.settings import Settings
from tests.api.conftest import keeping
from tests.cluster.conftest import Shop, make_settings, open_shop, working
from tests.fixtures.valkey import valkey_program
from tests.patience import PATIENCE_S

UNFIT = "a server cannot keep the promises: nobody is admitted there"
OUT_OF_REACH = "a replica cannot be looked at"


class Bell(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.rung: list[str] = []

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        self.rung.append(f"{what}: {facts.get('reason')}")

    def times(self, says: str) -> int:
        """A server that comes back empty is told of in other words as well: its rounds and queues are lost."""
        return sum(says in each for each in self.rung)

    async def until_told(self, says: str, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.times(says) < times:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def alone(folder: Path, program: Path | None = None, **options: str) -> AsyncIterator[Node]:
    """One server, as strict as can be."""
    node = Node(folder / "server", free_ports(1)[0], "strict", options, program or valkey_program())
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Node]:
    async with alone(tmp_path) as node:
        yield node


@pytest.fixture(params=["sentinel", "cluster"])
def servers(request: pytest.FixtureRequest) -> ReplicatedServers:
    found: ReplicatedServers = request.getfixturevalue(request.param)
    return found


@asynccontextmanager
async def selling(settings: Settings, bell: Bell) -> AsyncIterator[Shop]:
    """A node and a keeper with all their loops, each with its own eyes, and more units than buyers want."""
    async with (
        open_shop(settings, units=10_000) as shop,
        open_engine(settings) as keepers,
        keeping(settings, keepers, bell),
        shop.node.api.running(),
    ):
        assert await shop.insist("early") == 202
        yield shop


async def readiness(shop: Shop) -> tuple[int, str]:
    response = await shop.node.http.get("/readyz")
    return response.status_code, response.json()["gate"]


async def until_readiness(shop: Shop, wanted: tuple[int, str]) -> None:
    """A connection that was cut is noticed by the first who uses it."""
    async with asyncio.timeout(PATIENCE_S):
        while await readiness(shop) != wanted:
            await asyncio.sleep(0.05)


async def until_refused(shop: Shop) -> None:
    """Presses as another buyer each time, because one who has an order would get it again."""
    tries = 0
    async with asyncio.timeout(PATIENCE_S):
        while await shop.buy(f"tries{tries}") != 503:
            tries += 1
            await asyncio.sleep(0.02)


async def closed(shop: Shop) -> None:
    for i in range(10):
        assert await shop.buy(f"refused{i}") == 503
    assert set(shop.refusals[-10:]) == {"not_ready"}


async def restart(server: Node, **options: str) -> None:
    await server.kill()
    server.configure(options)
    await server.start()


@pytest.mark.parametrize("looks", [True, False], ids=["looks all the time", "looks at new connections only"])
async def test_a_server_that_comes_back_without_its_file_sells_nothing(
    server: Node, tmp_path: Path, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_watch, "FRESH_S", PATIENCE_S)  # nor does it look because it has not for so long
    settings = make_settings(f"redis://{server.address}/0", tmp_path)
    bell = Bell()
    async with (
        open_shop(settings, units=100) as shop,
        open_engine(settings) as keepers,
        keeping(settings, keepers, bell),
        working(shop),
    ):
        async with shop.node.api.running() if looks else asyncio.timeout(None):
            for i in range(5):
                assert await shop.insist(f"early{i}") == 202
            await shop.until_settled()
            assert await readiness(shop) == (200, "ok")
            await restart(server, appendonly="no")
            async with asyncio.timeout(PATIENCE_S):  # the keeper has rebuilt it: it could sell, as far as that goes
                while (sale := (await shop.engine.ledger.sales())[0]).round.epoch == 1 or not sale.round.opened_ms:
                    assert await shop.buy("early0") == 503
                    await asyncio.sleep(0.05)
            await closed(shop)
            await until_readiness(shop, (503, "unfit"))
            await bell.until_told("keeps no append-only file")
            async with asyncio.timeout(PATIENCE_S):
                while not await refreshed(shop):  # until it has heard of the rebuild
                    await asyncio.sleep(0.05)
            await restart(server, appendonly="yes")  # with the file of before the rebuild
            for i in range(10):
                assert await shop.insist(f"late{i}") == 202
            await until_readiness(shop, (200, "ok"))
            await restart(server)
            await shop.until_settled()
        assert await shop.rows() == shop.accepted
        assert await shop.broken() == {}
        assert bell.times("keeps no append-only file") == 1


async def refreshed(shop: Shop) -> bool:
    """A connection from before the restart of its server may be tried first."""
    try:
        await shop.node.refresh()
    except GateError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "wrong", "right", "says"),
    [
        ("appendonly", "no", "yes", "keeps no append-only file"),
        ("appendfsync", "everysec", "always", "with appendfsync everysec"),
        ("no-appendfsync-on-rewrite", "yes", "no", "while it writes it anew"),
        ("maxmemory-policy", "allkeys-lru", "noeviction", "evicts keys"),
    ],
)
async def test_a_server_that_is_told_otherwise_while_it_runs_sells_nothing(
    server: Node, tmp_path: Path, name: str, wrong: str, right: str, says: str
) -> None:
    settings = make_settings(f"redis://{server.address}/0", tmp_path)
    bell = Bell()
    with capture_logs() as logs:
        async with selling(settings, bell) as shop:
            await server.ask("CONFIG", "SET", name, wrong)
            await until_refused(shop)
            await closed(shop)
            assert await readiness(shop) == (503, "unfit")
            await bell.until_told(says)
            await server.ask("CONFIG", "SET", name, right)
            assert await shop.insist("late") == 202
    assert bell.times(says) == 1
    said = [entry for entry in logs if entry["event"] == UNFIT and says in entry["reason"]]
    assert len(said) == 2, "one line of the node and one of the keeper, not one for each claim"


@pytest.mark.parametrize("right", ["hset", "xadd", "info", "evalsha"])
async def test_a_user_who_loses_a_right_sells_nothing_and_people_are_told(
    server: Node, tmp_path: Path, right: str
) -> None:
    """ACL SETUSER in the middle of a sale: the server answers every PING, but no one can buy."""
    settings = make_settings(f"redis://{server.address}/0", tmp_path)
    bell = Bell()
    async with selling(settings, bell) as shop, working(shop):
        await server.ask("ACL", "SETUSER", "default", f"-{right}")
        await until_refused(shop)
        await until_readiness(shop, (503, "unfit"))
        await closed(shop)
        await bell.until_told(f"may not run {right.upper()}")
        await server.ask("ACL", "SETUSER", "default", f"+{right}")
        for i in range(5):
            assert await shop.insist(f"late{i}") == 202
        await shop.until_settled()
        assert await shop.rows() == shop.accepted, "nobody got an order who was told that there is none"
        assert await shop.broken() == {}
    assert bell.times(f"may not run {right.upper()}") == 1


async def test_a_server_that_hides_its_configuration_is_taken_at_its_word(tmp_path: Path) -> None:
    async with alone(tmp_path, None, **{"rename-command": "CONFIG hidden"}) as server:
        settings = make_settings(f"redis://{server.address}/0", tmp_path)
        async with open_shop(settings, units=10_000) as shop, shop.node.api.running():
            assert await shop.insist("ann") == 202
            assert await readiness(shop) == (200, "ok")
            await server.ask("hidden", "SET", "maxmemory-policy", "allkeys-lru")
            await until_refused(shop)


async def test_a_replica_that_could_not_keep_orders_closes_its_primary(
    servers: ReplicatedServers, tmp_path: Path
) -> None:
    settings = make_settings(servers.url, tmp_path)
    bell = Bell()
    async with selling(settings, bell) as shop:
        replica = await servers.replica_of(await servers.primary_of(keys.orders(await shop.lane())))
        for name, wrong, right in (("appendonly", "no", "yes"), ("maxmemory-policy", "volatile-lru", "noeviction")):
            says = f"The replica at {replica.address}"
            rung = bell.times(says)
            await replica.ask("CONFIG", "SET", name, wrong)
            await until_refused(shop)
            await closed(shop)
            status, gate = await readiness(shop)
            assert (status, gate) in ((503, "unfit"), (200, "partly_unfit")), "other primaries of a cluster sell"
            await bell.until_told(says, rung + 1)
            await refused_at_start(servers.url, says)
            await replica.ask("CONFIG", "SET", name, right)
            assert await shop.insist(f"late-{name}") == 202


async def until_it_raises(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        await call()


async def refused_at_start(url: str, says: str) -> None:
    """A replica that a busy machine keeps from answering, or that has lost its link for a moment and cannot take over,
    is no reason to stay shut: it is looked at again."""
    gate = RedisGate(url, timeout_s=5, backlog_max=1, replica_acks=1)
    try:
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StartError, match=says):
                await until_it_raises(lambda: gate.check("strict"))
    finally:
        await gate.close()


async def test_a_primary_without_its_replica_admits_nobody(servers: ReplicatedServers, tmp_path: Path) -> None:
    settings = make_settings(servers.url, tmp_path)
    bell = Bell()
    async with selling(settings, bell) as shop:
        replica = await servers.replica_of(await servers.primary_of(keys.orders(await shop.lane())))
        await replica.kill()
        await bell.until_told("has 0 replicas, and 1 must have every order")
        await closed(shop)
        await servers.heal()
        assert await shop.insist("late") == 202


async def test_a_replica_that_we_cannot_look_at_closes_nothing(servers: ReplicatedServers, tmp_path: Path) -> None:
    settings = make_settings(servers.url, tmp_path)
    async with open_shop(settings, units=5) as shop:
        assert await shop.insist("early") == 202
        primary = await servers.primary_of(keys.orders(await shop.lane()))
        replica = await servers.silence(primary)
        with capture_logs() as logs:
            async with asyncio.timeout(PATIENCE_S):
                while not any(entry["event"] == OUT_OF_REACH for entry in logs):
                    assert not any((await shop.engine.gate.watch_servers()).values())
        (said,) = [entry for entry in logs if entry["event"] == OUT_OF_REACH]
        assert said["replica"] == replica.address
