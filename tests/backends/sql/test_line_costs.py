"""The cost of a line does not grow with it: counted in the steps that SQLite takes, which no busy machine changes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.domain.sale import Sale
from tests.backends.sql.test_lines import WAITING_LIST, join, make_sale, serve

SHORT, LONG = 500, 20_000
AT_ONCE = 20


@pytest.fixture
async def ledger(sqlite_database: str) -> AsyncIterator[SqlLedger]:
    opened = open_ledger(sqlite_database)
    yield opened
    await opened.close()


@asynccontextmanager
async def counted_steps(ledger: SqlLedger) -> AsyncIterator[list[int]]:
    """Counts the steps of the one connection that writes."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    async with ledger.database.writers.connect() as connection:
        driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None
    await driver.set_progress_handler(count, 1)
    yield steps
    await driver.set_progress_handler(None, 1)


async def line_of(ledger: SqlLedger, people: int) -> Sale:
    sale = await make_sale(ledger, WAITING_LIST, units=AT_ONCE)
    for start in range(0, people, 500):
        await join(ledger, sale, *[f"user-{number}" for number in range(start, start + 500)])
    return sale


async def cost(ledger: SqlLedger, sale: Sale) -> tuple[int, int]:
    """Counts the steps that it takes to let people join, and to call and serve them."""
    async with counted_steps(ledger) as joining:
        await join(ledger, sale, *[f"late-{number}" for number in range(AT_ONCE)])
    async with counted_steps(ledger) as serving:
        assert await serve(ledger, sale, AT_ONCE) == [f"user-{number}" for number in range(AT_ONCE)]
    return joining[0], serving[0]


async def test_joining_and_being_served_take_as_many_steps_in_a_long_line_as_in_a_short_one(ledger: SqlLedger) -> None:
    short, long = [await cost(ledger, await line_of(ledger, people)) for people in (SHORT, LONG)]
    assert min(short) > 100, "they are counted"
    for few, many in zip(short, long, strict=True):
        assert many < 1.1 * few, (short, long)


async def test_control_whoever_counts_those_who_wait_is_noticed(ledger: SqlLedger) -> None:
    sale = await line_of(ledger, LONG)
    async with counted_steps(ledger) as steps, ledger.database.writers.connect() as connection:
        await connection.exec_driver_sql(
            f"SELECT count(*) FROM line_entries WHERE round_id = {sale.round.id} AND state = 0"
        )
    assert steps[0] > LONG
