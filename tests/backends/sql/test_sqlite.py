import asyncio
import fcntl
import os
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from seckill.backends.sql import SqlLedger, open_ledger, sqlite
from seckill.backends.sql.sqlite_writer_lock import BEGIN, WriterBusy, WriterLock, WritingConnection
from seckill.errors import LedgerUnavailable
from tests.backends.sql.looking import counts, rows
from tests.backends.sql.making import admission, draft
from tests.backends.sql.writer_process import BATCH


@pytest.fixture
def path(sqlite_database: str) -> Path:
    return Path(sqlite_database.removeprefix("sqlite:///"))


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[SqlLedger]:
    opened = open_ledger(f"sqlite:///{path}")
    yield opened
    await opened.close()


@pytest.fixture
async def hasty(path: Path) -> AsyncIterator[SqlLedger]:
    """Does not wait for long while another process writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "LOCK_WAIT_S", 0.3)
        patch.setattr(sqlite, "BUSY_WAIT_S", 0.3)
        opened = open_ledger(f"sqlite:///{path}")
        async with opened.database.writers.connect():
            pass  # its connection from now on
    yield opened
    await opened.close()


@asynccontextmanager
async def writing_process(path: Path, *arguments: int) -> AsyncIterator[Process]:
    command = [sys.executable, "-m", "tests.backends.sql.writer_process", f"sqlite:///{path}", *map(str, arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


def is_locked(path: Path) -> bool:
    lock = os.open(f"{path}.writer", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def assert_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_settings_of_the_connections(ledger: SqlLedger) -> None:
    async with ledger.database.writers.begin() as connection:
        for pragma, value in {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}.items():
            assert await connection.scalar(text(f"PRAGMA {pragma}")) == value
    for pragma, value in {"query_only": 1, "wal_autocheckpoint": 0}.items():
        assert [(value,)] == await rows(ledger, text(f"PRAGMA {pragma}"))


async def test_readers_cannot_write(ledger: SqlLedger) -> None:
    with pytest.raises(OperationalError, match="readonly"):
        await rows(ledger, text("DELETE FROM meta"))


async def test_several_processes_write_at_once(ledger: SqlLedger, path: Path) -> None:
    batches = 40
    sale = await ledger.create_sale(draft(units=10_000), lane=0)
    firsts = [1, 2001, 4001]

    async def run(first: int) -> int | None:
        async with writing_process(path, sale.id, first, batches) as process:
            await process.communicate()
            return process.returncode

    writers = asyncio.gather(*[run(first) for first in firsts])
    seen = [0]
    while not writers.done():  # there is always a reader
        number, units, sold = await counts(ledger, sale.round.id)
        assert units == number >= seen[-1]
        assert sold >= number, "read after it"
        seen.append(number)
    assert await writers == [0, 0, 0]
    wanted = len(firsts) * batches * BATCH
    assert await counts(ledger, sale.round.id) == (wanted, wanted, wanted)
    assert len(set(seen)) > 3, "it was read while they wrote"
    assert_sound(path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_writer_holds_up_nobody_and_leaves_nothing_half_done(
    ledger: SqlLedger, hasty: SqlLedger, path: Path, how: signal.Signals
) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1)])
    async with writing_process(path, sale.id, 0, 0) as process:
        assert await said(process) == "writing"
        assert is_locked(path)
        with pytest.raises(LedgerUnavailable, match="another process has been writing"):
            await hasty.record([admission(sale.round, 2)])
        assert await ledger.sale(sale.id) == sale, "reading goes on"
        process.send_signal(how)
        await process.wait()
    assert not is_locked(path)
    assert (await hasty.record([admission(sale.round, 2)])).new == 1
    assert await ledger.sale(sale.id) == sale
    assert await counts(ledger, sale.round.id) == (2, 2, 2)
    assert_sound(path)


async def test_what_a_process_said_is_committed_is_there_after_its_death(ledger: SqlLedger, path: Path) -> None:
    sale = await ledger.create_sale(draft(units=100_000), lane=0)
    async with writing_process(path, sale.id, 1, 1000) as process:
        committed = [int(await said(process)) for _ in range(15)]
        process.kill()
        rest = (await process.communicate())[0].decode().split()
    committed += [int(first) for first in rest]
    number, units, sold = await counts(ledger, sale.round.id)
    assert number == units == sold
    assert number % BATCH == 0, "whole batches only"
    assert len(committed) * BATCH <= number <= (len(committed) + 1) * BATCH
    assert_sound(path)


async def test_a_shell_on_the_database(ledger: SqlLedger, hasty: SqlLedger, path: Path) -> None:
    """It knows nothing of our lock, so SQLite's own has to do; and ours is given back after a failed BEGIN."""
    sale = await ledger.create_sale(draft(), lane=0)
    with closing(sqlite3.connect(path)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="locked"):
            await hasty.record([admission(sale.round, 1)])
        assert not is_locked(path)
    assert (await hasty.record([admission(sale.round, 1)])).new == 1


async def test_a_full_disk_is_waited_for(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=10_000), lane=0)
    batch = [admission(sale.round, counter) for counter in range(1, 5001)]

    async def limit_pages(pages: int) -> None:
        async with ledger.database.writers.begin() as connection:  # there is only one of these connections
            await connection.execute(text(f"PRAGMA max_page_count = {pages}"))

    await limit_pages(1)
    with pytest.raises(LedgerUnavailable, match="full"):
        await ledger.record(batch)
    await limit_pages(1_000_000)
    assert (await ledger.record(batch)).new == 5000


async def test_a_folder_that_went_away(ledger: SqlLedger, path: Path) -> None:
    path.parent.rename(path.parent.with_name("gone"))
    for attempt in (ledger.ping(), ledger.create_sale(draft(), lane=0)):
        with pytest.raises(LedgerUnavailable):
            await attempt
    path.parent.with_name("gone").rename(path.parent)
    await ledger.ping()


@contextmanager
def connected(path: Path) -> Iterator[WritingConnection]:
    lock = WriterLock(path.with_name(path.name + ".writer"), wait_s=0.05)
    with closing(WritingConnection(path, isolation_level=None, lock=lock)) as connection:
        yield connection


def test_the_lock_is_held_from_before_begin_until_after_commit(path: Path) -> None:
    with connected(path) as connection:
        locked: dict[str, bool] = {}
        connection.set_trace_callback(lambda sql: locked.__setitem__(sql.split()[0], is_locked(path)))
        cursor = connection.cursor()
        for end in (connection.commit, connection.rollback):
            assert not is_locked(path)
            cursor.execute(BEGIN)
            cursor.execute("UPDATE meta SET value = '1'")
            end()
            assert not is_locked(path)
        assert locked == {"BEGIN": True, "UPDATE": True, "COMMIT": True, "ROLLBACK": True}
        cursor.execute(BEGIN)
    assert not is_locked(path), "closing gives it back too"


def test_closing_ends_a_transaction_that_was_broken_off(path: Path) -> None:
    with connected(path) as other:
        with connected(path) as broken:
            cursor = broken.cursor().execute(BEGIN)
            cursor.execute("UPDATE meta SET value = '1' RETURNING name")  # and the names are never fetched
        other.execute("PRAGMA busy_timeout = 0")
        other.cursor().execute(BEGIN)
        del cursor


def test_the_second_writer_waits_and_gives_up(path: Path) -> None:
    with connected(path) as one, connected(path) as other:
        one.cursor().execute(BEGIN)
        with pytest.raises(WriterBusy, match=r"writing for 0\.05 s"):
            other.cursor().execute(BEGIN)
        one.commit()
        other.cursor().execute(BEGIN)
        other.rollback()
