"""The figures that operators look back at, on every database: each second once, however many processes write it;
coarser with time, never wrong."""

import asyncio
from dataclasses import replace

from sqlalchemy import func, select, update

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.alarm_book import STALE_AFTER_MS
from seckill.backends.sql.figure_tables import alarms, figures
from seckill.domain.event import EventType
from seckill.domain.money import WORTH_CENTS_MAX
from seckill.engine.retention import DAY_MS, FINE_MS, Retention
from seckill.ports.alarm_book import AlarmFilter, RaisedAlarm
from seckill.ports.figures import RoundReading
from seckill.ports.order_action import ActionKind, OrderAction
from tests.backends.sql.looking import rows
from tests.backends.sql.making import admission, draft
from tests.backends.sql.paying import PRICE, capture, make_order, make_round

AT_S = 1_800_000_000


def reading(round_id: int, second: int, **facts: object) -> RoundReading:
    known = RoundReading(round_id=round_id, at_s=AT_S + second, available=9, accepted=1, persisted=1)
    return replace(known, **facts)  # type: ignore[arg-type]


async def test_whoever_is_first_writes_a_second(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    mine = [reading(sale.round.id, second, backlog=1) for second in range(6)]
    theirs = [reading(sale.round.id, second, backlog=2) for second in range(3, 9)]
    noted = await asyncio.gather(ledger.figures.note(mine), ledger.figures.note(theirs), ledger.figures.note(mine))
    assert sum(noted) == 9
    assert [row.at_s - AT_S for row in await rows(ledger, select(figures.c.at_s).order_by(figures.c.at_s))] == [
        *range(9)
    ]
    assert await ledger.figures.note([]) == 0


async def test_a_step_has_its_last_reading_and_its_worst(ledger: SqlLedger) -> None:
    sale, other = await ledger.create_sale(draft(), lane=0), await ledger.create_sale(draft(), lane=0)
    id_ = sale.round.id
    kept = [
        reading(id_, 0, accepted=1, backlog=50, refused={"sold_out": 1}),
        reading(id_, 7, accepted=4, p99_us=900, lag_ms=8, unpaid=2, paid=1, taken_cents=500, waiting=3),
        reading(id_, 9, accepted=5, backlog=2, refused={"sold_out": 7, "paused": 1}, available=None),
        reading(id_, 10, accepted=6),
        reading(id_, 30, accepted=9),
    ]
    await ledger.figures.note([*kept, reading(other.round.id, 5)])
    read = ledger.figures.read
    told = await read(sale.id, None, AT_S, AT_S + 30, 10, 99)
    assert told == [replace(kept[2], backlog=50, lag_ms=8, p99_us=900), kept[3]]
    assert await read(sale.id, id_, AT_S, AT_S + 31, 1, 99) == kept
    assert await read(sale.id, id_, AT_S, AT_S + 31, 1, 2) == kept[:2]
    assert await read(sale.id, other.round.id, AT_S, AT_S + 99, 1, 99) == []
    newest = await ledger.figures.newest([id_, other.round.id, 999])
    assert newest == {id_: kept[-1], other.round.id: reading(other.round.id, 5)}
    assert await ledger.figures.newest([id_], AT_S + 30) == {id_: kept[3]}
    assert await ledger.figures.newest([]) == {}


async def test_refusals_are_added_up_and_a_process_that_goes_takes_nothing_back(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    counted = [{"sold_out": 5}, {"sold_out": 9, "paused": 1}, {}, {"sold_out": 2}, {"sold_out": 6}]
    await ledger.figures.note([reading(sale.round.id, n, refused=each) for n, each in enumerate(counted)])
    assert await ledger.figures.refusals(sale.round.id) == {"sold_out": 9 + 4, "paused": 1}


async def test_sell_outs_and_returns(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    left = [9, 3, 0, 0, None, 0, 2, 2, 0]
    await ledger.figures.note([reading(sale.round.id, n, available=each) for n, each in enumerate(left)])
    turns = await ledger.figures.turns(sale.id, AT_S + 1, AT_S + 99, 10)
    assert [(turn.at_s - AT_S, turn.available) for turn in turns] == [(8, 0), (6, 2), (2, 0)]
    quick = await ledger.create_sale(draft(), lane=0)
    await ledger.figures.note([reading(quick.round.id, n, available=0) for n in range(3)])
    [gone] = await ledger.figures.turns(quick.id, AT_S, AT_S + 99, 10)
    assert gone.at_s == AT_S, "it was sold out before anybody looked"
    later = await ledger.figures.turns(sale.id, AT_S + 6, AT_S + 8, 10)
    assert [turn.at_s - AT_S for turn in later] == [6], "also if what was before is not in that time"


async def test_what_is_fine_goes_first_and_the_rest_in_its_time(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    now_s = (await rows(ledger, select(ledger.database.now_ms.label("now_ms"))))[0].now_ms // 1000

    def at(second: int, fine: bool) -> RoundReading:
        return replace(reading(sale.round.id, 0, fine=fine), at_s=second)

    old = [at(now_s - FINE_MS // 1000 - n, True) for n in range(1, 8)]
    minutes = [at(now_s - 50 * 86_400, False), at(now_s - 91 * 86_400, False)]
    await ledger.figures.note([*old, *minutes, at(now_s - 60, True)])
    await ledger.figures.spare(sale.round.id, old[2].at_s, old[1].at_s)
    tidy = Retention(
        ledger.retention,
        figures=ledger.figures,
        alarms=ledger.alarm_book,
        letters_days=1,
        lines_days=1,
        events_days=1,
        figures_days=90,
    )
    await tidy.step()
    left = [row.at_s for row in await rows(ledger, select(figures.c.at_s).order_by(figures.c.at_s))]
    assert left == [minutes[0].at_s, old[2].at_s, old[1].at_s, now_s - 60]


async def test_one_trouble_is_one_alarm_whoever_tells_of_it(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    book = ledger.alarm_book
    broken = RaisedAlarm(key="k", what="broken", facts={"round": sale.round.id, "found": 1}, lasting=True)
    await asyncio.gather(*(book.raised(broken) for _ in range(3)))
    await book.raised(RaisedAlarm(key="l", what="a lane was lost", facts={"lanes": [1]}, lasting=False))
    other, one = await book.alarms(AlarmFilter(), 9)
    assert (one.what, one.sale_id, one.times, one.is_on) == ("broken", sale.id, 3, True)
    assert (other.sale_id, other.times, other.is_on, other.resolved_ms) == (None, 1, False, None)
    assert [each.id for each in await book.alarms(AlarmFilter(on=True), 9)] == [one.id]
    assert [each.id for each in await book.alarms(AlarmFilter(sale_id=sale.id), 9)] == [one.id]
    await book.resolved("k")
    [over] = await book.alarms(AlarmFilter(sale_id=sale.id), 9)
    assert over.resolved_ms is not None
    assert not over.is_on
    await book.raised(broken)
    assert len(await book.alarms(AlarmFilter(sale_id=sale.id), 9)) == 2, "after it was resolved, it is another one"


async def test_a_lasting_alarm_that_nobody_renews_is_not_on(ledger: SqlLedger) -> None:
    """Its process is gone. If the trouble is still there, another one tells of it, and that is a new alarm."""
    broken = RaisedAlarm(key="k", what="broken", facts={}, lasting=True)
    await ledger.alarm_book.raised(broken)
    async with ledger.database.writers.begin() as connection:
        await connection.execute(update(alarms).values(told_ms=alarms.c.told_ms - STALE_AFTER_MS - 1000))
    assert await ledger.alarm_book.alarms(AlarmFilter(on=True), 9) == []
    await ledger.alarm_book.renew(["k"])
    assert len(await ledger.alarm_book.alarms(AlarmFilter(on=True), 9)) == 1
    async with ledger.database.writers.begin() as connection:
        await connection.execute(update(alarms).values(told_ms=alarms.c.told_ms - 91 * DAY_MS))
    assert await ledger.alarm_book.prune_alarms(90 * DAY_MS, 10) == 1
    assert await rows(ledger, select(func.count()).select_from(alarms)) == [(0,)]


async def test_the_most_that_a_round_may_cost_is_added_up_to_the_cent(ledger: SqlLedger) -> None:
    """More could not be announced."""
    units = 6361  # which divides it
    price = WORTH_CENTS_MAX // units
    sale = await ledger.create_sale(draft(units=units, limit_per_buyer=1000, price_cents=price), lane=2)
    quantities = [1000] * 6 + [361]
    made = [admission(sale.round, n, quantity=quantity) for n, quantity in enumerate(quantities, 1)]
    await ledger.record(made)
    for each in made:
        await ledger.pay(each.number, each.user, capture(f"r{each.user}", cents=price * each.quantity))
    [told] = await ledger.takings.takings(sale.id, None)
    tally = await ledger.tally(sale.round.id)
    assert tally is not None
    assert (told.taken_cents, tally.taken_cents) == (WORTH_CENTS_MAX, WORTH_CENTS_MAX)
    for each in made:
        back = OrderAction(
            number=each.number,
            kind=ActionKind.REFUND,
            reason="dear",
            request_id=each.user,
            amount_cents=None,
            return_unit=False,
        )
        await ledger.actions.act(back)
    [told] = await ledger.takings.takings(sale.id, None)
    assert (told.taken_cents, told.refunded_cents, told.refunding_cents) == (WORTH_CENTS_MAX,) * 3


async def test_money_by_currency_taken_and_given_back(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    made = [await make_order(ledger, round_, n) for n in range(1, 5)]
    for n, each in enumerate(made[:3]):
        await ledger.pay(each.number, each.user, capture(f"r{n}"))
    back = OrderAction(
        number=made[0].number,
        kind=ActionKind.REFUND,
        reason="torn",
        request_id="a",
        amount_cents=200,
        return_unit=False,
    )
    await ledger.actions.act(back)
    [told] = await ledger.takings.takings(round_.sale_id, round_.id)
    assert (told.currency, told.taken_cents, told.refunded_cents, told.refunding_cents) == ("CNY", 3 * PRICE, 200, 200)
    assert await ledger.takings.takings(round_.sale_id, None) == [told]
    assert await ledger.takings.takings(round_.sale_id, round_.id + 1) == []
    assert await ledger.takings.sold([round_.id]) == {round_.id: 4}
    tally = await ledger.tally(round_.id)
    assert tally is not None
    assert (tally.paid_orders, tally.orders) == (3, 4)


async def test_events_of_one_sale_and_of_no_order(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    await make_round(ledger)
    await make_order(ledger, round_)
    await ledger.mark_opened(round_.id, round_.epoch, 1)
    wanted = frozenset({EventType.SALE_CREATED, EventType.ROUND_OPENED})
    found = await ledger.feed.of_sale(round_.sale_id, wanted, 0, 9_999_999_999_999, 9)
    assert [event.type for event in found] == [EventType.ROUND_OPENED, EventType.SALE_CREATED]
    assert found[0].facts["units"] == 100
    assert len(await ledger.feed.of_sale(round_.sale_id, wanted, 0, 9_999_999_999_999, 1)) == 1
