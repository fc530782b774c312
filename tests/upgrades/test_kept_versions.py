"""This version reads, serves and finishes what earlier versions have left behind."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiormq
import pytest
from aiormq import spec

from seckill.audit.report import Verdict
from seckill.backends.rabbitmq.connections import Link
from seckill.backends.rabbitmq.topology import Topology
from seckill.backends.redis.gate import connect
from seckill.backends.sql.migration import migrate
from seckill.backends.sql.schema import Schema, schema_of
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.orders.worker import run_worker
from seckill.loops import Stop
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, buyer, keeping, make_node, settings_of_a_node
from tests.api.test_broker import at_work
from tests.fixtures.rabbitmq import RabbitServer
from tests.patience import PATIENCE_S
from tests.upgrades.gate_copy import put_back
from tests.upgrades.keep_version import BROKER, STREAMS
from tests.upgrades.kept_code import VERSIONS
from tests.upgrades.names import Names, names

KEPT = sorted(path.name for path in VERSIONS.iterdir())
EACH = pytest.mark.parametrize("version", KEPT)


def read(version: str, *path: str) -> Any:
    return json.loads(VERSIONS.joinpath(version, *path).read_text())


def put_back_ledger(version: str, kind: str, path: Path) -> str:
    with sqlite3.connect(path) as connection:
        connection.executescript((VERSIONS / version / kind / "ledger.sql").read_text())
    connection.close()
    return f"sqlite:///{path}"


@dataclass
class Inherited:
    node: Node
    engine: Engine
    settings: Settings
    told: dict[str, Any]

    async def look(self, user: str) -> dict[str, Any]:
        order_id = self.told["orders"][user]["order_id"]
        answer = await self.node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))
        assert answer.status_code == 200, answer.text
        order: dict[str, Any] = answer.json()
        return order

    async def until(self, user: str, state: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while (order := await self.look(user))["state"] != state:
                assert order["state"] != "failed", f"{user}'s order was given up"
                await asyncio.sleep(0.02)
        return order

    async def pay(self, user: str) -> None:
        order_id = self.told["orders"][user]["order_id"]
        paid = await self.node.http.post(f"/v1/orders/{order_id}/pay", headers=buyer(user))
        assert (paid.status_code, paid.json()["state"]) == (200, "paid"), paid.text

    async def repeat(self, user: str, **other: Any) -> Any:
        """The buyer presses again, with the key of then."""
        order = self.told["orders"][user]
        sale = self.told["sales"][order["sale"]]
        return await self.node.buy(sale, user, f"key-of-{user}", **(order["body"] | other))

    async def broken(self) -> set[str]:
        """Returns the names of the invariants that the audit finds broken."""
        assert self.engine.auditor is not None
        report = await self.engine.auditor.read(full=True)
        return {result.invariant.name for result in report.results if result.verdict is not Verdict.HOLDS}


@asynccontextmanager
async def inherit(
    version: str, kind: str, redis_url: str, tmp_path: Path, broker_url: str = ""
) -> AsyncIterator[Inherited]:
    """Takes it over as an operator does: `seckill migrate`, then the new version starts on the same servers."""
    url = put_back_ledger(version, kind, tmp_path / "ledger.db")
    await migrate(url)
    assert await schema_of(url) is Schema.CURRENT
    redis = connect(redis_url)
    await put_back(redis, read(version, kind, "gate.json"))
    await redis.aclose()
    settings = replace(settings_of_a_node(redis_url, url), broker_url=broker_url, claim_idle_s=1, retry_delays_s=(0.1,))
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        yield Inherited(node, engine, settings, read(version, kind, "told.json"))
        await node.http.aclose()


@asynccontextmanager
async def running(world: Inherited) -> AsyncIterator[None]:
    """A worker and a keeper, as their roles run them."""
    stop = Stop()
    async with keeping(world.settings, world.engine):
        working = asyncio.create_task(run_worker(UseCases(world.engine, world.settings).worker(stop), stop))
        try:
            yield
        finally:
            stop.set()
            await working


@EACH
async def test_what_is_in_the_books_is_served(version: str, redis_url: str, tmp_path: Path) -> None:
    """It is so before any worker runs: every order is as its buyer left it, by the ids that are in buyers' hands."""
    async with inherit(version, STREAMS, redis_url, tmp_path) as world:
        for user, order in world.told["orders"].items():
            shown = await world.look(user)
            assert shown["state"] == ("paid" if order["state"] == "free" else order["state"]), user
            assert shown["sale_id"] == world.told["sales"][order["sale"]]["id"]
        assert (await world.look("ann"))["metadata"] == {"cart": "c-1"}
        assert (await world.look("fay"))["codes"] == ["C-1"]
        for title, sale in world.told["sales"].items():
            shown = (await world.node.http.get(f"/v1/sales/{sale['id']}")).json()
            assert (shown["title"], [item["item_id"] for item in shown.get("items", [])]) == (title, sale["items"])
        hooks = (await world.node.http.get("/v1/admin/webhooks", headers=OPERATOR)).json()["webhooks"]
        assert [hook["id"] for hook in hooks] == [world.told["webhook"]]
        events = (await world.node.http.get("/v1/admin/events?limit=100", headers=OPERATOR)).json()["events"]
        bought = {event["data"]["order_id"] for event in events if event["type"] == "order.created"}
        assert bought == {o["order_id"] for o in world.told["orders"].values() if o["state"] != "queued"}
        assert await world.broken() == {"progress"}, "no worker has run since then"


@EACH
async def test_keys_and_limits_are_recognised(version: str, redis_url: str, tmp_path: Path) -> None:
    async with inherit(version, STREAMS, redis_url, tmp_path) as world:
        for user, order in world.told["orders"].items():
            again = await world.repeat(user)
            assert (again.status_code, again.json()["order_id"]) == (202, order["order_id"]), (user, again.text)
        assert (await world.repeat("ann", quantity=2)).json()["code"] == "key_reused"
        sales = world.told["sales"]
        for sale, user in (("phone", "bob"), ("red", "gus"), ("blue", "gus"), ("red", "ned")):
            assert (await world.node.buy(sales[sale], user)).json()["code"] == "limit_reached", (sale, user)
        assert (await world.node.buy(sales["phone"], "ann")).status_code == 202, "of two, one is hers"


@EACH
async def test_what_was_queued_is_written_and_what_was_begun_is_finished(
    version: str, redis_url: str, tmp_path: Path
) -> None:
    async with inherit(version, STREAMS, redis_url, tmp_path) as world, running(world):
        for user in ("jim", "kay", "leo", "ned"):  # one of them was in the hands of a worker that was killed
            await world.until(user, "unpaid")
        assert (await world.look("jim"))["metadata"] == {"cart": "c-2"}
        assert len((await world.until("mia", "paid"))["codes"]) == 1
        for user in ("bob", "eve", "jim", "leo"):
            await world.pay(user)
        tea = world.told["entries"]["hal"]
        async with asyncio.timeout(PATIENCE_S):
            while "order_id" not in (await world.node.http.get(f"/v1/entries/{tea}", headers=buyer("hal"))).json():
                await asyncio.sleep(0.02)
        gus = world.told["orders"]["gus"]["order_id"]
        assert (await world.node.http.post(f"/v1/orders/{gus}/cancel", headers=buyer("gus"))).status_code == 200
        await sell_out(world, "red", units=5)
        await sell_out(world, "phone", units=20 - 5)
        assert await world.broken() == set()


async def sell_out(world: Inherited, title: str, units: int) -> None:
    """Sells the units that are left or have come back, and not one more."""
    sale = world.told["sales"][title]
    sold: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        for n in itertools.count():
            answer = await world.node.buy(sale, f"late-{n}")
            await world.node.refresh()
            if answer.status_code == 202:
                sold.append(answer.json()["order_id"])
            elif len(sold) >= units:
                break
    assert len(sold) == units
    custody: dict[str, Any] = {}
    async with asyncio.timeout(PATIENCE_S):
        while custody.get("queued", 1) or custody["available"] or custody["returning"]:
            custody = (await world.node.http.get(f"/v1/sales/{sale['id']}/custody", headers=OPERATOR)).json()
    assert custody["sold"] == custody["total"]


@EACH
async def test_what_was_in_the_broker_is_written_once(
    version: str, redis_url: str, tmp_path: Path, rabbit: RabbitServer
) -> None:
    await post(rabbit.url(), read(version, BROKER, "messages.json"))
    async with (
        inherit(version, BROKER, redis_url, tmp_path, rabbit.url()) as world,
        at_work(world.settings, world.engine),
    ):
        for user in world.told["orders"]:
            await world.until(user, "unpaid")
            await world.pay(user)
        listed = (await world.node.http.get("/v1/admin/orders", headers=OPERATOR)).json()["orders"]
        assert len(listed) == len(world.told["orders"])
        async with asyncio.timeout(PATIENCE_S):
            while await world.engine.transport.backlog(range(world.settings.lanes)):
                await asyncio.sleep(0.02)
        assert await world.broken() == set()


async def post(url: str, messages: list[dict[str, Any]]) -> None:
    """Posts into the queues as they were declared then, because the broker refuses other declarations."""
    ledger = messages[0]["queue"].split(".")[1]
    link = Link(url, "test")
    await Topology(ledger, ()).declare(link)
    await link.close()
    connection = await aiormq.connect(url)
    channel = await connection.channel(publisher_confirms=True)
    for message in messages:
        names = ("delivery_mode", "content_type", "message_id", "headers")
        properties = spec.Basic.Properties(**{name: message[name] for name in names})
        await channel.basic_publish(
            message["body"].encode(), routing_key=message["queue"], properties=properties, mandatory=True
        )
    await connection.close()


@EACH
def test_no_name_is_gone_and_nothing_new_is_demanded(version: str) -> None:
    before: Names = read(version, "names.json")
    now = names()
    gone = {kind: sorted(set(before[kind]) - set(now[kind])) for kind in before if kind != "demanded"}
    assert not any(gone.values()), gone
    old = tuple(f"{route} " for route in before["routes"])
    assert {name for name in now["demanded"] if name.startswith(old)} <= set(before["demanded"])


def test_the_names_are_those_that_shops_use() -> None:
    """So that the comparison has something to compare."""
    found = names()
    assert {
        "POST /v1/sales .title",
        "POST /v1/sales/{sale_id}/orders .quantity",
        "POST /v1/sales/{sale_id}/orders header Idempotency-Key",
    } <= set(found["sent"]), found["sent"][:20]
    assert {"GET /v1/orders/{order_id} 200 .state", "GET /v1/admin/events 200 .events[].type"} <= set(found["answered"])
    assert {"POST /v1/sales .title"} <= set(found["demanded"])
    assert {"sold_out", "key_reused"} <= set(found["codes"])
