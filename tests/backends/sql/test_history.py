"""The record as operators read it, on every database."""

import re

from sqlalchemy import event

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.history import SqlHistory
from seckill.domain.recurrence import Recurrence
from tests.backends.sql.filling import fill
from tests.backends.sql.making import HOUR_MS, admission, draft, number
from tests.backends.sql.test_letters import delivery


async def test_every_event_of_an_order_in_its_order(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    await ledger.record([admission(round_, 1), admission(round_, 2)])
    await ledger.cancel(number(round_, 1), "buyer-1")
    history = SqlHistory(ledger.database)
    found = await history.events([number(round_, 1), number(round_, 2), number(round_, 3)])
    assert [(e.from_state, e.to_state, e.cause) for e in found[number(round_, 1)]] == [
        ("queued", "unpaid", "recorded"),
        ("unpaid", "cancelled", "cancelled by the buyer"),
    ]
    assert [e.to_state for e in found[number(round_, 2)]] == ["unpaid"]
    assert number(round_, 3) not in found
    assert await history.events([]) == {}


async def test_the_newest_orders_of_a_round_and_of_no_other(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    other = (await ledger.create_sale(draft(), lane=4)).round
    await ledger.record([admission(round_, counter) for counter in range(1, 6)])
    await ledger.record([admission(other, counter) for counter in range(1, 6)])
    history = SqlHistory(ledger.database)
    assert await history.latest(round_.id, 3) == [number(round_, counter) for counter in (5, 4, 3)]
    assert await history.latest(other.id, 1) == [number(other, 5)]
    await ledger.cancel(number(round_, 4), "buyer-4")
    assert await history.latest(round_.id, 3) == [number(round_, counter) for counter in (5, 4, 3)], "in any state"
    assert await history.latest(10_000, 3) == []


async def test_the_rounds_of_a_sale_newest_first(ledger: SqlLedger) -> None:
    again = Recurrence(repeat="daily", timezone="UTC", begins_ms=draft().begins_ms, window_ms=HOUR_MS)
    wanted = draft(ends_ms=again.begins_ms + HOUR_MS, recurrence=again)
    made, other = [[await ledger.create_sale(wanted, lane=0)] for _ in range(2)]
    for day in range(1, 4):
        for rounds in (made, other):
            begins_ms = again.begins_ms + day * 24 * HOUR_MS
            added = await ledger.add_round(rounds[-1].round, begins_ms, begins_ms + HOUR_MS, lane=0)
            assert added is not None
            rounds.append(added)
    history = SqlHistory(ledger.database)
    sale_id, ids = made[0].id, [sale.round.id for sale in made]
    assert [sale.round.id for sale in await history.rounds(sale_id, None, 10)] == ids[::-1]
    assert [sale.round.id for sale in await history.rounds(sale_id, None, 2)] == [ids[3], ids[2]]
    assert [sale.round.id for sale in await history.rounds(sale_id, ids[2], 10)] == [ids[1], ids[0]]
    assert await history.rounds(sale_id, other[3].round.id, 10) == [], "a round of another sale"
    assert [sale.round for sale in await history.rounds(sale_id, ids[1], 10)] == [made[0].round]
    assert await history.rounds(10_000, None, 10) == []


async def plan(ledger: SqlLedger, round_id: int, count: int) -> str:
    """How the database finds the newest orders, in its own words."""
    word = "EXPLAIN QUERY PLAN" if ledger.database.readers.dialect.name == "sqlite" else "EXPLAIN"

    def explained(
        _connection: object, _cursor: object, statement: str, parameters: object, *_: object
    ) -> tuple[str, object]:
        return f"{word} {statement}", parameters

    async with ledger.database.readers.connect() as connection:
        event.listen(connection.sync_connection, "before_cursor_execute", explained, retval=True)
        wanted = {"round_id": round_id, "count": count}
        found = (await connection.execute(SqlHistory(ledger.database)._latest, wanted)).all()
    return "\n".join(str(row) for row in found)


# How each of them says that it reads a table from one end to the other, or sorts what it has found in it.
WHOLE = {
    "sqlite": r"SCAN orders",
    "postgresql": r"Seq Scan on orders|Bitmap",
    "mysql": r"'orders', '(ALL|index)'|'orders'.*filesort",
}


async def test_the_newest_orders_of_a_quiet_sale_beside_a_busy_one(ledger: SqlLedger) -> None:
    """However many others are newer: an index leads to them."""
    quiet = (await ledger.create_sale(draft(units=5000), lane=3)).round
    busy = (await ledger.create_sale(draft(units=5000), lane=4)).round
    await ledger.record([admission(quiet, counter) for counter in range(1, 31)])
    await ledger.cancel(number(quiet, 30), "buyer-30")
    await fill(ledger, busy, 4000)
    assert number(busy, 1) > number(quiet, 30), "all of them are newer"
    newest = await SqlHistory(ledger.database).latest(quiet.id, 20)
    assert newest == [number(quiet, counter) for counter in range(30, 10, -1)]
    for round_ in (quiet, busy):
        told = await plan(ledger, round_.id, 20)
        assert told.count("ix_orders_round_id_state_id") >= 6, told
        assert not re.search(WHOLE[ledger.database.readers.dialect.name], told), told


async def test_what_could_not_be_written_belongs_to_the_history(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    made = admission(round_, 7)
    await ledger.set_aside(delivery(made), "the first reason", 0.0)
    found = await SqlHistory(ledger.database).letters([made.number, number(round_, 8)])
    assert list(found) == [made.number]
    assert [letter.reason for letter in found[made.number]] == ["the first reason"]
