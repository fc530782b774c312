"""The gate loses everything in the middle of a sale, with everything running."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from seckill.backends.redis.gate import connect
from tests.e2e.checks import check_conservation, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # one of the two, to keep the run short
async def test_flushall_in_the_middle_of_a_sale(folder: Path, database_url: str) -> None:
    """Never "sold out", nothing sold twice, and the sale goes on by itself under a new epoch (F3)."""
    async with running(Stack(folder, database_url=database_url)) as stack:
        sale = await stack.create_sale(units=120)
        crowd = Crowd(stack, sale)
        await asyncio.gather(*(crowd.buy(f"early-{i}") for i in range(50)))
        async with stack.engine() as engine:
            await until_drained(engine)
        (keeper,) = stack.pids("keeper")
        os.kill(keeper, signal.SIGSTOP)  # or it might be quicker than the claim that finds nothing
        client = connect(stack.settings.redis_url)
        await client.flushall()
        await client.aclose()
        while (refused := await crowd.press("impatient")).json()["code"] == "unknown":
            pass  # no answer in time
        assert (refused.status_code, refused.json()["code"]) == (503, "not_ready")
        os.kill(keeper, signal.SIGCONT)
        # `buy` repeats as long as the answer is 503.
        await asyncio.gather(*(crowd.buy(f"late-{i}") for i in range(100)))
        assert len(crowd.orders) == 120
        assert crowd.codes == {"accepted": 120, "sold_out": 30}
        again = await crowd.press("early-7", key="key of early-7")
        assert (again.status_code, again.json()["order_id"]) == (202, crowd.orders["early-7"])
        async with stack.engine() as engine:
            await until_drained(engine)
            (found,) = await engine.ledger.sales()
            assert found.round.epoch > 1
            await check_conservation(engine, found, stack.settings.database_url, crowd.orders)
        assert stack.stop() == 0
