"""How statements get to the thread of their connection, and what becomes of those whose caller goes."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiosqlite import Connection
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql import SqlLedger, open_ledger
from tests.backends.sql.making import admission, draft
from tests.patience import PATIENCE_S

_ADD = text("INSERT INTO meta (name, value) VALUES (:name, 'x')")
_ADDED = text("SELECT count(*) FROM meta WHERE value = 'x'")


@pytest.fixture
async def ledger(sqlite_database: str) -> AsyncIterator[SqlLedger]:
    opened = open_ledger(sqlite_database)
    yield opened
    await opened.close()


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each way to a thread."""
    gone: list[object] = []
    go: Any = Connection._execute

    async def counted(connection: Connection, use: Any, *arguments: Any, **named: Any) -> Any:
        gone.append(use)
        return await go(connection, use, *arguments, **named)

    monkeypatch.setattr(Connection, "_execute", counted)
    return gone


async def test_a_statement_takes_one_way(ledger: SqlLedger, ways: list[object]) -> None:
    async with ledger.database.writers.begin() as connection:
        ways.clear()
        assert (await connection.execute(_ADDED)).scalar_one() == 0
        assert len(ways) == 1


async def test_a_batch_of_orders_takes_as_many_as_begin_and_commit_and_one(
    ledger: SqlLedger, ways: list[object]
) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    ways.clear()
    recorded = await ledger.record([admission(sale.round, n, user=f"u-{n}") for n in range(1, 6)])
    assert recorded.new == 5
    assert len(ways) == 3


async def test_who_is_cancelled_waits_for_the_thread_and_nothing_is_written(ledger: SqlLedger) -> None:
    inside, go_on = threading.Event(), threading.Event()

    async def work(there: AsyncConnection) -> None:
        await there.execute(_ADD, {"name": "one"})
        inside.set()
        go_on.wait(PATIENCE_S)
        await there.execute(_ADD, {"name": "two"})

    async def write() -> None:
        async with ledger.database.writers.begin() as connection:
            await ledger.database.together(connection, work)

    writing = asyncio.create_task(write())
    await asyncio.to_thread(inside.wait, PATIENCE_S)
    writing.cancel()
    await asyncio.sleep(0.05)
    assert not writing.done()  # its rollback must not meet a statement in the thread
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    async with ledger.database.readers.connect() as connection:
        assert (await connection.execute(_ADDED)).scalar_one() == 0


async def test_to_wait_for_something_else_there_is_an_error(ledger: SqlLedger) -> None:
    async def work(there: AsyncConnection) -> None:
        await asyncio.sleep(0)

    async with ledger.database.writers.begin() as connection:
        with pytest.raises(RuntimeError, match="awaited"):
            await ledger.database.together(connection, work)
