"""A sale with orders in every state, on a real Valkey and each ledger in turn, and hands that tamper with it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text

from seckill.audit import Auditor, stuck_work
from seckill.audit.report import Finding
from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine, open_engine
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Settings
from tests.api.conftest import Node, buyer, make_node, settings_of_a_node

UNITS = 20
LIMIT = 2


@dataclass
class World:
    """The sale, and what a test does to it behind the engine's back."""

    node: Node
    engine: Engine
    auditor: Auditor
    redis: Any
    ledger: SqlLedger
    settings: Settings
    sale: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # user → order number

    async def sell(self, *users: str, **body: Any) -> None:
        for user in users:
            response = await self.node.buy(self.sale, user, key=f"key of {user}", **body)
            assert response.status_code == 202, response.text
            number = self.engine.order_ids.decode(response.json()["order_id"])
            assert number is not None
            self.numbers[user] = number

    async def act(self, verb: str, user: str) -> None:
        order_id = self.engine.order_ids.encode(self.numbers[user])
        response = await self.node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer(user))
        assert response.status_code == 200, response.text

    async def expire(self, user: str) -> None:
        """Its time is over since an hour ago, in every respect."""
        await self.sql(
            "UPDATE orders SET recorded_ms = recorded_ms - 4500000, expires_ms = expires_ms - 4500000 WHERE id = :id",
            id=self.numbers[user],
        )
        assert await self.release_desk.expire() == 1

    @property
    def release_desk(self) -> ReleaseDesk:
        return ReleaseDesk(self.engine.gate, self.engine.transport, self.engine.ledger)

    @property
    def round_id(self) -> int:
        return int(self.sale["round"])

    async def ref(self) -> Any:
        (ref,) = [sale.round.ref for sale in await self.engine.ledger.sales() if sale.round.id == self.round_id]
        return ref

    async def round_key(self) -> str:
        return keys.round_(await self.ref())

    async def buyers_key(self) -> str:
        return keys.buyers(await self.ref())

    async def past_key(self) -> str:
        return keys.past(await self.ref())

    async def stream_key(self) -> str:
        return keys.orders((await self.ref()).lane)

    async def sql(self, statement: str, **parameters: Any) -> None:
        async with self.ledger.database.writers.begin() as connection:
            await connection.execute(text(statement), parameters)

    async def query(self, statement: str, **parameters: Any) -> list[Any]:
        async with self.ledger.database.readers.connect() as connection:
            return list(await connection.execute(text(statement), parameters))

    async def found(self) -> dict[str, list[Finding]]:
        """Returns what a full reading finds broken, by invariant."""
        report = await self.auditor.read(full=True)
        assert not report.reasons(), report.reasons()
        return {result.invariant.name: list(result.findings) for result in report.results if result.findings}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine, work that waits for a minute is not stuck."""
    monkeypatch.setattr(stuck_work, "STUCK_MS", 600_000)


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_database")
    return url


@pytest.fixture
def settings(redis_url: str, ledger_url: str) -> Settings:
    return settings_of_a_node(redis_url, ledger_url)


@pytest.fixture
async def world(settings: Settings) -> AsyncIterator[World]:
    """One auditor and one ledger: to make the statements of another takes longer than most of what is done with it."""
    redis: Any = connect(settings.redis_url)
    async with open_engine(settings) as engine:
        assert engine.auditor is not None
        assert isinstance(engine.ledger, SqlLedger)
        node = await make_node(settings, engine)
        made = World(node, engine, engine.auditor, redis, engine.ledger, settings)
        made.sale = await node.create(units=UNITS, limit_per_buyer=LIMIT)
        await node.refresh()
        yield made
        await node.http.aclose()
    await redis.aclose()


@pytest.fixture
async def busy(world: World) -> World:
    """Orders in every state: unpaid, paid, cancelled, expired, cancelled but not relayed, queued."""
    await world.sell("ann", "bob", "cid", "dan", "eve")
    await world.node.work()
    await world.act("pay", "bob")
    await world.act("cancel", "cid")
    await world.expire("dan")
    await world.release_desk.pass_on()
    await world.act("cancel", "eve")
    await world.sell("fay")
    return world
