import time
from typing import Any

import pytest
from msgspec import structs
from prometheus_client import REGISTRY

from seckill.backends.sql import SqlLedger
from seckill.domain.order import OrderState
from seckill.errors import LedgerRefused
from seckill.ports.ledger import Ledger
from seckill.telemetry import CLOCK_OFFSET
from tests.backends.sql.looking import counts, event_rows, now_ms, order_rows, sold, write
from tests.backends.sql.making import admission, draft, number


async def test_is_a_ledger(ledger: SqlLedger) -> None:
    port: Ledger = ledger  # for the type checker
    await port.ping()


async def test_how_far_its_clock_is_ahead_is_a_figure(ledger: SqlLedger) -> None:
    CLOCK_OFFSET.labels("ledger").set(1e9)
    await ledger.ping()
    told = REGISTRY.get_sample_value("seckill_clock_offset_seconds", {"store": "ledger"})
    assert told == pytest.approx(0, abs=5)


async def test_writes_the_whole_order(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(price_cents=500, limit_per_buyer=3, pay_within_s=60), lane=2)
    before_ms = await now_ms(ledger)
    recorded = await ledger.record([admission(sale.round, 7, quantity=3, slot=1, request_id="abc")])
    after_ms = await now_ms(ledger)

    wanted = number(sale.round, 7)
    assert (recorded.new, recorded.repeated, recorded.states) == (1, 0, {"unpaid": [int(wanted)]})
    [row] = await order_rows(ledger)
    assert (row.id, row.round_id, row.sale_id) == (int(wanted), sale.round.id, sale.id)
    assert (row.user_id, row.quantity, row.state, row.epoch) == ("buyer-7", 3, "unpaid", 1)
    assert (row.slot, row.active_slot, row.request_id) == (1, 1, "abc")
    assert (row.price_cents, row.currency) == (1500, "CNY")
    assert row.created_ms == sale.round.begins_ms + 7, "the moment of admission, by the gate's clock"
    assert before_ms <= row.recorded_ms <= after_ms, "by the database's clock"
    assert row.expires_ms == row.recorded_ms + 60_000
    assert (row.paid_ms, row.closed_ms) == (None, None)
    assert await sold(ledger, sale.round.id) == 3
    [event] = await event_rows(ledger)
    assert (event.order_id, event.from_state, event.to_state) == (row.id, "queued", "unpaid")
    assert (event.at_ms, event.cause) == (row.recorded_ms, "recorded")


async def test_a_free_order_is_paid(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(price_cents=0), lane=0)
    recorded = await ledger.record([admission(sale.round, 1)])
    assert recorded.states == {OrderState.PAID: [int(number(sale.round, 1))]}
    [row] = await order_rows(ledger)
    assert (row.state, row.expires_ms, row.price_cents) == ("paid", None, 0)
    assert row.paid_ms == row.recorded_ms
    assert row.active_slot == 1, "a paid order is live: it counts against the limit"
    assert [event.to_state for event in await event_rows(ledger)] == ["paid"]


async def test_a_long_time_to_pay(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(pay_within_s=30 * 86400), lane=0)
    await ledger.record([admission(sale.round, 1)])
    [row] = await order_rows(ledger)
    assert row.expires_ms - row.recorded_ms == 30 * 86_400_000


async def test_a_batch_over_several_rounds(ledger: SqlLedger) -> None:
    """Every order gets the price of its own sale."""
    socks = await ledger.create_sale(draft(price_cents=500), lane=0)
    coupon = await ledger.create_sale(draft(price_cents=0), lane=0)
    batch = [admission(socks.round, 1), admission(coupon.round, 2), admission(socks.round, 3)]
    recorded = await ledger.record(batch)
    assert recorded.new == 3
    prices = {row.user_id: row.price_cents for row in await order_rows(ledger)}
    assert prices == {"buyer-1": 500, "buyer-2": 0, "buyer-3": 500}
    assert await sold(ledger, socks.round.id) == 2
    assert await sold(ledger, coupon.round.id) == 1


async def test_an_empty_batch(ledger: SqlLedger) -> None:
    recorded = await ledger.record([])
    assert (recorded.new, recorded.repeated, recorded.states) == (0, 0, {})


async def test_a_large_batch(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=5000), lane=0)
    batch = [admission(sale.round, counter) for counter in range(1, 5001)]
    assert (await ledger.record(batch)).new == 5000
    assert await counts(ledger, sale.round.id) == (5000, 5000, 5000)
    assert len(await ledger.orders([one.number for one in batch])) == 5000


@pytest.mark.parametrize("known", [0, 150, 299])
async def test_one_order_of_a_large_batch_is_known(ledger: SqlLedger, known: int) -> None:
    sale = await ledger.create_sale(draft(units=1000), lane=0)
    batch = [admission(sale.round, counter) for counter in range(1, 301)]
    await ledger.record([batch[known]])
    recorded = await ledger.record(batch)
    assert (recorded.new, recorded.repeated) == (299, 1)
    assert recorded.states == {"unpaid": [int(one.number) for one in batch]}
    assert await counts(ledger, sale.round.id) == (300, 300, 300)
    told = {event.order_id: event.at_ms for event in await event_rows(ledger)}
    assert told == {row.id: row.recorded_ms for row in await order_rows(ledger)}, "each event has its order's moment"


@pytest.mark.parametrize("quantities", [5, 10])  # fewer kinds of orders than SQLite takes apart, and more
async def test_orders_of_many_kinds_in_one_batch(ledger: SqlLedger, quantities: int) -> None:
    """Each is written with its own quantity, and with the price of its sale."""
    sales = [await ledger.create_sale(draft(price_cents=cents), lane=0) for cents in (0, 700, 900)]
    batch = [
        admission(sale.round, 10 * quantity + place, user=f"buyer-{quantity}", quantity=quantity)
        for quantity in range(1, quantities + 1)
        for place, sale in enumerate(sales)
    ]
    assert (await ledger.record(batch)).new == len(batch)
    rows = await order_rows(ledger)
    assert {(row.round_id, row.quantity, row.user_id, row.price_cents) for row in rows} == {
        (sale.round.id, quantity, f"buyer-{quantity}", quantity * sale.price_cents)
        for quantity in range(1, quantities + 1)
        for sale in sales
    }
    assert {row.state for row in rows if row.price_cents == 0} == {"paid"}
    assert {row.state for row in rows if row.price_cents > 0} == {"unpaid"}


@pytest.mark.parametrize("user", ["用户七", "o'Brien", 'a"b\\c', "%s :x ?", "🧦", "x" * 128])
async def test_users_are_kept_letter_by_letter(ledger: SqlLedger, user: str) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1, user=user)])
    [order] = await ledger.orders_of(user, None, 10)
    assert order.user == user


async def test_no_text_of_a_batch_runs_into_another(ledger: SqlLedger) -> None:
    """They travel together, so what marks the beginning and the end of each must not come from within."""
    sale = await ledger.create_sale(draft(), lane=0)
    users = ['"', '","', "\\", '\\"', "", "NULL", "{a,b}", "},{", "a,b", " a ", "[]", "'", "\n", "null", "plain"]
    batch = [
        admission(sale.round, counter, user=user, request_id=user[::-1]) for counter, user in enumerate(users, start=1)
    ]
    assert (await ledger.record(batch)).new == len(users)
    assert [(row.user_id, row.request_id) for row in await order_rows(ledger)] == [(u, u[::-1]) for u in users]
    assert (await ledger.record(batch)).repeated == len(users)


async def test_text_that_databases_cannot_store(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    with pytest.raises(LedgerRefused, match="NUL character"):
        await ledger.record([admission(sale.round, 1, user="ann\0bob")])


async def test_one_entry_delivered_50_times_is_one_row(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    entry = admission(sale.round, 1)
    answers = [await ledger.record([entry]) for _ in range(50)]
    assert [answer.new for answer in answers] == [1] + [0] * 49
    assert [answer.repeated for answer in answers] == [0] + [1] * 49
    assert all(answer.states == {"unpaid": [int(entry.number)]} for answer in answers)
    assert await counts(ledger, sale.round.id) == (1, 1, 1)
    assert len(await event_rows(ledger)) == 1


async def test_a_repeat_says_the_state_by_now_and_changes_nothing(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    over, live, new = (admission(sale.round, counter) for counter in (1, 2, 3))
    await ledger.record([over, live])
    await write(ledger, "UPDATE orders SET state = 'expired', active_slot = NULL WHERE id = :id", id=int(over.number))
    recorded = await ledger.record([new, live, over])
    assert (recorded.new, recorded.repeated) == (1, 2)
    assert {state: set(numbers) for state, numbers in recorded.states.items()} == {
        "expired": {int(over.number)},
        "unpaid": {int(live.number), int(new.number)},
    }
    assert await sold(ledger, sale.round.id) == 3


async def test_the_same_order_twice_in_a_batch(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    entry = admission(sale.round, 1)
    recorded = await ledger.record([entry, admission(sale.round, 2), entry])
    assert (recorded.new, recorded.repeated, len(recorded.states["unpaid"])) == (2, 1, 2)
    assert await counts(ledger, sale.round.id) == (2, 2, 2)


async def test_two_different_orders_of_one_number_in_a_batch(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    one, other = admission(sale.round, 1), admission(sale.round, 1, user="somebody else")
    with pytest.raises(LedgerRefused, match=f"{int(one.number)} is twice"):
        await ledger.record([one, other])
    assert await counts(ledger, sale.round.id) == (0, 0, 0)


@pytest.mark.parametrize(
    "difference",
    [{"user": "mallory"}, {"quantity": 2}, {"slot": 2}, {"request_id": "other"}, {"epoch": 2}],
    ids=lambda difference: next(iter(difference)),
)
async def test_a_known_number_with_other_content_is_never_success(
    ledger: SqlLedger, difference: dict[str, Any]
) -> None:
    sale = await ledger.create_sale(draft(limit_per_buyer=2), lane=0)
    first = admission(sale.round, 1, request_id="mine")
    await ledger.record([first])
    with pytest.raises(LedgerRefused, match=f"{int(first.number)} is in the ledger already"):
        await ledger.record([admission(sale.round, 2), structs.replace(first, **difference)])
    assert await counts(ledger, sale.round.id) == (1, 1, 1), "all or nothing"


async def test_a_known_number_in_another_round_is_never_success(ledger: SqlLedger) -> None:
    sale, other = [await ledger.create_sale(draft(), lane=0) for _ in range(2)]
    first = admission(sale.round, 1)
    await ledger.record([first])
    with pytest.raises(LedgerRefused, match="different content"):
        await ledger.record([structs.replace(first, round_id=other.round.id)])


async def test_an_unknown_round(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    with pytest.raises(LedgerRefused, match="unknown round, 999"):
        await ledger.record([admission(sale.round, 1), admission(sale.round, 2, round_id=999)])
    assert await counts(ledger, sale.round.id) == (0, 0, 0)


@pytest.mark.parametrize("epoch", [0, 2])
async def test_orders_of_another_epoch_are_refused(ledger: SqlLedger, epoch: int) -> None:
    """The epochs are those before and after a rebuild of the gate."""
    sale = await ledger.create_sale(draft(), lane=0)
    with pytest.raises(LedgerRefused, match=f"is in epoch 1, and orders of epoch {epoch} are void"):
        await ledger.record([admission(sale.round, 1), admission(sale.round, 2, epoch=epoch)])
    assert await counts(ledger, sale.round.id) == (0, 0, 0)


async def test_an_order_written_before_a_rebuild_is_still_a_repeat_after_it(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    entry = admission(sale.round, 1)
    await ledger.record([entry])
    await write(ledger, "UPDATE rounds SET epoch = 2")
    assert (await ledger.record([entry])).repeated == 1
    with pytest.raises(LedgerRefused, match="epoch 2"):
        await ledger.record([admission(sale.round, 2)])


async def test_one_order_more_than_there_are_units(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=3, limit_per_buyer=2), lane=0)
    await ledger.record([admission(sale.round, 1, quantity=2)])
    with pytest.raises(LedgerRefused, match="sold out: 2 of 3 units"):
        await ledger.record([admission(sale.round, 2, quantity=2)])
    assert await counts(ledger, sale.round.id) == (1, 2, 2)
    await ledger.record([admission(sale.round, 3)])
    assert await counts(ledger, sale.round.id) == (2, 3, 3), "F48: the last unit is sold too"


async def test_one_bad_row_refuses_the_batch_and_nothing_is_left_of_it(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=1000), lane=0)
    good = [admission(sale.round, counter) for counter in range(1, 200)]
    for bad in (
        admission(sale.round, 200, quantity=0),
        admission(sale.round, 200, quantity=-1),
        admission(sale.round, 200, user="buyer-1"),  # whose slot is taken by an order of this batch
    ):
        with pytest.raises(LedgerRefused, match="The database refuses the data"):
            await ledger.record([*good, bad])
        assert await counts(ledger, sale.round.id) == (0, 0, 0)
        assert await event_rows(ledger) == []
    assert (await ledger.record(good)).new == 199


async def test_a_refusal_does_not_show_buyers_data(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1, user="ann@example.com")])
    with pytest.raises(LedgerRefused) as refused:
        await ledger.record([admission(sale.round, 2, user="ann@example.com")])
    assert refused.value.__cause__ is not None
    assert "ann@example.com" not in f"{refused.value}{refused.value.__cause__}"


async def test_the_application_clock_decides_nothing(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    await ledger.record([admission(sale.round, 1)])
    [row] = await order_rows(ledger)
    assert abs(row.recorded_ms - sale.created_ms) < 60_000
    assert row.expires_ms == row.recorded_ms + 1000 * sale.pay_within_s


async def test_metadata_is_written_with_its_order_and_the_first_stays(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    plain, *others = [admission(sale.round, counter) for counter in (1, 2, 3)]
    said = [structs.replace(each, metadata=f'{{"大":"{each.number.counter}"}}') for each in others]
    await ledger.record([plain, said[0]])
    repeated = await ledger.record([plain, *said, structs.replace(said[1])])
    assert (repeated.new, repeated.repeated) == (1, 3)
    await ledger.record([structs.replace(each, metadata="{}") for each in (said[0], said[1])])
    found = await ledger.orders([plain.number, *(each.number for each in said)])
    assert {order.number: order.metadata for order in found} == {
        plain.number: "",
        said[0].number: said[0].metadata,
        said[1].number: said[1].metadata,
    }


async def test_remembers_what_an_order_is_traced_under(ledger: SqlLedger) -> None:
    """The first trace stays: the webhook of an order that is written twice hangs on the span that wrote it."""
    sale = await ledger.create_sale(draft(), lane=0)
    first, second = (f"00-{'0' * 31}1-{'0' * 15}{n}-01" for n in (1, 2))
    plain, traced = admission(sale.round, 1), structs.replace(admission(sale.round, 2), trace=first)
    await ledger.record([plain, traced])
    await ledger.record([plain, structs.replace(traced, trace=second)])
    found = await ledger.orders([plain.number, traced.number])
    assert {order.user: order.trace for order in found} == {"buyer-1": "", "buyer-2": first}
