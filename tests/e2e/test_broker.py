"""`seckill up` with RabbitMQ, which is killed in the middle of a sale."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.e2e.checks import check_conservation, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.fixtures.rabbitmq import RabbitServer
from tests.patience import PATIENCE_S

BUYERS = 600


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # the other test is on SQLite
@pytest.mark.timeout(1800)
async def test_a_hundred_units_with_the_broker_killed_in_the_middle(
    folder: Path, database_url: str, mortal_rabbit: RabbitServer
) -> None:
    """The API does not notice: buyers get clear answers only, and every order arrives when the broker is back."""
    stack = Stack(folder, database_url=database_url, settings={"SECKILL_BROKER_URL": mortal_rabbit.url()})
    async with running(stack, SECKILL_CLAIM_IDLE_S="1"):
        sale = await stack.create_sale(units=100)
        crowd = Crowd(stack, sale)
        await asyncio.gather(*(crowd.buy(f"early-{i}") for i in range(30)))
        mortal_rabbit.kill()
        try:
            await asyncio.gather(*(crowd.buy(f"buyer-{i}") for i in range(BUYERS)))
            # `timeout`: this process is busy with all the buyers, and was too slow in sending a claim.
            assert set(crowd.codes) - {"timeout"} == {"accepted", "sold_out"}
            assert crowd.codes["accepted"] == 100
            async with stack.engine() as engine:
                (found,) = await engine.ledger.sales()
                tally = await engine.ledger.tally(found.round.id)
                assert tally is not None
                assert tally.sold < 100, "some of them wait for the broker"
        finally:
            mortal_rabbit.start()  # from this thread: it dies with the thread that starts it
        async with stack.engine() as engine:
            await until_drained(engine)
            view = await check_conservation(engine, found, stack.settings.database_url, crowd.orders)
            assert (view.available, view.admitted) == (0, 100)
        assert stack.logged("RabbitMQ cannot be reached") > 0
        assert stack.stop() == 0


@pytest.mark.timeout(1800)
async def test_the_setting_changes_while_buyers_go_on(folder: Path, rabbit: RabbitServer) -> None:
    """Everything is killed with orders in flight and started with the other setting: streams, broker, streams. With
    the broker, the relay dies first with entries in hand and then with entries confirmed and not noted."""
    stack = Stack(folder, settings={"SECKILL_CLAIM_IDLE_S": "1"})
    async with running(stack):
        sale = await stack.create_sale(units=1_000_000)
        crowd = Crowd(stack, sale)
        enough = asyncio.Event()
        buying = asyncio.create_task(crowd.keep_buying(enough, 12))
        try:
            await _until_bought(crowd, 100)
            for failpoint in ("relay.source.read.after", "relay.courier.post.after"):
                stack.kill_everything()
                await stack.start(SECKILL_BROKER_URL=rabbit.url(), SECKILL_FAILPOINTS=f"{failpoint}=kill")
                await _until_bought(crowd, len(crowd.orders) + 100)
                await _until_logged(stack, f"failpoint {failpoint}: kill")
            stack.kill_everything()
            await stack.start()
            await _until_bought(crowd, len(crowd.orders) + 100)
        finally:
            enough.set()
            await buying
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            await check_conservation(engine, found, stack.settings.database_url, crowd.orders)
        assert crowd.changed == []


async def _until_logged(stack: Stack, text: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not stack.logged(text):
        assert time.monotonic() < deadline_s, f"no {text!r} in the log: {stack.log.read_text()[-4000:]}"
        await asyncio.sleep(0.05)


async def _until_bought(crowd: Crowd, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(crowd.orders) < count:
            await asyncio.sleep(0.02)
