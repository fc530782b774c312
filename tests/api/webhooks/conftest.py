"""An API node, a receiver, and keepers that send."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain import webhook_retries
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.webhooks import dispatcher, endpoint_delivery
from seckill.loops import Stop
from seckill.roles.keeper import event_names
from seckill.settings import Settings
from seckill.web.webhooks.event_feed import event_document
from tests.api.conftest import OPERATOR, Node, make_node, settings_of_a_node
from tests.backends.sql.making import admission
from tests.backends.sql.paying import capture
from tests.receiver import Receiver


class RecordedAlarm(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.raised: list[tuple[str, Mapping[str, object]]] = []

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        self.raised.append((what, facts))


@dataclass
class Shop:
    """A node, and what a shop's people do with its webhooks."""

    node: Node
    receiver: Receiver
    settings: Settings
    alarm: RecordedAlarm = field(default_factory=RecordedAlarm)
    ordered: int = 0

    @property
    def ledger(self) -> SqlLedger:
        assert isinstance(self.node.engine.ledger, SqlLedger)
        return self.node.engine.ledger

    async def ask(self, method: str, path: str = "", status: int = 200, **body: Any) -> Any:
        response = await self.node.http.request(
            method, f"/v1/admin/webhooks{path}", json=body or None, headers=OPERATOR
        )
        assert response.status_code == status, response.text
        return response.json() if response.content else None

    async def hook(self, path: str = "/hook", **body: Any) -> dict[str, Any]:
        made: dict[str, Any] = await self.ask("POST", status=201, url=self.receiver.url(path), **body)
        return made

    async def deliveries(self, webhook_id: str, query: str = "?limit=100") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("GET", f"/{webhook_id}/deliveries{query}"))["deliveries"]
        return found

    async def orders(self, count: int, *, paid: bool = True) -> None:
        """Makes orders in a sale of their own, each with three events if it is paid and one if not."""
        sale = await self.node.create(units=count)
        number = self.node.engine.sale_ids.decode(sale["id"])
        assert number is not None
        found = await self.ledger.sale(number)
        assert found is not None
        # Sales of the same second number their orders alike, so the counter goes on from sale to sale.
        made = [admission(found.round, self.ordered + each) for each in range(1, count + 1)]
        self.ordered += count
        await self.ledger.record(made)
        for each in made if paid else ():
            await self.ledger.pay(each.number, each.user, capture(f"{sale['id']}-{each.user}", cents=9900))

    async def events(self, **query: Any) -> list[dict[str, Any]]:
        response = await self.node.http.get("/v1/admin/events", params={"limit": 1000} | query, headers=OPERATOR)
        found: list[dict[str, Any]] = response.json()["events"]
        return found

    async def cursors(self) -> dict[str, int]:
        return {event["id"]: event["cursor"] for event in await self.events()}

    @asynccontextmanager
    async def keepers(self, count: int = 1, settings: Settings | None = None) -> AsyncIterator[list[Stop]]:
        """Each with connections of its own."""
        async with AsyncExitStack() as stack:
            stops = [await stack.enter_async_context(self._keeper(settings or self.settings)) for _ in range(count)]
            yield stops

    @asynccontextmanager
    async def _keeper(self, settings: Settings) -> AsyncIterator[Stop]:
        async with open_engine(settings, audits=False) as engine:
            stop = Stop()
            use = UseCases(engine, settings, alarm=self.alarm)
            sending = asyncio.create_task(use.webhook_dispatcher(partial(event_document, event_names(use))).run(stop))
            try:
                yield stop
            finally:
                stop.set()
                await sending


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent otherwise, only sooner."""
    monkeypatch.setattr(dispatcher, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(endpoint_delivery, "TURN_S", 0.05)
    monkeypatch.setattr(endpoint_delivery, "LINGER_S", 0.2)
    monkeypatch.setattr(webhook_retries, "RETRY_S_MIN", 0.05)
    monkeypatch.setattr(webhook_retries, "RETRY_S_MAX", 0.1)


@pytest.fixture
def settings(redis_url: str, sqlite_in_use: str) -> Settings:
    return replace(settings_of_a_node(redis_url, sqlite_in_use), webhook_private="on")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().running() as running:
        yield running


@pytest.fixture
async def shop(settings: Settings, engine: Engine, receiver: Receiver) -> AsyncIterator[Shop]:
    node = await make_node(settings, engine)
    yield Shop(node, receiver, settings)
    await node.http.aclose()
