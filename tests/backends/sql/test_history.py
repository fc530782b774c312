"""The record as operators read it, on every database."""

import itertools
import re
from typing import Any

from sqlalchemy import event

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.history import SqlHistory
from seckill.backends.sql.order_pages import OrderPages
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.recurrence import Recurrence
from seckill.ports.history import OrderFilter
from tests.backends.sql.filling import fill
from tests.backends.sql.making import HOUR_MS, admission, draft, number
from tests.backends.sql.test_letters import delivery

BEYOND = (1 << 63) - 1


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


async def numbers(
    history: SqlHistory, count: int, after: OrderNumber | None = None, **wanted: Any
) -> list[OrderNumber]:
    return [order.number for order in await history.page(OrderFilter(**wanted), after, count)]


async def test_the_newest_orders_of_a_round_and_of_no_other(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    other = (await ledger.create_sale(draft(), lane=4)).round
    await ledger.record([admission(round_, counter) for counter in range(1, 6)])
    await ledger.record([admission(other, counter) for counter in range(1, 6)])
    history = SqlHistory(ledger.database)
    assert await numbers(history, 3, round_id=round_.id) == [number(round_, counter) for counter in (5, 4, 3)]
    assert await numbers(history, 1, round_id=other.id) == [number(other, 5)]
    await ledger.cancel(number(round_, 4), "buyer-4")
    three = [number(round_, counter) for counter in (5, 4, 3)]
    assert await numbers(history, 3, round_id=round_.id) == three, "in any state"
    assert await numbers(history, 3, round_id=10_000) == []


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
    begins, ends = [each.round.begins_ms for each in made], [each.round.ends_ms for each in made]

    async def between(since_ms: int, until_ms: int, count: int = 10) -> list[int]:
        return [sale.round.id for sale in await history.rounds_between(sale_id, since_ms, until_ms, count)]

    assert await between(begins[0], begins[0] + 1) == [ids[0]], "it begins then, however many came after it"
    assert await between(ends[0], begins[1]) == [ids[0]], "it ends then"
    assert await between(begins[0] + 1, ends[0]) == [], "it goes on all the time"
    assert await between(begins[0], begins[-1]) == ids[:3][::-1]
    assert await between(0, BEYOND, 2) == [ids[3], ids[2]]


async def plan(ledger: SqlLedger, round_id: int, count: int, item: int | None = None) -> str:
    """Returns the database's own description of how it finds the newest orders."""
    word = "EXPLAIN QUERY PLAN" if ledger.database.readers.dialect.name == "sqlite" else "EXPLAIN"

    def explained(
        _connection: object, _cursor: object, statement: str, parameters: object, *_: object
    ) -> tuple[str, object]:
        return f"{word} {statement}", parameters

    async with ledger.database.readers.connect() as connection:
        event.listen(connection.sync_connection, "before_cursor_execute", explained, retval=True)
        wanted = {"round_id": round_id, "count": count, "since_ms": 0, "until_ms": BEYOND, "least": 0, "below": BEYOND}
        statement = OrderPages(ledger.database)._of_round[None, item is not None]
        found = (await connection.execute(statement, wanted | {"item": item})).all()
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
    newest = await numbers(SqlHistory(ledger.database), 20, round_id=quiet.id)
    assert newest == [number(quiet, counter) for counter in range(30, 10, -1)]
    for round_, item in itertools.product((quiet, busy), (None, 1)):
        told = await plan(ledger, round_.id, 20, item)
        assert told.count("ix_orders_round_id_state_id") >= 6, told
        assert not re.search(WHOLE[ledger.database.readers.dialect.name], told), told


async def test_page_by_page_nothing_is_missing_and_nothing_twice(ledger: SqlLedger) -> None:
    """The sale repeats, and its orders are listed round after round."""
    again = Recurrence(repeat="daily", timezone="UTC", begins_ms=draft().begins_ms, window_ms=HOUR_MS)
    sale = await ledger.create_sale(draft(ends_ms=again.begins_ms + HOUR_MS, recurrence=again), lane=3)
    begins_ms = again.begins_ms + 24 * HOUR_MS
    later = await ledger.add_round(sale.round, begins_ms, begins_ms + HOUR_MS, lane=3)
    assert later is not None
    other = (await ledger.create_sale(draft(), lane=3)).round
    for round_ in (sale.round, later.round):
        await ledger.record([admission(round_, counter) for counter in range(1, 8)])
    await ledger.record([admission(other, 50)])
    await ledger.cancel(number(sale.round, 2), "buyer-2")
    expected = [number(round_, counter) for round_ in (later.round, sale.round) for counter in range(7, 0, -1)]
    history = SqlHistory(ledger.database)
    for count in (1, 3, 7, 20):
        found: list[OrderNumber] = []
        while page := await numbers(history, count, found[-1] if found else None, sale_id=sale.id):
            found += page
        assert found == expected
    everything = sorted([*expected, number(other, 50)], reverse=True)
    assert await numbers(history, 100) == everything
    assert await numbers(history, 5, everything[3]) == everything[4:9]
    assert await numbers(history, 5, number(other, 50), sale_id=sale.id) == [], "a cursor of another list"


async def test_orders_are_filtered(ledger: SqlLedger) -> None:
    one, other = [await ledger.create_sale(draft(), lane=lane) for lane in (3, 4)]
    await ledger.record([admission(one.round, counter) for counter in (1, 2, 3)])
    await ledger.record([admission(other.round, 3)])
    await ledger.cancel(number(one.round, 2), "buyer-2")
    history = SqlHistory(ledger.database)
    two = [number(one.round, 2)]
    places: list[dict[str, Any]] = [{}, {"sale_id": one.id}, {"round_id": one.round.id}, {"user": "buyer-2"}]
    for where in places:
        assert await numbers(history, 9, state=OrderState.CANCELLED, **where) == two
    assert set(await numbers(history, 9, user="buyer-3")) == {number(one.round, 3), number(other.round, 3)}
    assert await numbers(history, 9, user="buyer-3", sale_id=other.id) == [number(other.round, 3)]
    assert await numbers(history, 9, sale_id=other.id, round_id=one.round.id) == []
    begins_ms = one.round.begins_ms  # each is admitted as many milliseconds later as its counter says
    for where in ({"sale_id": one.id}, {"state": OrderState.CANCELLED}):
        assert await numbers(history, 9, since_ms=begins_ms + 2, until_ms=begins_ms + 3, **where) == two
    assert await numbers(history, 9, user="buyer-2", since_ms=begins_ms + 3) == []
    assert await numbers(history, 9, since_ms=begins_ms + HOUR_MS) == []


async def test_what_could_not_be_written_belongs_to_the_history(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    made = admission(round_, 7)
    await ledger.set_aside(delivery(made), "the first reason", 0.0)
    found = await SqlHistory(ledger.database).letters([made.number, number(round_, 8)])
    assert list(found) == [made.number]
    assert [letter.reason for letter in found[made.number]] == ["the first reason"]
