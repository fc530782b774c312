"""An account takes the unit and never pays, again and again, against people who want to buy it (S18).

Real Valkey, a worker and a keeper with all their loops. The hoarder presses without a pause, the others now and then.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine
from seckill.engine.orders.worker import run_worker
from seckill.loops import Stop
from seckill.settings import Settings
from tests.api.conftest import Node, buyer, keeping
from tests.backends.sql.looking import write

HONEST = [f"honest-{i}" for i in range(5)]
HOARDER = "hoarder"
PATIENCE_S = 120
# The hoarder does not come back within a test, however slow the machine is.
LONG_S = 3600


@pytest.fixture
async def shop(node: Node, settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    async with keeping(settings, engine), working(node), node.api.running(), asyncio.timeout(PATIENCE_S):
        yield node


@asynccontextmanager
async def working(node: Node) -> AsyncIterator[None]:
    stop = Stop()
    task = asyncio.create_task(run_worker(node.worker, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def state(node: Node, user: str, order_id: str) -> str:
    found: dict[str, Any] = (await node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))).json()
    return str(found["state"])


async def press(node: Node, sale: dict[str, Any], user: str, every_s: float, answers: Counter[str]) -> str:
    """Presses until there is an order."""
    while True:
        answer = (await node.buy(sale, user)).json()
        answers[answer.get("code", "accepted")] += 1
        if "order_id" in answer:
            return str(answer["order_id"])
        await asyncio.sleep(every_s)


async def buy_and_pay(node: Node, sale: dict[str, Any], user: str) -> str:
    order_id = await press(node, sale, user, 0.05, Counter())
    while (await node.http.post(f"/v1/orders/{order_id}/pay", headers=buyer(user))).status_code != 200:
        assert await state(node, user, order_id) in ("queued", "unpaid"), "it was not written a moment ago"
    return user


async def let_lapse(node: Node, order_id: str) -> None:
    """The time to pay is over: the keeper finds it. (A sale with little time to pay would hurry the others as well.)"""
    while await state(node, HOARDER, order_id) == "queued":
        await asyncio.sleep(0.05)
    ledger = node.engine.ledger
    assert isinstance(ledger, SqlLedger)
    number = node.engine.order_ids.decode(order_id)
    await write(ledger, f"UPDATE orders SET expires_ms = 1 WHERE id = {number}")


async def test_after_a_lapse_another_buyer_gets_the_unit(shop: Node) -> None:
    sale = await shop.create(units=1, cool_down_s=LONG_S)
    answers: Counter[str] = Counter()
    held = await press(shop, sale, HOARDER, 0.0, answers)
    hoarding = asyncio.create_task(press(shop, sale, HOARDER, 0.0, answers))
    buying: list[asyncio.Task[str]] = []
    try:
        await let_lapse(shop, held)
        while not answers["cooling_down"]:  # it presses all the time, and no other buyer does yet
            assert not hoarding.done(), f"the hoarder has it again: {answers}"
            await asyncio.sleep(0.01)
        buying = [asyncio.create_task(buy_and_pay(shop, sale, user)) for user in HONEST]
        done, _ = await asyncio.wait([*buying, hoarding], return_when=asyncio.FIRST_COMPLETED)
        assert hoarding not in done, f"the hoarder has it again: {answers}"
        assert next(iter(done)).result() in HONEST
    finally:
        for task in (*buying, hoarding):
            task.cancel()
    assert await state(shop, HOARDER, held) == "expired"
    assert answers["accepted"] == 1


async def test_control_without_a_cool_down_the_hoarder_takes_it_again(shop: Node) -> None:
    """Nothing would stop it: if no other buyer is quicker, the same account gets the unit again and again."""
    sale = await shop.create(units=1, cool_down_s=0)
    answers: Counter[str] = Counter()
    orders = set()
    for _ in range(3):
        order_id = await press(shop, sale, HOARDER, 0.0, answers)
        await let_lapse(shop, order_id)
        orders.add(order_id)
    assert len(orders) == 3
    assert answers["cooling_down"] == 0
