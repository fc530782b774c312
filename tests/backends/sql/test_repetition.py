"""Repeating sales in the ledger: each occurrence is one round, however many keepers there are, whatever dies (F69)."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import event, select

from seckill.backends.sql import SqlLedger, open_ledger, sales
from seckill.backends.sql.tables import rounds
from seckill.domain.door import Door
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import RoundStatus, Sale, SaleChange
from seckill.engine.rounds.repeating import LEAD_MS
from seckill.errors import LedgerRefused, NotPossible
from seckill.failpoints import VARIABLE
from tests.backends.sql.keeper_process import KeeperAt
from tests.backends.sql.looking import rows, write
from tests.backends.sql.making import HOUR_MS, admission, draft

DAY_MS = 24 * HOUR_MS
MINUTE_MS = 60_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


async def create(ledger: SqlLedger, begins: str, repeat: str = "daily", zone: str = "UTC", **facts: Any) -> Sale:
    begins_ms = ms(begins)
    window_ms = facts.pop("window_ms", HOUR_MS)
    recurrence = Recurrence(repeat=repeat, timezone=zone, begins_ms=begins_ms, window_ms=window_ms)
    wanted = draft(begins_ms=begins_ms, ends_ms=begins_ms + window_ms, recurrence=recurrence, **facts)
    return await ledger.create_sale(wanted, lane=0)


async def scheduled(ledger: SqlLedger) -> list[int]:
    return [row.scheduled_ms for row in await rows(ledger, select(rounds).order_by(rounds.c.ordinal))]


@pytest.fixture
async def keepers(ledger_url: str) -> AsyncIterator[list[KeeperAt]]:
    """Three, each with its own connections and its own knowledge."""
    made = [KeeperAt(open_ledger(ledger_url)) for _ in range(3)]
    yield made
    for keeper in made:
        await keeper.ledger.close()


async def all_at_once(keepers: list[KeeperAt], now_ms: int) -> int:
    """All have looked before any of them acts."""
    for keeper in keepers:
        await keeper.look()
    return sum(await asyncio.gather(*[keeper.act(now_ms) for keeper in keepers]))


async def die_inside(url: str, now_ms: int) -> None:
    environ = os.environ | {VARIABLE: "ledger.add_round.inside=kill"}
    command = [sys.executable, "-m", "tests.backends.sql.keeper_process", url, str(now_ms)]
    process = await asyncio.create_subprocess_exec(*command, stderr=PIPE, env=environ)
    _, told = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert b"failpoint ledger.add_round.inside: kill" in told, "the window was hit"


async def test_three_keepers_over_midnight_while_the_clocks_change(
    ledger: SqlLedger, ledger_url: str, keepers: list[KeeperAt]
) -> None:
    """Santiago has no 00:00 on 6 September. One keeper dies in the middle of that night, all are down in the next."""
    await create(ledger, "2026-09-04T00:00:00-04:00", zone="America/Santiago")
    expected = [ms("2026-09-04T00:00:00-04:00")]
    assert await scheduled(ledger) == expected
    for midnight in ("2026-09-04T00:00:00-04:00", "2026-09-05T00:00:00-04:00"):
        for now_ms in range(ms(midnight) - 2 * MINUTE_MS, ms(midnight) + 2 * MINUTE_MS, 20_000):
            await all_at_once(keepers, now_ms)
    expected += [ms("2026-09-05T00:00:00-04:00"), ms("2026-09-06T01:00:00-03:00")]
    assert await scheduled(ledger) == expected

    midnight_ms = ms("2026-09-06T01:00:00-03:00")
    await die_inside(ledger_url, midnight_ms)
    assert await scheduled(ledger) == expected, "nothing is left of what it began"
    assert await all_at_once(keepers, midnight_ms + 1000) == 1
    expected.append(ms("2026-09-07T00:00:00-03:00"))
    assert await scheduled(ledger) == expected

    # The window of the 8th passes while no keeper is there; that of the 9th is half over when the keepers come back.
    assert await all_at_once(keepers, ms("2026-09-09T00:30:00-03:00")) == 2
    expected += [ms("2026-09-09T00:00:00-03:00"), ms("2026-09-10T00:00:00-03:00")]
    assert await scheduled(ledger) == expected
    assert await all_at_once(keepers, ms("2026-09-09T23:00:00-03:00")) == 0
    found = await rows(ledger, select(rounds).order_by(rounds.c.ordinal))
    assert [row.ordinal for row in found] == [1, 2, 3, 4, 5, 6]
    assert {row.ends_ms - row.begins_ms for row in found} == {HOUR_MS}


async def test_the_constraint_stands_behind_the_guard(ledger: SqlLedger, ledger_url: str) -> None:
    """Without the guard, three keepers add a round at once, and all but one are refused."""
    sale = await create(ledger, "2026-11-01T10:00:00Z")
    refused = await add_without_guard(ledger, ledger_url, sale)
    assert (len(await scheduled(ledger)), refused) == (2, 2)


async def test_control_without_guard_and_constraint_a_round_comes_three_times(own_postgres_database: str) -> None:
    ledger = open_ledger(own_postgres_database)
    sale = await create(ledger, "2026-11-01T10:00:00Z")
    for name in ("ordinal", "scheduled_ms"):
        await write(ledger, f"ALTER TABLE rounds DROP CONSTRAINT uq_rounds_sale_id_{name}")
    refused = await add_without_guard(ledger, own_postgres_database, sale)
    assert (len(await scheduled(ledger)), refused) == (4, 0)
    await ledger.close()


async def add_without_guard(ledger: SqlLedger, url: str, sale: Sale) -> int:
    """Returns how many were refused."""
    others = [open_ledger(url) for _ in range(2)]
    begins_ms = sale.round.begins_ms + DAY_MS

    async def add(one: SqlLedger) -> int:
        with suppress(LedgerRefused):
            async with one._writing() as connection:
                await sales.insert_round(connection, sale.id, 2, begins_ms, begins_ms + HOUR_MS, 0, Door())
            return 0
        return 1

    refused = sum(await asyncio.gather(*[add(one) for one in (ledger, *others)]))
    for other in others:
        await other.close()
    return refused


async def test_a_round_is_there_well_before_it_begins(ledger: SqlLedger, keepers: list[KeeperAt]) -> None:
    sale = await create(ledger, "2026-11-01T10:00:00Z")
    keeper = keepers[0]
    assert await keeper.step(sale.round.begins_ms - LEAD_MS - 1) == 0
    assert await keeper.step(sale.round.begins_ms - LEAD_MS) == 1
    assert await keeper.step(sale.round.begins_ms) == 0, "one is enough until that one is about to begin"


async def test_every_minute(ledger: SqlLedger, keepers: list[KeeperAt]) -> None:
    """Windows that follow each other at once; there is always one that begins later than the lead."""
    sale = await create(ledger, "2026-11-01T10:00:00Z", repeat="* * * * *", window_ms=MINUTE_MS)
    first_ms = sale.round.begins_ms
    for now_ms in range(first_ms - MINUTE_MS, first_ms + 30 * MINUTE_MS, 7_000):
        await keepers[0].step(now_ms)
        assert (await scheduled(ledger))[-1] > now_ms + LEAD_MS
    found = await scheduled(ledger)
    assert found == [first_ms + minute * MINUTE_MS for minute in range(len(found))]


async def test_a_new_round_has_full_stock_a_clean_limit_and_takes_nothing_from_the_old(
    ledger: SqlLedger, keepers: list[KeeperAt]
) -> None:
    """The same buyer, in the same slot, in the next round (F66, F68)."""
    sale = await create(ledger, "2026-11-01T10:00:00Z", units=2)
    await ledger.record([admission(sale.round, 1, user="ann"), admission(sale.round, 2, user="bob")])
    await ledger.change_sale(sale.id, SaleChange(add_units=5), sale.round.id)
    await keepers[0].step(sale.round.begins_ms)
    following = await ledger.sale(sale.id)
    assert following is not None
    assert (following.round.ordinal, following.round.total, following.round.epoch) == (2, 2, 1)
    assert following.round.id != sale.round.id
    assert (await ledger.record([admission(following.round, 3, user="ann")])).new == 1
    old, new = await ledger.tally(sale.round.id), await ledger.tally(following.round.id)
    assert old is not None
    assert new is not None
    assert (old.total, old.sold, old.unpaid) == (7, 2, 2)
    assert (new.total, new.sold, new.unpaid) == (2, 1, 1)


async def test_what_an_operator_changes_of_a_sale_that_repeats(ledger: SqlLedger, keepers: list[KeeperAt]) -> None:
    sale = await create(ledger, "2026-11-01T10:00:00Z", units=2)
    keeper = keepers[0]
    await keeper.step(sale.round.begins_ms)
    second = await ledger.sale(sale.id)
    assert second is not None
    changed = await ledger.change_sale(
        sale.id, SaleChange(limit_per_buyer=3, title="More", status=RoundStatus.PAUSED), sale.round.id
    )
    assert changed is not None
    assert (changed.round.id, changed.round.limit_per_buyer, changed.round.status) == (sale.round.id, 3, "paused")
    await keeper.step(second.round.begins_ms)
    third, second_now = await ledger.sale(sale.id), await ledger.sale(sale.id, second.round.id)
    assert third is not None
    assert second_now is not None
    assert (second_now.round.limit_per_buyer, second_now.round.status, second_now.round.revision) == (3, "open", 2)
    assert (third.title, third.round.ordinal) == ("More", 3)
    assert (third.round.limit_per_buyer, third.round.status, third.round.total) == (3, "open", 2)


async def test_windows_of_neighbours_never_overlap(ledger: SqlLedger, keepers: list[KeeperAt]) -> None:
    sale = await create(ledger, "2036-11-01T10:00:00Z")
    await keepers[0].step(sale.round.begins_ms)
    second = await ledger.sale(sale.id)
    assert second is not None
    with pytest.raises(NotPossible, match="next round begins at 2036-11-02T10:00:00Z"):
        await ledger.change_sale(sale.id, SaleChange(ends_ms=second.round.begins_ms + 1), sale.round.id)
    longer = await ledger.change_sale(sale.id, SaleChange(ends_ms=second.round.begins_ms), sale.round.id)
    assert longer is not None
    with pytest.raises(NotPossible, match="round before ends at"):
        await ledger.change_sale(sale.id, SaleChange(begins_ms=second.round.begins_ms - 1), second.round.id)
    later = await ledger.change_sale(sale.id, SaleChange(begins_ms=second.round.begins_ms + 60_000), second.round.id)
    assert later is not None
    await keepers[0].step(second.round.begins_ms + 60_000)
    assert (await scheduled(ledger))[2] == sale.round.begins_ms + 2 * DAY_MS, "the third keeps its time"
    moved_ms = sale.round.begins_ms + 3 * DAY_MS
    third = await ledger.sale(sale.id)
    assert third is not None
    await ledger.change_sale(sale.id, SaleChange(ends_ms=moved_ms + 1), third.round.id)
    await keepers[0].step(third.round.begins_ms)
    assert (await scheduled(ledger))[3] == moved_ms + DAY_MS, "an occurrence within a longer round is left out"


async def test_closing_ends_the_repetition(ledger: SqlLedger, keepers: list[KeeperAt]) -> None:
    sale = await create(ledger, "2026-11-01T10:00:00Z")
    keeper = keepers[0]
    await keeper.step(sale.round.begins_ms)
    await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.CLOSED), sale.round.id)
    found = await rows(ledger, select(rounds))
    assert {row.status for row in found} == {"closed"}
    assert len(found) == 2
    assert await keeper.act(sale.round.begins_ms + 5 * DAY_MS) == 0, "who has not heard of it is refused"
    assert await keeper.step(sale.round.begins_ms + 5 * DAY_MS) == 0
    with pytest.raises(NotPossible, match="closed for good"):
        await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.OPEN), found[1].id)


async def test_a_sale_that_this_machine_does_not_understand_holds_up_no_other(
    ledger: SqlLedger, keepers: list[KeeperAt]
) -> None:
    odd = await create(ledger, "2026-11-01T10:00:00Z")
    await write(ledger, f"UPDATE sales SET timezone = 'Mars/Olympus' WHERE id = {odd.id}")
    sale = await create(ledger, "2026-11-01T10:00:00Z")
    assert await keepers[0].step(sale.round.begins_ms) == 1
    assert (await ledger.sale(odd.id)) is not None


async def test_what_is_asked_every_second_never_reads_all_rounds_there_were(sqlite_database: str) -> None:
    ledger = open_ledger(sqlite_database)
    await create(ledger, "2026-11-01T10:00:00Z")
    asked: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        asked.append((statement, parameters))

    event.listen(ledger.database.readers.sync_engine, "before_cursor_execute", note)
    await ledger.sales(rounds_max=16)
    await ledger.rounds_to_sync()
    await ledger.lanes_in_use()
    await ledger.rounds_waiting(10)
    await ledger.rounds_over(1, 10)
    await ledger.rounds_to_forget(1, 10)
    event.remove(ledger.database.readers.sync_engine, "before_cursor_execute", note)
    assert len(asked) == 6
    async with ledger.database.readers.connect() as connection:
        for statement, parameters in asked:
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [str(step.detail) for step in plan]
            assert not [step for step in steps if step.startswith("SCAN rounds") and "INDEX" not in step], steps
    await ledger.close()
