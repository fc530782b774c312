"""A task may be cancelled at any moment, and the next one must not suffer for it."""

import asyncio
import random
from contextlib import suppress

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.postgres import POOL_SIZE
from seckill.engine.shared_look import SharedLook
from seckill.errors import LedgerRefused, LedgerUnavailable
from tests.backends.sql.looking import counts, write
from tests.backends.sql.making import admission, draft
from tests.patience import PATIENCE_S


async def cancel_after(delay_s: float, task: asyncio.Task[object]) -> bool:
    await asyncio.wait([task], timeout=delay_s)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()


def checked_out(engine: AsyncEngine) -> int:
    return engine.pool.checkedout()  # type: ignore[attr-defined, no-any-return]


async def test_cancelled_at_random(ledger: SqlLedger) -> None:
    chance = random.Random(4)
    sale = await ledger.create_sale(draft(units=1000), lane=0)
    connects: list[object] = []
    event.listen(ledger.database.writers.sync_engine, "connect", lambda *_: connects.append(1))
    orders = [admission(sale.round, counter) for counter in range(1, 201)]
    cancelled = []
    for start in range(0, len(orders), 5):
        recording = [asyncio.create_task(ledger.record([order])) for order in orders[start : start + 5]]
        reading = [asyncio.create_task(ledger.sales()) for _ in range(3)]
        cancelled += await asyncio.gather(
            # Some are left to finish, however slow the machine is.
            *[cancel_after(chance.choice((chance.uniform(0, 0.03), 30)), task) for task in [*recording, *reading]]
        )
    assert any(cancelled)
    assert not all(cancelled)

    async with asyncio.timeout(PATIENCE_S):
        recorded = await ledger.record(orders)
    assert recorded.new + recorded.repeated == len(orders)
    assert await counts(ledger, sale.round.id) == (200, 200, 200)
    assert len(await asyncio.gather(*[ledger.sales() for _ in range(20)])) == 20
    assert len(connects) < POOL_SIZE, "no connection was lost"
    assert ledger.tasks == set()
    assert checked_out(ledger.database.writers) == checked_out(ledger.database.readers) == 0


async def test_what_was_begun_is_finished(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    recording = asyncio.create_task(ledger.record([admission(sale.round, 1)]))
    await asyncio.sleep(0)
    recording.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recording
    await asyncio.wait(ledger.tasks)
    assert await counts(ledger, sale.round.id) == (1, 1, 1)


async def test_a_refusal_that_nobody_waits_for_is_not_reported(
    ledger: SqlLedger, caplog: pytest.LogCaptureFixture
) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    recording = asyncio.create_task(ledger.record([admission(sale.round, 1, quantity=0)]))
    await asyncio.sleep(0)
    [inner] = ledger.tasks
    recording.cancel()
    await asyncio.wait([recording, inner])
    assert isinstance(inner.exception(), LedgerRefused)
    del inner, recording
    assert caplog.records == []


async def test_the_work_itself_is_broken_off(ledger: SqlLedger) -> None:
    """The event loop breaks it off so when it shuts down: the connection is given up, and nothing stays locked."""
    sale = await ledger.create_sale(draft(), lane=0)
    for steps in range(1, 40):
        recording = asyncio.create_task(ledger.record([admission(sale.round, steps)]))
        for _ in range(steps):
            await asyncio.sleep(0.0003)
        for task in list(ledger.tasks):
            task.cancel()
        await asyncio.wait([recording])
    async with asyncio.timeout(PATIENCE_S):
        recorded = await ledger.record([admission(sale.round, steps) for steps in range(1, 40)])
    assert recorded.new + recorded.repeated == 39
    assert await counts(ledger, sale.round.id) == (39, 39, 39)
    assert checked_out(ledger.database.writers) == 0
    await write(ledger, "UPDATE sales SET title = 'x'")


async def test_closing_waits_for_what_was_begun(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    recording = [asyncio.create_task(ledger.record([admission(sale.round, counter)])) for counter in range(1, 20)]
    await asyncio.sleep(0)
    await ledger.close()
    assert sum([(await task).new for task in recording]) == 19


async def test_a_shared_look_that_goes_on_after_closing_opens_no_connection(ledger: SqlLedger) -> None:
    """The caller is gone; the look is shared, so it was not broken off. A connection would be left open for good."""
    connects: list[object] = []
    goes_on = asyncio.Event()

    async def look() -> None:
        await goes_on.wait()
        await ledger.sales()

    shared = SharedLook(look)
    asking = asyncio.create_task(shared())
    while (looking := shared._under_way) is None:
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    await ledger.close()
    for engine in {ledger.database.writers.sync_engine, ledger.database.readers.sync_engine}:
        event.listen(engine, "connect", lambda *_: connects.append(1))
    goes_on.set()
    await asyncio.wait([looking])
    assert connects == []
    assert isinstance(looking.exception(), LedgerUnavailable)
