"""The record as operators read it, on every database."""

from sqlalchemy import event

from seckill.ledgers import SqlLedger
from seckill.ledgers.history import LOOKED_THROUGH_MAX, SqlHistory
from seckill.recurrence import Recurrence
from tests.ledgers.making import HOUR_MS, admission, draft, number
from tests.ledgers.test_letters import delivery

FAR_MS = 4_102_444_800_000  # 2100: later than order numbers reach


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
    assert await history.latest(round_.id, FAR_MS, 3) == [number(round_, counter) for counter in (5, 4, 3)]
    assert await history.latest(other.id, FAR_MS, 1) == [number(other, 5)]
    assert await history.latest(round_.id, round_.begins_ms - HOUR_MS, 3) == [], "before it began"
    assert await history.latest(10_000, FAR_MS, 3) == []


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


async def test_looking_for_the_newest_goes_through_a_bounded_number(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    await ledger.record([admission(round_, 1)])
    limits: list[object] = []

    def note(_c: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if "round_id" in statement:
            limits.append(parameters)

    engine = ledger.database.readers.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    await SqlHistory(ledger.database).latest(round_.id, FAR_MS, 20)
    event.remove(engine, "before_cursor_execute", note)
    assert len(limits) == 1
    assert str(LOOKED_THROUGH_MAX) in str(limits)


async def test_what_could_not_be_written_belongs_to_the_history(ledger: SqlLedger) -> None:
    round_ = (await ledger.create_sale(draft(), lane=3)).round
    made = admission(round_, 7)
    await ledger.set_aside(delivery(made), "the first reason", 0.0)
    found = await SqlHistory(ledger.database).letters([made.number, number(round_, 8)])
    assert list(found) == [made.number]
    assert [letter.reason for letter in found[made.number]] == ["the first reason"]
