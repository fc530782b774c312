"""Rows that were over for long enough go, and no others do."""

from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.line_tables import line_entries, lines
from seckill.backends.sql.tables import dead_letters, meta, rounds
from seckill.domain.sale import Round
from seckill.engine import retention
from seckill.engine.retention import DAY_MS, Retention
from tests.backends.sql.looking import rows
from tests.backends.sql.making import draft

LETTER: dict[str, Any] = {"lane": 0, "reason": "no", "history": "[]", "payload": "{}", "attempts": 1}


async def a_round(ledger: SqlLedger, *, retired_days: int | None, in_gate: bool = False) -> Round:
    sale = await ledger.create_sale(draft(), lane=0)
    async with ledger.database.writers.begin() as connection:
        now_ms = (await connection.execute(select(ledger.database.now_ms))).scalar_one()
        values: dict[str, Any] = {"opened_ms": 1 if in_gate else None}
        if retired_days is not None:
            values["retired_ms"] = now_ms - retired_days * DAY_MS
        await connection.execute(update(rounds).where(rounds.c.id == sale.round.id).values(**values))
    return sale.round


@pytest.fixture
def tidy(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> Retention:
    monkeypatch.setattr(retention, "PRUNED_AT_ONCE", 2)
    return Retention(
        ledger.retention,
        figures=ledger.figures,
        alarms=ledger.alarm_book,
        letters_days=90,
        lines_days=5,
        events_days=30,
        figures_days=90,
    )


async def test_letters_go_when_all_is_decided_and_the_gate_has_forgotten(ledger: SqlLedger, tidy: Retention) -> None:
    old, on = await a_round(ledger, retired_days=100), await a_round(ledger, retired_days=100, in_gate=True)
    kept: list[dict[str, Any]] = [
        {"state": "dead", "round_id": old.id, "created_ms": 1},
        {"state": "retrying", "round_id": old.id, "created_ms": 1},
        {"state": "discarded", "round_id": on.id, "created_ms": 1},
        {"state": "discarded", "round_id": old.id, "created_ms": 4_102_444_800_000},
    ]
    gone: list[dict[str, Any]] = [
        {"state": state, "round_id": old.id, "created_ms": 1} for state in ("recorded", "discarded", "recorded")
    ]
    gone.append({"state": "discarded", "round_id": None, "created_ms": 1})  # whose subject is unknown
    async with ledger.database.writers.begin() as connection:
        for n, letter in enumerate([*kept, *gone]):
            await connection.execute(insert(dead_letters).values(**LETTER, **letter, entry_id=f"1-{n}"))
    await tidy.step()
    left = await rows(ledger, select(dead_letters.c.entry_id).order_by(dead_letters.c.id))
    assert [row.entry_id for row in left] == [f"1-{n}" for n in range(len(kept))]


async def test_lines_go_with_their_entries_and_not_before_their_events(ledger: SqlLedger, tidy: Retention) -> None:
    """Thirty days, as long as events are kept, although lines need only be kept for five."""
    old = await a_round(ledger, retired_days=31)
    others = [
        await a_round(ledger, retired_days=29),
        await a_round(ledger, retired_days=31, in_gate=True),
        await a_round(ledger, retired_days=None),
    ]
    async with ledger.database.writers.begin() as connection:
        for round_ in (old, *others):
            line = {"round_id": round_.id, "sale_id": round_.sale_id, "order_by": "arrival"}
            await connection.execute(insert(lines).values(**line))
            for n in range(5):
                entry = {"round_id": round_.id, "user_id": f"buyer-{n}", "quantity": 1, "joined_ms": 1}
                await connection.execute(insert(line_entries).values(**entry))
    await ledger.retention.prune_lines(30 * DAY_MS, 2)
    # Killed here, there are entries without a line, and a note of whose they are: never a line that lacks entries.
    assert [row.value for row in await rows(ledger, select(meta.c.value).where(meta.c.name == "pruning"))] == [
        str(old.id)
    ]
    assert await rows(ledger, select(lines).where(lines.c.round_id == old.id)) == []
    await tidy.step()
    counted = select(line_entries.c.round_id, func.count()).group_by(line_entries.c.round_id)
    assert {tuple(row) for row in await rows(ledger, counted)} == {(round_.id, 5) for round_ in others}
    assert len(await rows(ledger, select(lines))) == 3
    assert await rows(ledger, text("SELECT 1 FROM meta WHERE name = 'pruning'")) == []
