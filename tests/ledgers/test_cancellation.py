"""A task may be cancelled at any moment, and whoever comes next must not suffer for it."""

import asyncio
import random
from contextlib import suppress

from sqlalchemy.ext.asyncio import AsyncEngine

from seckill.ledgers import SqlLedger
from tests.ledgers.looking import counts
from tests.ledgers.making import admission, draft


async def cancel_after(delay_s: float, task: asyncio.Task[object]) -> bool:
    await asyncio.sleep(delay_s)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()


def checked_out(engine: AsyncEngine) -> int:
    return engine.pool.checkedout()  # type: ignore[attr-defined, no-any-return]


async def test_cancelled_at_random(ledger: SqlLedger) -> None:
    chance = random.Random(4)
    sale = await ledger.create_sale(draft(units=1000), lane=0)
    orders = [admission(sale.round, counter) for counter in range(1, 201)]
    cancelled = []
    for start in range(0, len(orders), 5):
        recording = [asyncio.create_task(ledger.record([order])) for order in orders[start : start + 5]]
        reading = [asyncio.create_task(ledger.sales()) for _ in range(3)]
        outcomes = [cancel_after(chance.uniform(0, 0.02), task) for task in [*recording, *reading]]  # type: ignore[arg-type]
        cancelled += await asyncio.gather(*outcomes)
    assert any(cancelled)
    assert not all(cancelled)

    assert checked_out(ledger.database.writers) == checked_out(ledger.database.readers) == 0
    async with asyncio.timeout(5):
        recorded = await ledger.record(orders)
    assert recorded.new + recorded.repeated == len(orders)
    assert recorded.repeated > 0
    assert await counts(ledger, sale.round.id) == (200, 200, 200)
    assert len(await asyncio.gather(*[ledger.sales() for _ in range(20)])) == 20
