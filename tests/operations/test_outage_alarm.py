"""No outage goes unnoticed: operators hear when no one can buy or nothing can be written, once, and when it is over."""

import asyncio
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import redis.asyncio as redis

from seckill.backends.sql import ledger as sql_ledger
from seckill.backends.sql import sqlite
from seckill.bootstrap.engine import Engine, open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.alarm_cause import AlarmCause
from seckill.engine.readiness import Parts, StoreHealth
from seckill.errors import LedgerUnavailable
from seckill.operations.outage_alarm import AFTER_S, OutageAlarm
from seckill.settings import Settings
from tests.api.conftest import Node, make_node, settings_of_a_node
from tests.fixtures.valkey import OwnValkey
from tests.patience import PATIENCE_S


class Heard(Alarm):
    def __init__(self) -> None:
        super().__init__("")
        self.all: list[tuple[str, str]] = []

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        assert lasting
        self.all.append(("raised", what))

    async def resolve(self, what: str, facts: Mapping[str, object], *, ends: str = "") -> None:
        self.all.append(("over", ends))


class Stores:
    """A readiness and a ledger that are as the test says, and a clock."""

    def __init__(self) -> None:
        self.gate = StoreHealth.OK
        self.ledger: Exception | None = None
        self.lost: Collection[int] = ()
        self.now_s = 0.0
        self.heard = Heard()
        self.watch = OutageAlarm(cast(Any, self), self, lambda: self.lost, self.heard, lambda: self.now_s)

    async def look(self) -> Parts:
        return Parts(self.gate, StoreHealth.OK)

    async def try_writing(self) -> None:
        if self.ledger is not None:
            raise self.ledger

    async def lasts(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.now_s += 1
            await self.watch.step()


def put(stores: Stores, trouble: AlarmCause) -> None:
    match trouble:
        case AlarmCause.GATE_AWAY:
            stores.gate = StoreHealth.AWAY
        case AlarmCause.GATE_FULL:
            stores.gate = StoreHealth.FULL
        case AlarmCause.ROUNDS_LOST:
            stores.lost = {7}
        case _:
            stores.ledger = LedgerUnavailable("away")


TROUBLES = [AlarmCause.GATE_AWAY, AlarmCause.GATE_FULL, AlarmCause.ROUNDS_LOST, AlarmCause.LEDGER_AWAY]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
async def test_an_outage_is_told_once_and_so_is_its_end(trouble: AlarmCause) -> None:
    stores = Stores()
    await stores.lasts(3)
    put(stores, trouble)
    await stores.lasts(AFTER_S)
    assert stores.heard.all == [], "a server that is started again is no outage"
    await stores.lasts(AFTER_S)
    assert stores.heard.all == [("raised", trouble)]
    stores.gate, stores.ledger, stores.lost = StoreHealth.OK, None, ()
    await stores.lasts(3)
    assert stores.heard.all == [("raised", trouble), ("over", trouble)]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
async def test_hiccups_do_not_add_up(trouble: AlarmCause) -> None:
    stores = Stores()
    for _ in range(9):
        put(stores, trouble)
        await stores.lasts(AFTER_S - 1)
        stores.gate, stores.ledger, stores.lost = StoreHealth.OK, None, ()
        await stores.lasts(1)
    assert stores.heard.all == []


async def test_whatever_the_database_says_it_was_not_written() -> None:
    stores = Stores()
    stores.ledger = RuntimeError("an error of the driver that nobody knows")
    await stores.lasts(2 * AFTER_S)
    assert stores.heard.all == [("raised", AlarmCause.LEDGER_AWAY)]


class Place:
    """A keeper's watch over real servers, with a clock that the test moves."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self.now_s = 0.0
        self.heard = Heard()
        self.use = UseCases(engine, settings, alarm=self.heard)
        lost = self.use.losses.undamaged
        self.watch = OutageAlarm(self.use.readiness, engine.ledger, lost, self.heard, lambda: self.now_s)

    async def lasts(self) -> list[tuple[str, str]]:
        """Returns the alarms that are heard when the present state lasts long enough."""
        await self.watch.step()
        self.now_s += AFTER_S
        await self.watch.step()
        heard, self.heard.all = self.heard.all, []
        return heard


async def until_gate_is(node: Node, health: str) -> int:
    """A look is a moment old at most. Returns the status."""
    async with asyncio.timeout(PATIENCE_S):
        while (ready := await node.http.get("/readyz")).json()["gate"] != health:
            await asyncio.sleep(0.05)
    return ready.status_code


async def test_a_real_gate_that_is_full_lost_or_away(own_valkey: OwnValkey, sqlite_in_use: str) -> None:
    server = await own_valkey(durability="fast")
    settings = replace(settings_of_a_node(server.url, sqlite_in_use), gate_timeout_s=1.0)
    async with open_engine(settings) as engine, redis.Redis.from_url(server.url) as client:
        node = await make_node(settings, engine)
        sale = await node.create()
        place = Place(settings, engine)
        await place.use.losses.find()
        assert await place.lasts() == []

        await client.config_set("maxmemory", 1)
        refused = await node.buy(sale, "ann")
        assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")
        assert await until_gate_is(node, "full") == 503, "a node that cannot sell says why"
        assert await place.lasts() == [("raised", AlarmCause.GATE_FULL)]
        await client.config_set("maxmemory", 0)
        assert (await node.buy(sale, "ann")).status_code == 202
        assert await until_gate_is(node, "ok") == 200
        assert await place.lasts() == [("over", AlarmCause.GATE_FULL)]

        await client.flushall()
        await place.use.losses.find()
        assert await place.lasts() == [("raised", AlarmCause.ROUNDS_LOST)]

        await server.stop()
        assert sorted(await place.lasts()) == [("over", AlarmCause.ROUNDS_LOST), ("raised", AlarmCause.GATE_AWAY)]
        await node.http.aclose()


async def test_a_real_database_that_others_have_locked(
    redis_url: str, sqlite_in_use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers all reads, so nothing else notices."""
    monkeypatch.setattr(sql_ledger, "PROBE_WITHIN_S", 0.5)
    monkeypatch.setattr(sqlite, "BUSY_WAIT_S", 0.5)
    settings = settings_of_a_node(redis_url, sqlite_in_use)
    async with open_engine(settings) as engine:
        place = Place(settings, engine)
        assert await place.lasts() == []
        with sqlite3.connect(Path(sqlite_in_use.partition(":///")[2])) as other:
            other.execute("BEGIN IMMEDIATE")
            await engine.ledger.ping()
            assert await place.lasts() == [("raised", AlarmCause.LEDGER_AWAY)]
            other.rollback()
        assert await place.lasts() == [("over", AlarmCause.LEDGER_AWAY)]
