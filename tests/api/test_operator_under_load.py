"""Pause, resume, add units and close while claims pour in on two nodes: from the answer on it is exact."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine, open_engine
from seckill.engine.orders.worker import run_worker
from seckill.loops import Stop
from seckill.settings import Settings
from tests.api.conftest import OPERATOR, Node, make_node
from tests.backends.sql.looking import order_rows
from tests.patience import PATIENCE_S

BUYERS_AT_ONCE = 4
# This many refusals must come while nothing may be sold.
REFUSALS = 20


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    return replace(settings, database_url=ledger_url)


@pytest.fixture
async def nodes(settings: Settings) -> AsyncIterator[list[Node]]:
    """Two with all their loops, and a worker."""
    stop = Stop()
    async with AsyncExitStack() as opened:
        made = [await make_node(settings, await opened.enter_async_context(open_engine(settings))) for _ in range(2)]
        for node in made:
            opened.push_async_callback(node.http.aclose)
            await opened.enter_async_context(node.api.running())
        working = asyncio.create_task(run_worker(made[0].worker, stop))
        yield made
        stop.set()
        await working


@dataclass
class Pouring:
    nodes: list[Node]
    sale: dict[str, Any]
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    accepted: set[str] = field(default_factory=set)
    codes: Counter[str] = field(default_factory=Counter)
    numbers: Any = field(default_factory=itertools.count)

    async def buy(self) -> None:
        while not self.enough.is_set():
            number = next(self.numbers)
            answer = await self.nodes[number % 2].buy(self.sale, f"buyer-{number}")
            if answer.status_code == 202:
                self.accepted.add(answer.json()["order_id"])
            else:
                self.codes[answer.json()["code"]] += 1
            await asyncio.sleep(0.01)  # all of this is one event loop, and the operator is in it too

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                await asyncio.sleep(0.01)

    async def admitted(self) -> int:
        engine: Engine = self.nodes[0].engine
        view = await engine.gate.inspect((await engine.ledger.sales())[0].round.ref)
        assert view is not None
        assert view.available == view.total - view.admitted + view.released >= 0
        return view.admitted

    async def check_that_nothing_is_sold(self, code: str) -> None:
        before, refused = await self.admitted(), self.codes[code]
        await self.until(lambda: self.codes[code] >= refused + REFUSALS)
        assert await self.admitted() == before

    async def act(self, node: int, verb: str) -> None:
        done = await self.nodes[node].http.post(f"/v1/sales/{self.sale['id']}/{verb}", headers=OPERATOR)
        assert done.status_code == 200, done.text

    async def add(self, units: int, times: int) -> None:
        """Adds units from both nodes at once."""
        url = f"/v1/sales/{self.sale['id']}"
        adding = [self.nodes[i % 2].http.patch(url, json={"add_units": units}, headers=OPERATOR) for i in range(times)]
        assert [answer.status_code for answer in await asyncio.gather(*adding)] == [200] * times


async def test_the_operators_hand_is_exact_under_load(nodes: list[Node], ledger: SqlLedger) -> None:
    pouring = Pouring(nodes, await nodes[0].create(units=60))
    await nodes[1].refresh()
    buying = [asyncio.create_task(pouring.buy()) for _ in range(BUYERS_AT_ONCE)]
    await pouring.until(lambda: len(pouring.accepted) >= 10)
    await pouring.act(0, "pause")
    await pouring.check_that_nothing_is_sold("paused")
    await pouring.add(units=5, times=6)
    await pouring.check_that_nothing_is_sold("paused")
    await pouring.act(1, "resume")
    await pouring.add(units=5, times=6)  # 120 in all, while some are being sold
    await pouring.until(lambda: len(pouring.accepted) == 120)
    await pouring.check_that_nothing_is_sold("sold_out")
    await pouring.add(units=1, times=5)
    await pouring.until(lambda: len(pouring.accepted) == 125)
    await pouring.check_that_nothing_is_sold("sold_out")
    await pouring.add(units=100_000, times=1)
    await pouring.until(lambda: len(pouring.accepted) >= 140)
    await pouring.act(1, "close")
    await pouring.check_that_nothing_is_sold("ended")
    pouring.enough.set()
    await asyncio.gather(*buying)

    assert set(pouring.codes) <= {"paused", "sold_out", "ended"}
    assert len(pouring.accepted) == await pouring.admitted()
    (sale,) = await ledger.sales()
    assert sale.round.total == 100_125
    async with asyncio.timeout(PATIENCE_S):
        while await nodes[0].engine.transport.backlog([sale.round.lane]):
            await asyncio.sleep(0.01)
    ids = [nodes[0].engine.order_ids.encode(row.id) for row in await order_rows(ledger)]
    assert sorted(ids) == sorted(pouring.accepted)
