"""One API node in this process, on a real Valkey and a real SQLite, with a worker that runs when told to."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import jwt
import pytest

from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.order import States
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.keeper import SERVERS_EVERY_S, Keeper, KeeperStep, run_schedule
from seckill.engine.orders.worker import Worker
from seckill.loops import Stop
from seckill.operations.server_alarm import ServerAlarm
from seckill.ports.transport import NewsTransport
from seckill.settings import Secret, Settings
from seckill.web.app import Api
from seckill.web.buyers.buyer_tokens import LEEWAY_S, mint_buyer_token
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.connections.listening_socket import bind
from seckill.web.server import ApiServer, serve_until
from tests.patience import PATIENCE_S

ADMIN_KEY = "an-admin-key-for-tests-only"
JWT_SECRET = Secret("0123456789abcdef0123456789abcdef-of-tests")


def token(user: str) -> str:
    return mint_buyer_token(JWT_SECRET, user, lifetime_s=3600, issuer=None, audience=None, now=time.time())


def token_with(user: str, **claims: Any) -> str:
    """Makes it as a shop's own service would."""
    now = int(time.time())
    return jwt.encode({"sub": user, "iat": now, "exp": now + 3600, **claims}, JWT_SECRET.reveal(), "HS256")


def token_that_ends(user: str, within_s: int) -> str:
    began = time.time() - LEEWAY_S
    return mint_buyer_token(JWT_SECRET, user, lifetime_s=within_s, issuer=None, audience=None, now=began)


def buyer(user: str, key: str | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(user)}"} | ({} if key is None else {"Idempotency-Key": key})


OPERATOR = {"Authorization": f"Bearer {ADMIN_KEY}"}


def sale_body(**changes: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    facts: dict[str, Any] = {
        "title": "Phone",
        "units": 3,
        "price_cents": 9900,
        "begins_at": (now - timedelta(hours=1)).isoformat(),
        "ends_at": (now + timedelta(hours=1)).isoformat(),
    }
    return facts | changes


@dataclass
class Node:
    """One API node, with the calls that tests make to it."""

    http: httpx2.AsyncClient
    api: Api
    engine: Engine
    worker: Worker

    async def create(self, **changes: Any) -> dict[str, Any]:
        body = {name: value for name, value in sale_body(**changes).items() if value is not None}
        response = await self.http.post("/v1/sales", json=body, headers=OPERATOR)
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created

    async def buy(self, sale: dict[str, Any], user: str, key: str | None = None, **body: Any) -> httpx2.Response:
        return await self.http.post(f"/v1/sales/{sale['id']}/orders", json=body, headers=buyer(user, key))

    async def work(self) -> None:
        while await self.worker.read_and_record(wait_s=0):
            pass

    async def refresh(self) -> None:
        """Does what the node's loops do several times a second."""
        ctx = self.api.context
        await ctx.sale_cache.refresh_sales()
        ctx.desk.forget(await ctx.sale_cache.refresh_pulses())
        await ctx.lists.refresh()
        await ctx.access_book.refresh()


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """The ledger's own tests cover what MariaDB does differently."""
    url: str = request.getfixturevalue(f"{request.param}_database")
    return url


def settings_of_a_node(redis_url: str, database_url: str) -> Settings:
    return Settings(
        redis_url=redis_url,
        database_url=database_url,
        jwt_secret=JWT_SECRET,
        admin_key=Secret(ADMIN_KEY),
        durability="fast",
        gate_timeout_s=PATIENCE_S,
        backlog_max=1000,
        lanes=4,
    )


@pytest.fixture
def settings(redis_url: str, sqlite_in_use: str) -> Settings:
    return settings_of_a_node(redis_url, sqlite_in_use)


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    async with open_engine(settings) as engine:
        yield engine


async def make_node(settings: Settings, engine: Engine) -> Node:
    """Makes a node without its loops: tests call `refresh`, so that nothing depends on when a loop happens to run."""
    api = Api(settings, engine)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://seckill")
    worker = Worker(
        engine.transport, engine.ledger, Stop(), lanes=range(settings.lanes), claim_idle_s=0.0, retry_delay_s=0.0
    )
    await worker.prepare()
    node = Node(http, api, engine, worker)
    # Nothing refreshes it here, so it must not age; how it does: tests/engine/test_access_book.py.
    api.context.access_book._monotonic = lambda: 0.0
    await node.refresh()
    return node


@asynccontextmanager
async def keeping(settings: Settings, engine: Engine, alarm: Alarm | None = None) -> AsyncIterator[Keeper]:
    """A keeper with all its loops."""
    use = UseCases(engine, settings, alarm=alarm)
    stop = Stop()
    servers = KeeperStep("servers", ServerAlarm(engine.gate, use.alarm).step, SERVERS_EVERY_S)
    keeper = use.keeper
    task = asyncio.create_task(run_schedule([*keeper.schedule(stop), servers], stop))
    try:
        yield keeper
    finally:
        stop.set()
        await task


@pytest.fixture
async def node(settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    node = await make_node(settings, engine)
    yield node
    await node.http.aclose()


class _Heard:
    """Passes on announcements, and notes that there was one."""

    def __init__(self, transport: NewsTransport) -> None:
        self._transport = transport
        self.some = False

    async def state_changes(self) -> AsyncIterator[States]:
        async for states in self._transport.state_changes():
            self.some = True
            yield states


@asynccontextmanager
async def listening(node: Node) -> AsyncIterator[None]:
    """The node hears what is announced within the block. What is announced before it listens, nobody hears."""
    transport = node.engine.transport
    heard: Any = _Heard(transport)
    task = asyncio.create_task(node.api.context.orders.listen(heard))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not heard.some:
                await transport.publish_states({"unpaid": []})
                await asyncio.sleep(0.01)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_watched(node: Node) -> None:
    """Waits until somebody waits for an order to change."""
    orders = node.api.context.orders
    async with asyncio.timeout(PATIENCE_S):
        while not any(watch._shown for watches in orders._watches.values() for watch in watches):
            await asyncio.sleep(0.01)


@dataclass
class Served:
    """The node with its loops, on a port."""

    node: Node
    url: str
    stop: Stop
    server: ApiServer

    async def order(self, user: str = "ann", **changes: Any) -> str:
        """A queued order, in a sale of its own."""
        made = await self.node.buy(await self.node.create(**changes), user)
        return str(made.json()["order_id"])

    async def act(self, order_id: str, verb: str, user: str = "ann") -> None:
        response = await self.node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer(user))
        assert response.status_code == 200, response.text

    async def until_all_are_gone(self) -> None:
        """Nothing is left of those who were connected."""
        ctx = self.node.api.context
        async with asyncio.timeout(PATIENCE_S):
            while ctx.orders._watches or ctx.seats._taken or self.server.server_state.tasks:
                await asyncio.sleep(0.01)


@pytest.fixture
async def served(node: Node) -> AsyncIterator[Served]:
    listener = bind("127.0.0.1", 0)
    server, stop = ApiServer(node.api), Stop()
    async with node.api.running():
        serving = asyncio.create_task(serve_until(stop, server, listener, node.api))
        yield Served(node, f"http://127.0.0.1:{listener.getsockname()[1]}", stop, server)
        stop.set()
        await serving


@pytest.fixture
async def over_the_wire(served: Served) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as http:
        yield http


@pytest.fixture(params=["bytes", "framework"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims go both ways: answered from their bytes, and by the framework."""
    if request.param == "framework":
        monkeypatch.setattr(ClaimingProtocol, "is_quiet", lambda self: False)
