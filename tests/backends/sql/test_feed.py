"""The feed: every committed change once, and no reader ever passes over one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from sqlalchemy import select, text, update

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql import feed as feed_module
from seckill.backends.sql.tables import feed, meta, orders
from seckill.domain.event import EventType
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import RoundStatus, SaleChange
from seckill.errors import LedgerRefused
from seckill.ports.feed import CursorGone, EventFilter, Feed, FeedEvent, FeedPage
from tests.backends.sql.looking import rows, write
from tests.backends.sql.making import HOUR_MS, admission, draft, number
from tests.backends.sql.paying import (
    PRICE,
    cancelling,
    capture,
    make_late,
    make_order,
    make_paid,
    make_round,
    refunding,
)
from tests.backends.sql.test_letters import delivery
from tests.patience import PATIENCE_S

# One row for each transaction that waits for another one.
WAITS_FOR_A_LOCK = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    "mysql": "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}
LOOK_EVERY_S = 0.2  # MariaDB repeats its last answer to clients that ask more often than ten times a second
ALL = EventFilter()
MANY = 10_000


async def page(feed: Feed, after: int | None = None, wanted: EventFilter = ALL, count: int = MANY) -> FeedPage:
    while await feed.line_up():
        pass
    found = await feed.read(after, wanted, count)
    assert isinstance(found, FeedPage)
    return found


async def events(ledger: SqlLedger, after: int | None = None, wanted: EventFilter = ALL) -> Sequence[FeedEvent]:
    return (await page(ledger.feed, after, wanted)).events


async def types(ledger: SqlLedger, after: int | None = None) -> list[str]:
    return [event.type for event in await events(ledger, after)]


async def newest(ledger: SqlLedger) -> int:
    return (await page(ledger.feed)).next


async def test_an_order_from_its_row_to_its_end(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=3)
    before = await newest(ledger)
    await ledger.record([admission(sale.round, counter) for counter in (1, 2)])
    await ledger.cancel(number(sale.round, 1), "buyer-1")
    await ledger.pay(number(sale.round, 2), "buyer-2", capture())
    found = await events(ledger, before)
    assert [(event.type, event.order and event.order.number) for event in found] == [
        ("order.created", number(sale.round, 1)),
        ("order.created", number(sale.round, 2)),
        ("order.cancelled", number(sale.round, 1)),
        ("order.paid", number(sale.round, 2)),
        ("payment.received", None),
    ]
    assert [event.cursor for event in found] == list(range(before + 1, before + 6))
    assert len({event.id for event in found}) == 5
    created, _, cancelled, paid, received = found
    assert created.order
    assert cancelled.order
    assert paid.order
    assert (created.order.state, created.order.closed_ms) == (OrderState.UNPAID, None), "nothing of what came later"
    assert (cancelled.order.state, cancelled.cause) == (OrderState.CANCELLED, "cancelled by the buyer")
    assert cancelled.order.closed_ms == cancelled.at_ms
    assert paid.order.paid_ms == paid.at_ms
    assert {event.sale_id for event in found} == {sale.id}
    assert received.facts["pays_number"] == received.facts["order_number"] == int(number(sale.round, 2))


async def test_a_free_order_is_created_and_paid(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(price_cents=0), lane=0)
    before = await newest(ledger)
    await ledger.record([admission(sale.round, 1)])
    assert await types(ledger, before) == ["order.created", "order.paid"]


async def test_orders_that_expire_and_fail(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(pay_within_s=1), lane=0)
    await ledger.record([admission(sale.round, 1)])
    await write(ledger, "UPDATE orders SET expires_ms = 1")
    before = await newest(ledger)
    assert await ledger.expire_due(10) == [number(sale.round, 1)]
    bad = admission(sale.round, 2)
    await ledger.set_aside(delivery(bad), "why", 0.0)
    [letter] = await ledger.letters_due(10)
    await ledger.bury(letter, bad, "no more")
    assert await types(ledger, before) == ["order.expired", "order.failed"]


async def test_money_that_comes_late(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    late = await make_late(ledger, await make_order(ledger, round_))
    before = await newest(ledger)
    again = await make_order(ledger, round_, 2)
    await ledger.payments.settle(late, again.number)
    assert await types(ledger, before) == ["order.created", "order.paid", "payment.settled"]
    before = await newest(ledger)
    late = await make_late(ledger, await make_order(ledger, round_, 3), "later")
    await ledger.payments.give_back(late, "sold_out")
    [refund] = await ledger.payments.take_refunds(10, 60)
    assert await ledger.payments.refund_done(refund.id)
    assert await ledger.payments.refund_done(refund.id), "once more"
    assert await types(ledger, before) == [
        "order.created",
        "order.cancelled",
        "payment.received",
        "order.refunded",
        "refund.requested",
        "refund.done",
    ]


async def test_what_operators_do_to_orders(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    unpaid = await make_order(ledger, round_, 1)
    paid = await make_paid(ledger, round_, 2)
    before = await newest(ledger)
    part = refunding(paid, 200, reason="scratched")
    for wish in (cancelling(unpaid), part, part, refunding(paid, PRICE), refunding(paid)):
        await ledger.actions.act(wish)
    cancelled, asked, refunded, rest = await events(ledger, before)
    assert cancelled.order
    assert (cancelled.type, cancelled.order.number, cancelled.order.closed_by, cancelled.cause) == (
        "order.cancelled",
        unpaid.number,
        "operator",
        "cancelled by an operator",
    )
    assert (asked.type, asked.facts["order_number"], asked.facts["buyer"], asked.facts["explanation"]) == (
        "refund.requested",
        int(paid.number),
        paid.user,
        "scratched",
    )
    assert (asked.facts["amount_cents"], asked.facts["units_back"]) == (200, 1)
    assert refunded.order
    assert (refunded.type, refunded.order.number, refunded.order.refunded_cents, refunded.order.closed_by) == (
        "order.refunded",
        paid.number,
        PRICE,
        "operator",
    )
    assert refunded.order.paid_ms, "it was paid before"
    assert (rest.type, rest.facts["amount_cents"], rest.facts["units_back"]) == ("refund.requested", PRICE - 200, 0)
    earlier = await events(ledger, wanted=EventFilter(types={EventType.ORDER_PAID}))
    assert [(each.order.refunded_cents, each.order.closed_by) for each in earlier if each.order] == [(0, None)]


async def test_a_free_order_that_an_operator_refunds(ledger: SqlLedger) -> None:
    """No money moves, so no refund is told."""
    sale = await ledger.create_sale(draft(price_cents=0), lane=0)
    made = admission(sale.round, 1)
    await ledger.record([made])
    before = await newest(ledger)
    await ledger.actions.act(refunding(made))
    assert await types(ledger, before) == ["order.refunded"]


async def test_a_provider_that_refuses_is_told_of_once(ledger: SqlLedger) -> None:
    made = await make_paid(ledger, await make_round(ledger))
    await ledger.actions.act(refunding(made, 200))
    [refund] = await ledger.payments.take_refunds(10, 60)
    before = await newest(ledger)
    for words in ("too old", "still too old"):
        await ledger.payments.refund_refused(refund.id, words, 60)
    await ledger.payments.refund_done(refund.id)
    await ledger.payments.refund_refused(refund.id, "too late to say so", 60)
    refused, done = await events(ledger, before)
    assert (refused.type, refused.facts["refused"], refused.facts["amount_cents"]) == ("refund.refused", "too old", 200)
    assert (done.type, done.facts["refund_id"], done.facts["amount_cents"]) == ("refund.done", str(refund.id), 200)


async def test_what_happens_to_a_sale_and_its_rounds(ledger: SqlLedger) -> None:
    again = Recurrence(repeat="daily", timezone="UTC", begins_ms=draft().begins_ms, window_ms=HOUR_MS)
    sale = await ledger.create_sale(draft(ends_ms=again.begins_ms + HOUR_MS, recurrence=again), lane=0)
    await ledger.mark_opened(sale.round.id, 1, 5)
    await ledger.mark_opened(sale.round.id, 1, 6)
    await ledger.change_sale(sale.id, SaleChange(add_units=5, title="Better"))
    await ledger.change_sale(sale.id, SaleChange(title="Better"))
    await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.PAUSED))
    await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.OPEN))
    begins_ms = again.begins_ms + 24 * HOUR_MS
    await ledger.add_round(sale.round, begins_ms, begins_ms + HOUR_MS, lane=0)
    opened = await ledger.sale(sale.id, sale.round.id)
    assert opened is not None
    await ledger.next_epoch(opened.round)
    await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.CLOSED))
    assert await types(ledger) == [
        "sale.created",
        "round.created",
        "round.opened",
        "sale.changed",
        "sale.paused",
        "sale.resumed",
        "round.created",
        "round.fenced",
        "sale.closed",
    ]
    found = await events(ledger)
    assert found[3].facts["changed"] == ["title", "units"]
    assert (found[3].facts["title"], found[3].facts["units"]) == ("Better", 105)
    assert found[6].facts["ordinal"] == 2


async def test_what_is_undone_or_repeated_is_not_told(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=1), lane=0)
    await ledger.record([admission(sale.round, 1)])
    before = await newest(ledger)
    await ledger.record([admission(sale.round, 1)])
    with pytest.raises(LedgerRefused):
        await ledger.record([admission(sale.round, 2)])
    await ledger.pay(number(sale.round, 1), "buyer-1", capture())
    await ledger.cancel(number(sale.round, 1), "buyer-1")
    assert await types(ledger, before) == ["order.paid", "payment.received"]


async def test_only_the_new_orders_of_a_batch_are_told(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1)])
    before = await newest(ledger)
    await ledger.record([admission(sale.round, counter) for counter in (1, 2)])
    assert [event.order and event.order.number for event in await events(ledger, before)] == [number(sale.round, 2)]


async def test_page_by_page_it_is_the_same(ledger: SqlLedger) -> None:
    """It is the same even where a page ends in the middle of a batch."""
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, counter) for counter in range(1, 8)])
    await ledger.cancel(number(sale.round, 3), "buyer-3")
    whole = await events(ledger)
    for count in (1, 2, 3, 10):
        found: list[FeedEvent] = []
        after: int | None = None
        while more := await page(ledger.feed, after, count=count):
            assert len(more.events) <= count
            found += more.events
            if after == more.next:
                break
            after = more.next
        assert found == whole


async def test_types_and_sales_are_filtered(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "PORTIONS_MAX", 3)
    one, other = [await ledger.create_sale(draft(), lane=0) for _ in range(2)]
    await ledger.record([admission(one.round, 1), admission(other.round, 2)])
    await ledger.cancel(number(other.round, 2), "buyer-2")
    created = await events(ledger, wanted=EventFilter(types={EventType.ORDER_CREATED}))
    assert [event.sale_id for event in created] == [one.id, other.id]
    of_other = await page(ledger.feed, wanted=EventFilter(sale_id=other.id), count=2)
    assert [event.type for event in of_other.events] == ["sale.created", "round.created"]
    of_other = await page(ledger.feed, of_other.next, wanted=EventFilter(sale_id=other.id))
    assert [event.type for event in of_other.events] == ["order.created", "order.cancelled"]
    nothing = await page(ledger.feed, wanted=EventFilter(types={EventType.REFUND_DONE}))
    assert (nothing.events, nothing.next) == ([], await newest(ledger)), "it need not be looked through again"


async def test_what_is_pruned_is_gone_and_says_so(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    assert await newest(ledger) == 2
    await write(ledger, update(feed).values(at_ms=1))
    await ledger.record([admission(sale.round, 1)])
    assert await newest(ledger) == 3
    assert await ledger.feed.prune(60_000, 1) == 1
    assert await ledger.feed.prune(60_000, 9) == 1
    assert await ledger.feed.prune(60_000, 9) == 0
    assert await ledger.feed.read(0, ALL, 9) == CursorGone(2, 3)
    assert await ledger.feed.read(1, ALL, 9) == CursorGone(2, 3)
    assert await ledger.feed.read(4, ALL, 9) == CursorGone(2, 3), "never given out"
    assert await types(ledger, 2) == ["order.created"]
    assert await types(ledger) == ["order.created"], "from the oldest that is kept"
    await write(ledger, update(feed).values(at_ms=1))
    assert await ledger.feed.prune(60_000, 9) == 1
    assert await page(ledger.feed, 3) == FeedPage([], 3)
    await ledger.cancel(number(sale.round, 1), "buyer-1")
    assert [event.cursor for event in await events(ledger, 3)] == [4], "no cursor comes back"


async def seen_by_cursor(ledger: SqlLedger, after: int) -> tuple[set[int], int]:
    found = await page(ledger.feed, after, EventFilter(types={EventType.ORDER_CREATED}))
    return {int(event.order.number) for event in found.events if event.order}, found.next


async def seen_by_id(ledger: SqlLedger, after: int) -> tuple[set[int], int]:
    """Reads as one would who took the ids, which are handed out before the commit, for cursors."""
    wanted = select(feed).where(feed.c.id > after, feed.c.type == "order.created").order_by(feed.c.id)
    found = await rows(ledger, wanted)
    return {int(row.numbers.strip("[]")) for row in found}, max([after, *(row.id for row in found)])


Look = Callable[[SqlLedger, int], Awaitable[tuple[set[int], int]]]


async def seen_of_two_that_overlap(ledger: SqlLedger, look: Look) -> tuple[list[int], int, int]:
    """The transaction that wrote its entry first is committed last. What a reader sees who looks between and after."""
    early = (await ledger.create_sale(draft(), lane=0)).round
    late = (await ledger.create_sale(draft(), lane=1)).round
    first, second = admission(early, 1), admission(late, 2)
    async with ledger.database.writers.begin() as connection:
        await ledger._recording.run(connection, [first])
        await ledger.record([second])
        before, cursor = await look(ledger, 0)
    after, _ = await look(ledger, cursor)
    return [*before, *after], int(first.number), int(second.number)


# In SQLite no two transactions overlap.
@pytest.mark.parametrize("ledger_url", ["postgres", "mariadb"], indirect=True)
async def test_control_a_reader_of_ids_passes_over_a_commit_that_comes_later(ledger: SqlLedger) -> None:
    seen, _, second = await seen_of_two_that_overlap(ledger, seen_by_id)
    assert seen == [second]


@pytest.mark.parametrize("ledger_url", ["postgres", "mariadb"], indirect=True)
async def test_a_commit_that_comes_later_is_not_passed_over(ledger: SqlLedger) -> None:
    seen, first, second = await seen_of_two_that_overlap(ledger, seen_by_cursor)
    assert seen == [second, first]


async def test_no_reader_ever_passes_over_an_event_or_sees_it_twice(ledger: SqlLedger, ledger_url: str) -> None:
    """Three processes write; two readers, each of which lines up the feed as well, go on from where they are."""
    others = [open_ledger(ledger_url) for _ in range(2)]
    writers = [ledger, *others]
    rounds = [(await ledger.create_sale(draft(units=1000), lane=lane)).round for lane in range(3)]
    count = 40
    done = asyncio.Event()

    async def sell(which: int) -> None:
        for counter in range(1, count + 1):
            made = admission(rounds[which], counter)
            await writers[which].record([made])
            if counter % 2:
                await writers[(which + 1) % 3].cancel(made.number, made.user)

    async def follow(one: SqlLedger) -> list[FeedEvent]:
        found: list[FeedEvent] = []
        after = 0
        last = False
        while not last:
            last = done.is_set()
            more = await page(one.feed, after, EventFilter(types={EventType.ORDER_CREATED, EventType.ORDER_CANCELLED}))
            found += more.events
            after = more.next
            await asyncio.sleep(0)
        return found

    async def write_all() -> None:
        await asyncio.gather(*(sell(which) for which in range(3)))
        done.set()

    async with asyncio.timeout(PATIENCE_S):
        reading = asyncio.gather(*(follow(one) for one in writers[:2]))
        await write_all()
        readers = await reading
    for other in others:
        await other.close()
    for found in readers:
        assert found == readers[0], "all readers see the same order"
        assert [event.cursor for event in found] == sorted({event.cursor for event in found})
        assert len(found) == 3 * (count + count // 2)
        by_order: dict[OrderNumber, list[str]] = {}
        for event in found:
            assert event.order is not None
            by_order.setdefault(event.order.number, []).append(event.type)
        assert len(by_order) == 3 * count
        assert all(each in (["order.created"], ["order.created", "order.cancelled"]) for each in by_order.values())


@pytest.mark.parametrize("ledger_url", ["postgres", "mariadb"], indirect=True)
async def test_two_changes_of_an_order_that_waited_for_each_other_are_told_in_their_order(ledger: SqlLedger) -> None:
    """The money comes while the order is being cancelled, and its transaction waits for that."""
    made = await make_order(ledger, await make_round(ledger))
    before = await newest(ledger)
    async with ledger.database.writers.begin() as connection:
        await connection.execute(select(orders.c.id).where(orders.c.id == int(made.number)).with_for_update())
        waiting = asyncio.create_task(ledger.payments.capture(made.number, capture(), 60))
        async with asyncio.timeout(PATIENCE_S):
            while not await rows(ledger, text(WAITS_FOR_A_LOCK[ledger.database.readers.dialect.name])):
                await asyncio.sleep(LOOK_EVERY_S)
        await ledger._endings.end(connection, [int(made.number)], OrderState.CANCELLED, "first")
    await waiting
    assert await types(ledger, before) == ["order.cancelled", "payment.received"]


async def test_an_order_is_lined_up_by_one_process_only(ledger: SqlLedger, ledger_url: str) -> None:
    """The row of the last cursor is locked: otherwise two would give out the same ones."""
    other = open_ledger(ledger_url)
    round_ = await make_round(ledger, units=1000)
    for counter in range(1, 21):
        await ledger.record([admission(round_, counter)])
    lined_up = await asyncio.gather(*[one.feed.line_up() for one in (ledger, other) for _ in range(4)])
    await other.close()
    assert sum(lined_up) == 22
    found = await rows(ledger, select(feed.c.first_cursor, feed.c.events).order_by(feed.c.first_cursor))
    assert [row.first_cursor for row in found] == list(range(1, 23))
    [(last,)] = await rows(ledger, select(meta.c.value).where(meta.c.name == "feed"))
    assert last == "22"
