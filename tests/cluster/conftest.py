"""A shop on a cluster: one API node, two workers and a keeper, with buyers who do not give up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from seckill.audit import open_auditor, stuck_work
from seckill.backends.redis.streams import StreamTransport
from seckill.backends.sql.migration import migrate
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.orders.worker import Worker, run_worker
from seckill.engine.rounds import failover
from seckill.errors import SeckillError, TransportUnavailable
from seckill.loops import Stop
from seckill.settings import Secret, Settings
from tests.api.conftest import ADMIN_KEY, JWT_SECRET, Node, make_node
from tests.patience import PATIENCE_S

CLAIM_IDLE_S = 0.5
QUEUES = 6
PACE_S = 0.02


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine, work that waits for a minute is not stuck. A lane that has moved is compared again at once."""
    monkeypatch.setattr(stuck_work, "STUCK_MS", 600_000)
    monkeypatch.setattr(failover, "AGAIN_AFTER_S", 0.5)


def make_settings(url: str, folder: Path, **changes: Any) -> Settings:
    facts: dict[str, Any] = {
        "redis_url": url,
        "database_url": f"sqlite:///{folder / 'ledger.db'}",
        "jwt_secret": JWT_SECRET,
        "admin_key": Secret(ADMIN_KEY),
        "gate_timeout_s": 2,
        "lanes": 4,
        "claims_per_second": 0,
    }
    return Settings(**(facts | changes))


@dataclass
class Shop:
    node: Node
    engine: Engine
    settings: Settings
    sale: dict[str, Any] = field(default_factory=dict)
    accepted: dict[str, str] = field(default_factory=dict)  # user → order id of the last 202
    refusals: list[str] = field(default_factory=list)  # codes of all 503s on the way

    async def lane(self) -> int:
        (sale,) = await self.engine.ledger.sales()
        return sale.round.lane

    async def buy(self, user: str) -> int:
        """Once, with the buyer's key."""
        response = await self.node.buy(self.sale, user, key=f"key-of-{user}", **self.wants(user))
        if response.status_code == 202:
            order_id = response.json()["order_id"]
            assert self.accepted.setdefault(user, order_id) == order_id, "the same key, and another order"
        elif response.status_code == 503:
            self.refusals.append(response.json()["code"])
        return response.status_code

    def wants(self, user: str) -> dict[str, str]:
        """In a sale with items, buyers whose names end with a number want one item after the other."""
        items = self.sale.get("items", ())
        return {"item_id": items[int(user[-1]) % len(items)]["item_id"]} if items else {}

    async def insist(self, user: str) -> int:
        """Presses until there is an answer."""
        async with asyncio.timeout(PATIENCE_S):
            while (status := await self.buy(user)) == 503:
                await asyncio.sleep(0.05)
        return status

    async def until_accepted(self, more: int) -> None:
        """Waits until that many more orders are accepted than now."""
        enough = len(self.accepted) + more
        async with asyncio.timeout(PATIENCE_S):
            while len(self.accepted) < enough:
                await asyncio.sleep(0.01)

    async def rows(self) -> dict[str, str]:
        """User → order id, as the ledger has them; each of the item that the user wants."""
        found = {}
        (sale,) = await self.engine.ledger.sales()
        after = ""
        while portion := await self.engine.ledger.holdings(sale.round.id, after, 1000):
            for user, held in portion.items():
                (one,) = held
                found[user] = self.engine.order_ids.encode(int(one.number))
                assert self.engine.item_ids.encode(one.item) == self.wants(user)["item_id"] if one.item else True
            *_, after = portion
        return found

    async def until_settled(self) -> None:
        """Everything that was admitted is in the ledger, and nothing is left to do.

        After a failover the first reading may still fail: Sentinel cuts the connections of a server that it promotes,
        and who is asked for the backlog learns of the new server beside the call.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not await self._drained():
                await asyncio.sleep(0.05)

    async def _drained(self) -> bool:
        try:
            return not await self.engine.transport.backlog([await self.lane()])
        except TransportUnavailable:
            return False

    async def broken(self) -> dict[str, list[Any]]:
        """Reads with an audit that could read everything. On a busy machine Sentinel may think for a moment that the
        new one is down too, and names nobody."""
        use = UseCases(self.engine, self.settings)
        await use.sale_cache.refresh_sales()
        async with open_auditor(self.settings) as auditor, asyncio.timeout(PATIENCE_S):
            while (report := await auditor.read(full=True)).reasons():
                with contextlib.suppress(SeckillError):
                    await use.moving.step()  # the keeper of the test may be gone before it has compared for good
                await asyncio.sleep(0.1)
        return {result.invariant.name: list(result.findings) for result in report.results if result.findings}


async def _node(settings: Settings, engine: Engine) -> Node:
    """On a busy machine the first look for the primary may take longer than a worker waits for it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(TransportUnavailable):
                return await make_node(settings, engine)


@asynccontextmanager
async def open_shop(settings: Settings, units: int, items: int = 0) -> AsyncIterator[Shop]:
    """`items`: how many kinds there are, of as many units each."""
    await migrate(settings.database_url)
    async with open_engine(settings) as engine:
        node = await _node(settings, engine)
        shop = Shop(node, engine, settings)
        try:
            kinds = [{"title": f"Size {place}", "units": units // items} for place in range(items)]
            shop.sale = await node.create(units=units, items=kinds or None)
            await node.refresh()
            yield shop
        finally:
            await node.http.aclose()


@asynccontextmanager
async def working(shop: Shop, workers: int = 2) -> AsyncIterator[None]:
    """Each with a consumer of its own."""
    stop = Stop()
    acks = shop.settings.replicas_to_wait_for
    transports = [StreamTransport(shop.settings.redis_url, replica_acks=acks) for _ in range(workers)]
    tasks = []
    for transport in transports:
        lanes = range(shop.settings.lanes)
        worker = Worker(transport, shop.engine.ledger, stop, lanes=lanes, claim_idle_s=CLAIM_IDLE_S, retry_delay_s=60.0)
        tasks.append(asyncio.create_task(run_worker(worker, stop)))
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        for transport in transports:
            await transport.close()


@asynccontextmanager
async def crowd(shop: Shop) -> AsyncIterator[None]:
    """Buyers who come one after the other until the block is left. Each gets an answer."""
    stop = Stop()

    async def queue(name: str) -> None:
        served = 0
        while not stop.is_set():
            assert await shop.insist(f"{name}-{served}") == 202
            served += 1
            await asyncio.sleep(PACE_S)

    async with asyncio.TaskGroup() as queues:  # if the block fails, no caller waits any longer
        for i in range(QUEUES):
            queues.create_task(queue(f"b{i}"))
        await shop.until_accepted(20)
        yield
        await shop.until_accepted(20)
        stop.set()
