"""Lines in the ledger: places, draws, who is called and who is served; on every database."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql import SqlLedger, line_joining, open_ledger, sales
from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.line_tables import line_entries, lines
from seckill.domain.door import Door
from seckill.domain.event import EventType
from seckill.domain.item import ItemDraft
from seckill.domain.line import EntryState, LineEntry, LineOrder, LineRules
from seckill.domain.sale import RoundStatus, Sale, SaleChange
from seckill.errors import NotPossible
from seckill.ports.buyer_data import HindranceKind
from seckill.ports.feed import EventFilter, FeedEvent, FeedPage
from seckill.ports.line import Joining, NoEntry, Standing
from tests.backends.sql.looking import rows, write
from tests.backends.sql.making import HOUR_MS, admission, draft

DRAW = Door(line=LineRules(order=LineOrder.DRAW))
ARRIVAL = Door(line=LineRules(order=LineOrder.ARRIVAL))
WAITING_LIST = Door(line=LineRules(waiting_list=True))
TOKEN = "keeper"
LEASE_S = 60.0


async def make_sale(ledger: SqlLedger, door: Door = ARRIVAL, in_ms: int = -HOUR_MS, **facts: Any) -> Sale:
    begins_ms = int(time.time() * 1000) + in_ms
    return await ledger.create_sale(draft(door=door, begins_ms=begins_ms, limit_per_buyer=9, **facts), lane=0)


async def begin(ledger: SqlLedger, sale: Sale) -> None:
    await ledger.change_sale(sale.id, SaleChange(begins_ms=int(time.time() * 1000) - 1000))


async def join(ledger: SqlLedger, sale: Sale, *users: str, quantity: int = 1, item: int = 0) -> list[Standing]:
    asked = [Joining(user=user, quantity=quantity, item=item) for user in users]
    joined = await ledger.lines.join(sale.round.id, asked)
    assert not isinstance(joined, NoEntry)
    return list(joined)


async def call(
    ledger: SqlLedger, sale: Sale, units: int | dict[int, int], count: int = 100, token: str = TOKEN
) -> list[LineEntry]:
    left = {0: units} if isinstance(units, int) else units
    called = await ledger.lines.call_next(sale.round.id, token, LEASE_S, left, count)
    assert called is not None
    return list(called)


async def record(ledger: SqlLedger, sale: Sale, entries: Sequence[LineEntry]) -> None:
    orders = [
        admission(
            sale.round,
            entry.id,
            user=entry.user,
            quantity=entry.quantity,
            request_id=entry.request_id(),
            item=entry.item,
        )
        for entry in entries
    ]
    await ledger.record(orders)


async def serve(ledger: SqlLedger, sale: Sale, units: int) -> list[str]:
    """Serves the line and returns who got an order."""
    called = await call(ledger, sale, units)
    await record(ledger, sale, called)
    assert await ledger.lines.settle_called(sale.round.id, TOKEN, called, {}) == []
    return [entry.user for entry in called]


async def line_row(ledger: SqlLedger, sale: Sale) -> AnyRow:
    [row] = await rows(ledger, select(lines).where(lines.c.round_id == sale.round.id))
    return row


async def events(ledger: SqlLedger, family: str) -> list[FeedEvent]:
    while await ledger.feed.line_up():
        pass
    page = await ledger.feed.read(None, EventFilter(), 1000)
    assert isinstance(page, FeedPage)
    return [event for event in page.events if event.type.family == family]


async def test_who_comes_first_has_the_better_place_and_keeps_it(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    ann, bob = await join(ledger, sale, "ann", "bob")
    assert (ann.entry.place, ann.ahead, ann.new) == (1, 0, True)
    assert (bob.entry.place, bob.ahead, bob.line.waiting) == (2, 1, 2)
    again, twice, cid = await join(ledger, sale, "bob", "bob", "cid", quantity=3)
    assert (again.entry, again.new, again.ahead) == (bob.entry, False, 1)
    assert twice == again
    assert (cid.entry.place, cid.ahead, cid.entry.quantity) == (3, 2, 3)
    [found] = await ledger.lines.standings([cid.entry.id])
    assert (found.entry, found.ahead) == (cid.entry, 2)
    told = await events(ledger, "entry")
    assert [(event.facts["buyer"], event.facts["quantity"]) for event in told] == [("ann", 1), ("bob", 1), ("cid", 3)]
    assert await ledger.lines.join(10**6, [Joining(user="ann", quantity=1)]) is NoEntry.NO_LINE
    await ledger.change_sale(sale.id, SaleChange(status=RoundStatus.CLOSED))
    assert await ledger.lines.join(sale.round.id, [Joining(user="dan", quantity=1)]) is NoEntry.OVER


async def test_a_buyer_is_found_in_each_line_and_nobody_of_a_similar_name(ledger: SqlLedger) -> None:
    sale, other = await make_sale(ledger), await make_sale(ledger)
    await join(ledger, sale, "first")
    ann, bob = await join(ledger, sale, "ann", "bob")
    [elsewhere] = await join(ledger, other, "ann")
    asked = [(each.round.id, user) for each in (sale, other) for user in ("ann", "bob", "Ann", "ann ", "ánn")]
    found = await ledger.lines.standings_of([*asked, (10**6, "ann")])
    assert {(each.entry.id, each.ahead) for each in found} == {
        (ann.entry.id, 1),
        (bob.entry.id, 2),
        (elsewhere.entry.id, 0),
    }
    assert await ledger.lines.standings_of([(sale.round.id, "Ann"), (sale.round.id, "ann ")]) == []
    assert await ledger.lines.standings_of([]) == []


async def test_what_is_told_of_an_entry_is_what_was_written(ledger: SqlLedger) -> None:
    """It is not read back."""
    sale = await make_sale(ledger)
    odd = [
        Joining(user='ann "a" \\ b', quantity=2, metadata='{"note":"a \\"quote\\", \\\\ and 雪"}', person="h'1"),
        Joining(user="bob{},", quantity=1, groups=("gold", 'a "b"', "雪,"), metadata='{"long":"' + "x" * 4000 + '"}'),
        Joining(user="NULL", quantity=1, person="null"),
    ]
    joined = await ledger.lines.join(sale.round.id, odd)
    assert not isinstance(joined, NoEntry)
    told = [each.entry for each in joined]
    assert await ledger.lines.entries([entry.id for entry in told]) == told
    assert [(entry.user, entry.metadata, entry.groups, entry.person) for entry in told] == [
        (each.user, each.metadata, each.groups, each.person) for each in odd
    ]
    assert await ledger.lines.leave(told[0].id, told[0].user) != NoEntry.UNKNOWN
    again = await ledger.lines.join(sale.round.id, [Joining(user=told[0].user, quantity=1)])
    assert not isinstance(again, NoEntry)
    assert await ledger.lines.entries([told[0].id]) == [again[0].entry]
    assert (again[0].entry.place, again[0].entry.metadata, again[0].ahead) == (4, "", 2)


async def test_there_is_no_gap_between_old_and_new_who_come_together(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    await join(ledger, sale, "a", "c", "e")
    assert isinstance(await ledger.lines.leave((await join(ledger, sale, "c"))[0].entry.id, "c"), Standing)
    joined = await join(ledger, sale, "a", "b", "c", "d", "e", "f")
    assert [(each.entry.user, each.entry.place, each.new) for each in joined] == [
        ("a", 1, False),
        ("b", 4, True),
        ("c", 7, True),
        ("d", 5, True),
        ("e", 3, False),
        ("f", 6, True),
    ]
    assert [each.ahead for each in joined if each.new] == [2, 5, 3, 4]
    kept = await ledger.lines.entries_by_place(sale.round.id, 0, 100)
    assert [(entry.place, entry.user) for entry in kept] == [(1, "a"), (3, "e"), (4, "b"), (5, "d"), (6, "f"), (7, "c")]
    assert joined[0].line.places == 7


async def test_many_join_with_as_many_statements_as_one(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, DRAW, HOUR_MS)
    executed: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        executed.append(statement)

    await join(ledger, sale, "first")
    event.listen(ledger.database.writers.sync_engine, "before_cursor_execute", note)
    counts = []
    for count in (1, 100):
        executed.clear()
        await join(ledger, sale, *[f"{count}-{number}" for number in range(count)])
        counts.append(len(executed))
    assert counts[0] == counts[1], executed
    if ledger.database.writers.dialect.name != "mysql":  # it has no RETURNING, so it looks up what it has inserted
        # PostgreSQL would go through all of a line that it has not analyzed yet.
        assert not [statement for statement in executed if "FROM line_entries" in statement], "nobody is looked for"


async def test_who_leaves_waits_no_more_and_may_come_again_behind_all_others(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    ann, bob, cid = await join(ledger, sale, "ann", "bob", "cid")
    assert await ledger.lines.leave(bob.entry.id, "ann") is NoEntry.UNKNOWN, "another's"
    assert await ledger.lines.leave(10**9, "ann") is NoEntry.UNKNOWN
    for _ in range(2):
        left = await ledger.lines.leave(bob.entry.id, "bob")
        assert isinstance(left, Standing)
        assert (left.entry.state, left.ahead, left.line.waiting) == (EntryState.LEFT, None, 2)
    [third] = await ledger.lines.standings([cid.entry.id])
    assert third.ahead == 1
    [again] = await join(ledger, sale, "bob", quantity=2)
    assert (again.entry.id, again.entry.place, again.entry.quantity, again.ahead) == (bob.entry.id, 4, 2, 2)
    removed = await ledger.lines.leave(ann.entry.id, None, "a bot")
    assert isinstance(removed, Standing)
    assert (removed.entry.state, removed.entry.reason) == (EntryState.LEFT, "a bot")
    [stays] = await join(ledger, sale, "ann")
    assert (stays.entry.state, stays.new) == (EntryState.LEFT, False), "an operator's word counts"
    assert [event.facts["reason"] for event in await events(ledger, "entry") if event.type is EventType.ENTRY_LEFT] == [
        None,
        "a bot",
    ]


async def test_a_list_is_closed_when_its_time_comes_and_places_are_given_once(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, DRAW, in_ms=HOUR_MS)
    before = await line_row(ledger, sale)
    assert len(before.seed) == 64
    ann, bob, cid, dan = await join(ledger, sale, "ann", "bob", "cid", "dan")
    assert (ann.entry.place, ann.ahead, dan.line.waiting) == (None, None, 4)
    assert await ledger.lines.draws_due() == []
    assert await ledger.lines.close_list(sale.round.id) is None, "too early"
    await ledger.lines.leave(bob.entry.id, "bob")
    await ledger.lines.leave(cid.entry.id, "cid")
    [back] = await join(ledger, sale, "cid")
    assert back.entry.id == cid.entry.id
    await begin(ledger, sale)
    [late] = await join(ledger, sale, "eve")
    assert late.entry.place == 4, "behind the three in the draw"
    [due] = await ledger.lines.draws_due()
    assert (due.closed_ms is not None, due.entries) == (True, 3)
    listed = await ledger.lines.listed(sale.round.id, "", 2)
    listed = [*listed, *await ledger.lines.listed(sale.round.id, listed[-1][0], 2)]
    assert listed == [("ann", ann.entry.id), ("cid", cid.entry.id), ("dan", dan.entry.id)]
    await ledger.lines.leave(dan.entry.id, "dan")
    assert [user for user, _ in await ledger.lines.listed(sale.round.id, "", 9)] == ["ann", "cid", "dan"]
    await ledger.lines.note_list(sale.round.id, "a" * 64)
    await ledger.lines.note_list(sale.round.id, "b" * 64)
    assert await ledger.lines.unplaced(sale.round.id, 0, 9) == [ann.entry.id, cid.entry.id, dan.entry.id]
    undrawn = await ledger.lines.undrawn(sale.round.id, ann.entry.id, 9, EntryState.WAITING)
    assert [entry.user for entry in undrawn] == ["cid"]
    assert [entry.user for entry in await ledger.lines.undrawn(sale.round.id, 0, 9)] == ["ann", "cid", "dan"]
    assert (found := await ledger.lines.entry_of(sale.round.id, "dan")) is not None
    assert found.id == dan.entry.id
    assert await ledger.lines.entry_of(sale.round.id, "nobody") is None
    places = [(dan.entry.id, 1), (ann.entry.id, 2), (cid.entry.id, 3)]
    await ledger.lines.give_places(places[:2])
    assert len(await ledger.lines.listed(sale.round.id, "", 9)) == 3, "also in the middle of it"
    assert await call(ledger, sale, 9) == [], "nobody is called before all have their places"
    await ledger.lines.give_places(places)
    await ledger.lines.give_places([(ann.entry.id, 99)])
    await ledger.lines.mark_drawn(sale.round.id)
    await ledger.lines.mark_drawn(sale.round.id)
    assert await ledger.lines.draws_due() == []
    [gone] = await join(ledger, sale, "dan")
    assert (gone.entry.state, gone.entry.place) == (EntryState.LEFT, 1), "the place in the draw is published"
    assert await serve(ledger, sale, 9) == ["ann", "cid", "eve"]
    assert [entry.user for entry in await ledger.lines.entries_by_place(sale.round.id, 0, 9)] == [
        "dan",
        "ann",
        "cid",
        "eve",
    ]
    row = await line_row(ledger, sale)
    assert (row.list_hash, row.seed, row.waiting, row.served) == ("a" * 64, before.seed, 0, 3)
    assert [event.type for event in await events(ledger, "line")] == [EventType.LINE_CLOSED, EventType.LINE_DRAWN]


async def test_a_beacon_is_given_once_and_not_before_the_list_is_closed(ledger: SqlLedger) -> None:
    door = Door(line=LineRules(order=LineOrder.DRAW, beacon=True))
    sale, without = await make_sale(ledger, door, in_ms=HOUR_MS), await make_sale(ledger, DRAW, in_ms=HOUR_MS)

    async def give(to: Sale, beacon: str) -> None:
        await ledger.lines.change_line(to.round.id, paused=None, pace=None, beacon=beacon)

    with pytest.raises(NotPossible, match="announced without"):
        await give(without, "x")
    with pytest.raises(NotPossible, match="not closed"):
        await give(sale, "x")
    await begin(ledger, sale)
    await ledger.lines.close_list(sale.round.id)
    await ledger.lines.note_list(sale.round.id, "a" * 64)
    await give(sale, "x")
    await give(sale, "x")
    with pytest.raises(NotPossible, match="has its beacon"):
        await give(sale, "y")
    changed = await ledger.lines.change_line(sale.round.id, paused=True, pace=7, beacon=None)
    assert changed is not None
    assert (changed.beacon, changed.paused, changed.serve_per_s) == ("x", True, 7)
    changed = await ledger.lines.change_line(sale.round.id, paused=None, pace=0, beacon=None)
    assert changed is not None
    assert (changed.paused, changed.serve_per_s) == (True, None)


async def test_the_best_places_are_called_as_far_as_units_go(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger)
    await ledger.lines.close_list(sale.round.id)
    await ledger.lines.mark_drawn(sale.round.id)
    [two] = await join(ledger, sale, "ann", quantity=2)
    await join(ledger, sale, "bob", "cid")
    assert [entry.user for entry in await call(ledger, sale, 1)] == ["bob"], (
        "who wants more than is left keeps the place"
    )
    assert [entry.user for entry in await call(ledger, sale, 1)] == ["bob"], "the unit is spoken for"
    [bob] = called = await call(ledger, sale, 1)
    assert await ledger.lines.leave(bob.id, "bob") is NoEntry.SERVED
    assert await ledger.lines.leave(bob.id, None, "a bot") is NoEntry.SERVED
    assert await ledger.lines.settle_called(sale.round.id, TOKEN, called, {}) == called, "no order is there yet"
    await record(ledger, sale, called)
    assert await ledger.lines.settle_called(sale.round.id, TOKEN, called, {bob.id: "ended"}) == []
    [served] = await ledger.lines.standings([bob.id])
    assert (served.entry.state, served.line.waiting, served.line.served) == (EntryState.SERVED, 2, 1)
    assert served.entry.order_number is not None
    [first] = await ledger.lines.standings([two.entry.id])
    assert first.ahead == 0
    assert await ledger.lines.served_up_to(first.line) == 0
    assert [entry.user for entry in await call(ledger, sale, 3)] == ["ann", "cid"]
    assert [waiting.called for waiting in await ledger.lines.lines_waiting()] == [2]


async def test_each_item_is_for_those_who_want_it(ledger: SqlLedger) -> None:
    items = tuple(ItemDraft(title=title, units=5, price_cents=500) for title in ("S", "M"))
    begins_ms = int(time.time() * 1000) - HOUR_MS
    sale = await ledger.create_sale(draft(door=WAITING_LIST, begins_ms=begins_ms, items=items), lane=0)
    small, medium = (item.id for item in sale.items)
    await join(ledger, sale, "ann", "bob", item=small)
    await join(ledger, sale, "cid", item=medium)
    assert [entry.user for entry in await call(ledger, sale, {small: 0, medium: 4})] == ["cid"]
    assert [entry.user for entry in await call(ledger, sale, {small: 1, medium: 3})] == ["ann", "cid"]
    [waiting] = await ledger.lines.lines_waiting()
    assert waiting.called == 2


async def test_a_line_of_several_items_is_served_by_place(ledger: SqlLedger) -> None:
    """A slow line does not begin with all who want the first item."""
    items = tuple(ItemDraft(title=title, units=5, price_cents=500) for title in ("S", "M"))
    begins_ms = int(time.time() * 1000) - HOUR_MS
    sale = await ledger.create_sale(draft(door=WAITING_LIST, begins_ms=begins_ms, items=items), lane=0)
    small, medium = (item.id for item in sale.items)
    for user, item in (("ann", medium), ("bob", small), ("cid", small), ("dan", medium), ("eve", small)):
        await join(ledger, sale, user, item=item)
    called = [await call(ledger, sale, {small: 5, medium: 5}, count) for count in (1, 2, 4)]
    assert ["".join(entry.user[0] for entry in each) for each in called] == ["a", "ab", "abcd"]


async def test_who_wants_an_item_of_which_nothing_comes_back_is_passed_over_alone(ledger: SqlLedger) -> None:
    items = tuple(ItemDraft(title=title, units=5, price_cents=500) for title in ("S", "M"))
    begins_ms = int(time.time() * 1000) - HOUR_MS
    sale = await ledger.create_sale(draft(door=WAITING_LIST, begins_ms=begins_ms, items=items), lane=0)
    small, medium = (item.id for item in sale.items)
    await join(ledger, sale, "ann", item=small)
    await join(ledger, sale, "bob", item=medium)
    assert await ledger.lines.pass_over(sale.round.id, "sold_out", 9, [medium]) == 1
    assert [(each.user, each.state) for each in await ledger.lines.entries_by_place(sale.round.id, 0, 9)] == [
        ("ann", EntryState.WAITING),
        ("bob", EntryState.PASSED_OVER),
    ]


async def test_one_keeper_serves_a_line_at_a_time(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, WAITING_LIST)
    await join(ledger, sale, "ann", "bob")
    called = await call(ledger, sale, 1)
    assert await ledger.lines.call_next(sale.round.id, "other", LEASE_S, {0: 1}, 9) is None
    await record(ledger, sale, called)
    await write(ledger, lines.update().values(lease_ms=1))
    assert await call(ledger, sale, 1, token="other") == called, "what the first has begun, the other goes on with"
    assert await ledger.lines.settle_called(sale.round.id, TOKEN, called, {}) == (), "the first has lost it"
    [entry] = await ledger.lines.entries([called[0].id])
    assert entry.state is EntryState.CALLED
    assert await ledger.lines.settle_called(sale.round.id, "other", called, {}) == []


async def test_who_gets_nothing_any_more_is_passed_over_from_the_end(ledger: SqlLedger) -> None:
    sale = await make_sale(ledger, WAITING_LIST)
    await join(ledger, sale, "ann", "bob", "cid")
    called = await call(ledger, sale, 1)
    assert await ledger.lines.pass_over(sale.round.id, "sold_out", 1) == 1
    states = {entry.user: entry.state for entry in await ledger.lines.entries_by_place(sale.round.id, 0, 9)}
    assert states == {"ann": EntryState.CALLED, "bob": EntryState.WAITING, "cid": EntryState.PASSED_OVER}
    assert await ledger.lines.pass_over(sale.round.id, "sold_out", 9) == 1
    assert await ledger.lines.pass_over(sale.round.id, "sold_out", 9) == 0, "not who is called: the gate knows more"
    assert await ledger.lines.settle_called(sale.round.id, TOKEN, called, {called[0].id: "limit_reached"}) == []
    told = [event for event in await events(ledger, "entry") if event.type is EventType.ENTRY_PASSED_OVER]
    assert [(event.facts["buyer"], event.facts["reason"]) for event in told] == [
        ("cid", "sold_out"),
        ("bob", "sold_out"),
        ("ann", "limit_reached"),
    ]
    assert await ledger.lines.lines_waiting() == []
    [again] = await join(ledger, sale, "cid")
    assert (again.entry.place, again.entry.state, again.entry.reason) == (4, EntryState.WAITING, None)


async def test_who_was_passed_over_before_the_list_was_closed_is_not_in_the_draw(ledger: SqlLedger) -> None:
    """A sale that was closed early went on: who did not come again is not drawn, and no place is given twice."""
    sale = await make_sale(ledger, DRAW, in_ms=HOUR_MS)
    await join(ledger, sale, "ann", "bob", "cid")
    assert await ledger.lines.pass_over(sale.round.id, "ended", 9) == 3
    [ann] = await join(ledger, sale, "ann")
    await begin(ledger, sale)
    closed = await ledger.lines.close_list(sale.round.id)
    assert closed is not None
    assert await ledger.lines.listed(sale.round.id, "", 9) == [("ann", ann.entry.id)]
    assert closed.entries == 1
    [late] = await join(ledger, sale, "bob")
    assert late.entry.place == 2, "behind the one in the draw"


async def test_who_is_on_the_list_of_a_draw_keeps_their_name_until_it_is_made(ledger: SqlLedger) -> None:
    """The list is read by names: a buyer who left after it was closed, and is erased while it is read, would be drawn
    twice or not at all. Two keepers may read it, one of them while the other gives places already."""
    sale = await make_sale(ledger, DRAW, in_ms=HOUR_MS)
    ann, _ = await join(ledger, sale, "ann", "bob")
    await begin(ledger, sale)
    assert await ledger.lines.close_list(sale.round.id) is not None
    assert isinstance(await ledger.lines.leave(ann.entry.id, "ann"), Standing)

    async def may_not_be_erased() -> None:
        refused = await ledger.buyer_data.erase("ann", "nobody")
        assert isinstance(refused, list)
        assert [each.kind for each in refused] == [HindranceKind.LINE]

    await may_not_be_erased()
    on_list = await ledger.lines.listed(sale.round.id, "", 9)
    assert [name for name, _ in on_list] == ["ann", "bob"]
    await ledger.lines.give_places([(entry, place) for place, (_, entry) in enumerate(on_list, 1)])
    await may_not_be_erased()
    await ledger.lines.mark_drawn(sale.round.id)
    assert not isinstance(await ledger.buyer_data.erase("ann", "nobody"), list), "nothing is read by names any more"


async def test_a_list_is_not_closed_while_its_time_is_moved(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the very moment at which it would be closed."""
    sale = await make_sale(ledger, DRAW, 1500)
    await join(ledger, sale, "ann")
    change_round, closing = sales._change_round, list[asyncio.Task[Any]]()

    async def change_slowly(*args: Any) -> None:
        await change_round(*args)
        await asyncio.sleep(max(0.0, sale.round.begins_ms / 1000 - time.time()))
        closing.append(asyncio.create_task(ledger.lines.close_list(sale.round.id)))
        await asyncio.wait(closing, timeout=0.3)

    monkeypatch.setattr(sales, "_change_round", change_slowly)
    moved_ms = sale.round.begins_ms + HOUR_MS
    await ledger.change_sale(sale.id, SaleChange(begins_ms=moved_ms, ends_ms=moved_ms + HOUR_MS))
    assert await closing[0] is None
    assert (await line_row(ledger, sale)).closed_ms is None


async def test_a_draft_whose_draw_is_over_is_not_published(ledger: SqlLedger) -> None:
    """No one could take part in it. A sale that was only hidden for a while is on again with those who had joined."""
    late = int(time.time() * 1000) - 1000
    facts: dict[str, Any] = {"begins_ms": late, "published": False}
    hidden = await ledger.create_sale(replace(draft(door=DRAW), **facts), lane=0)
    with pytest.raises(NotPossible, match="no one could join"):
        await ledger.change_sale(hidden.id, SaleChange(published=True))
    assert not (await ledger.sales())[0].published
    await join(ledger, hidden, "ann")
    again = await ledger.change_sale(hidden.id, SaleChange(published=True))
    assert again is not None
    assert again.published
    for door in (ARRIVAL, Door()):
        draft_of_another = await ledger.create_sale(replace(draft(door=door), **facts), lane=0)
        shown = await ledger.change_sale(draft_of_another.id, SaleChange(published=True))
        assert shown is not None
        assert shown.published


async def test_a_waiting_list_is_opened_once(ledger: SqlLedger) -> None:
    sale, plain = await make_sale(ledger, WAITING_LIST), await make_sale(ledger, Door())
    assert not sale.round.lined
    opened = await ledger.lines.open_line(sale.id, sale.round.id)
    again = await ledger.lines.open_line(sale.id, sale.round.id)
    assert opened is not None
    assert (opened.round.lined, opened.round.revision) == (True, sale.round.revision + 1)
    assert again == opened
    assert await ledger.lines.open_line(plain.id, plain.round.id) is None
    assert [event.type for event in await events(ledger, "line")] == [EventType.LINE_OPENED]
    assert [known.changed for known in await ledger.sales(changed_after=plain.changed)] == [opened.changed]


NODES = 3
EACH = 40


@pytest.fixture
async def nodes(ledger: SqlLedger, ledger_url: str) -> AsyncIterator[list[SqlLedger]]:
    others = [open_ledger(ledger_url) for _ in range(NODES - 1)]
    yield [ledger, *others]
    for other in others:
        await other.close()


async def join_at_once(nodes: Sequence[SqlLedger], sale: Sale) -> None:
    """Every buyer asks twice, at two nodes."""
    users = [f"user-{number}" for number in range(EACH)]
    await asyncio.gather(*[join(node, sale, user) for user in users for node in (nodes[0], nodes[hash(user) % NODES])])


async def test_places_follow_each_other_however_many_nodes_write(nodes: list[SqlLedger]) -> None:
    sale = await make_sale(nodes[0], WAITING_LIST)
    await join_at_once(nodes, sale)
    found = await rows(nodes[0], select(line_entries.c.place, line_entries.c.user_id))
    assert sorted(row.place for row in found) == list(range(1, EACH + 1))
    assert len({row.user_id for row in found}) == EACH
    row = await line_row(nodes[0], sale)
    assert (row.places, row.waiting) == (EACH, EACH)


async def test_control_without_the_lock_two_have_one_place(
    nodes: list[SqlLedger], monkeypatch: pytest.MonkeyPatch
) -> None:
    if nodes[0].database.writers.dialect.name == "sqlite":
        pytest.skip("SQLite has one writer at a time, whatever anybody locks")
    sale = await make_sale(nodes[0], WAITING_LIST)
    everybody_has_read = asyncio.Barrier(NODES)

    async def look(connection: AsyncConnection, round_id: int) -> AnyRow | None:
        row = (await connection.execute(select(lines).where(lines.c.round_id == round_id))).one_or_none()
        await everybody_has_read.wait()
        return row

    monkeypatch.setattr(line_joining, "lock_line", look)
    await asyncio.gather(*[join(node, sale, f"user-{number}") for number, node in enumerate(nodes)])
    places = Counter(row.place for row in await rows(nodes[0], select(line_entries.c.place)))
    assert max(places.values()) > 1
