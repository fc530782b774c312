"""A sale over several lanes whose API processes are killed while units move from one lane to another."""

import asyncio
import itertools
from pathlib import Path

import pytest

from seckill.domain.lane_shares import place_of
from tests.e2e.checks import check_conservation, until_drained
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running

LANES = 8
UNITS = 64
BUYERS = 96
WINDOWS = {"lanes.give.after": 0.15, "lanes.take.after": 0.3}
SALES_MAX = 10


async def test_deaths_while_units_move_leave_all_sold_and_none_twice(folder: Path) -> None:
    """All buyers belong to two lanes, so most of the units have to come from the other six."""
    failpoints = ",".join(f"{name}=kill:{chance}" for name, chance in WINDOWS.items())
    stack = Stack(folder)
    names = (f"buyer-{i}" for i in itertools.count())
    users = list(itertools.islice((name for name in names if place_of(name, LANES) in (1, 4)), BUYERS))
    async with running(stack, SECKILL_FAILPOINTS=failpoints):
        for _ in range(SALES_MAX):
            crowd = Crowd(stack, await stack.create_sale(units=UNITS, lanes=LANES))
            await asyncio.gather(*(crowd.buy(user) for user in users))
            assert crowd.codes == {"accepted": UNITS, "sold_out": BUYERS - UNITS}
            assert crowd.changed == []
            async with stack.engine() as engine:
                await until_drained(engine)
                sale = (await engine.ledger.sales())[-1]
                await check_conservation(engine, sale, stack.settings.database_url, crowd.orders)
            if all(stack.logged(f"failpoint {name}: kill") for name in WINDOWS):
                break
        else:
            pytest.fail("not every window was hit")
        assert stack.stop() == 0
