"""A sale every day, with real processes: the keeper goes on by itself, also after it was killed in the middle."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seckill.bootstrap.engine import Engine
from seckill.engine.sale_cache import ROUNDS_KEPT
from tests.e2e.checks import rows
from tests.e2e.crowd import Crowd
from tests.e2e.stack import Stack, running
from tests.patience import PATIENCE_S


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)  # the ledger tests have the others
async def test_the_next_round_is_there_ahead_of_its_time_and_once(folder: Path, database_url: str) -> None:
    begins = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    window = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=1)).isoformat()}
    stack = Stack(folder, api=1, database_url=database_url)
    async with running(stack, SECKILL_FAILPOINTS="ledger.add_round.inside=kill"):
        sales = [await stack.create_sale(units=5, repeat="daily", timezone="Asia/Shanghai", **window) for _ in range(2)]
        async with asyncio.timeout(PATIENCE_S):
            while not stack.logged("failpoint ledger.add_round.inside: kill"):
                await asyncio.sleep(0.05)
        stack.kill_everything()
        await stack.start()
        async with stack.engine() as engine, asyncio.timeout(PATIENCE_S):
            while not await all_open(engine, 2 * len(sales)):
                await asyncio.sleep(0.1)
        found = await rows(
            stack.settings.database_url, "SELECT sale_id, begins_ms FROM rounds ORDER BY sale_id, ordinal"
        )
        first_ms = int(begins.timestamp() * 1000)
        expected = [(sale, first_ms + day * 86_400_000) for sale in range(1, len(sales) + 1) for day in range(2)]
        assert [tuple(row) for row in found] == expected
        crowd = Crowd(stack, sales[0])
        assert (await crowd.press("ann")).json()["round"] == sales[0]["round"], "today's is still the one that sells"


async def all_open(engine: Engine, count: int) -> bool:
    known = await engine.ledger.sales(rounds_max=ROUNDS_KEPT)
    views = [await engine.gate.inspect(sale.round.ref) for sale in known]
    return len(known) == count and all(view is not None and view.available == 5 for view in views)
