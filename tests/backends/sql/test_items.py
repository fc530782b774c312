"""Items in the ledger: a guard for each, one price for each, and counts that add up; on every database."""

import asyncio
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import bindparam, select, update

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.history import SqlHistory
from seckill.backends.sql.tables import orders, round_items, rounds
from seckill.domain.item import ItemChange, ItemDraft, ItemUnits
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.recurrence import Recurrence
from seckill.domain.sale import Sale, SaleChange
from seckill.errors import LedgerRefused, NotPossible
from seckill.ports.history import OrderFilter
from seckill.ports.queue_entry import write_entry
from seckill.ports.transport import Delivery
from tests.backends.sql.looking import rows, write
from tests.backends.sql.making import HOUR_MS, admission, draft, number
from tests.backends.sql.test_races import try_to_record


def two(small: int = 2, large: int = 3) -> tuple[ItemDraft, ...]:
    return (
        ItemDraft(title="S", units=small, price_cents=900, external_id="sku-s"),
        ItemDraft(title="L", units=large, price_cents=0, image="https://shop.example/l.png"),
    )


async def announced(ledger: SqlLedger, **changes: Any) -> tuple[Sale, int, int]:
    sale = await ledger.create_sale(draft(items=two(**changes), price_cents=0), lane=0)
    return sale, sale.items[0].id, sale.items[1].id


async def sold_of(ledger: SqlLedger, round_id: int) -> dict[int, int]:
    found = await rows(ledger, select(round_items).where(round_items.c.round_id == round_id))
    return {row.item_id: row.sold for row in found}


async def test_a_sale_is_read_with_its_items(ledger: SqlLedger) -> None:
    sale, small, large = await announced(ledger)
    plain = await ledger.create_sale(draft(), lane=0)
    assert [(item.title, item.price_cents, item.external_id, item.image) for item in sale.items] == [
        ("S", 900, "sku-s", None),
        ("L", 0, None, "https://shop.example/l.png"),
    ]
    assert (sale.round.total, sale.round.items) == (5, (ItemUnits(small, 2), ItemUnits(large, 3)))
    assert await ledger.sale(sale.id) == sale
    assert {each.id: each for each in await ledger.sales()} == {sale.id: sale, plain.id: plain}
    assert {round_.id: round_.items for round_ in await ledger.rounds_to_sync()} == {
        sale.round.id: sale.round.items,
        plain.round.id: (),
    }


async def test_an_order_has_its_items_price_and_unit(ledger: SqlLedger) -> None:
    """It has them even in a batch with orders of a sale without items."""
    sale, small, large = await announced(ledger)
    plain = await ledger.create_sale(draft(price_cents=500), lane=0)
    batch = [
        admission(sale.round, 1, quantity=2, item=small),
        admission(sale.round, 2, item=large),
        admission(plain.round, 3),
    ]
    recorded = await ledger.record(batch)
    assert recorded.states == {
        "unpaid": [int(number(sale.round, 1)), int(number(plain.round, 3))],
        "paid": [int(number(sale.round, 2))],
    }, "one of them is free"
    found = {
        order.quantity * 10 + order.item: order.price_cents for order in await ledger.orders_of("buyer-1", None, 9)
    }
    assert found == {20 + small: 1800}
    assert await sold_of(ledger, sale.round.id) == {small: 2, large: 1}
    [row] = await rows(ledger, select(rounds).where(rounds.c.id == sale.round.id))
    assert (row.sold, row.written) == (3, 3)
    assert (await ledger.record(batch)).repeated == 3, "the same again is success"
    assert await sold_of(ledger, sale.round.id) == {small: 2, large: 1}
    held = await ledger.holdings(sale.round.id, "", 10)
    assert {user: [each.item for each in mine] for user, mine in held.items()} == {
        "buyer-1": [small],
        "buyer-2": [large],
    }


async def test_no_more_of_an_item_is_sold_than_there_is(ledger: SqlLedger) -> None:
    sale, small, large = await announced(ledger)
    await ledger.record([admission(sale.round, 1, quantity=2, item=small)])
    with pytest.raises(LedgerRefused, match="does not have 1 units left"):
        await ledger.record([admission(sale.round, 2, item=large), admission(sale.round, 3, item=small)])
    assert await sold_of(ledger, sale.round.id) == {small: 2, large: 0}, "nothing of the batch was written"
    assert len(await rows(ledger, select(orders))) == 1


@pytest.mark.parametrize("other", ["another sale's", "none", "unknown"])
async def test_an_order_names_an_item_of_its_sale(ledger: SqlLedger, other: str) -> None:
    sale, _, _ = await announced(ledger)
    another = await ledger.create_sale(draft(items=two()), lane=0)
    item = {"another sale's": another.items[0].id, "none": 0, "unknown": 99}[other]
    with pytest.raises(LedgerRefused, match="item"):
        await ledger.record([admission(sale.round, 1, item=item)])
    plain = await ledger.create_sale(draft(), lane=0)
    with pytest.raises(LedgerRefused, match="item"):
        await ledger.record([admission(plain.round, 1, item=sale.items[0].id)])
    assert not await rows(ledger, select(orders))


async def test_the_same_number_with_another_item_is_another_order(ledger: SqlLedger) -> None:
    sale, small, large = await announced(ledger)
    first = admission(sale.round, 1, item=small)
    await ledger.record([first])
    for other in (large, 0):
        with pytest.raises(LedgerRefused, match="different content"):
            await ledger.record([structs.replace(first, item=other)])
    with pytest.raises(LedgerRefused, match="different items"):
        await ledger.record([admission(sale.round, 2, item=small), admission(sale.round, 2, item=large)])


async def test_a_unit_goes_back_to_its_item(ledger: SqlLedger) -> None:
    sale, small, _ = await announced(ledger)
    await ledger.record([admission(sale.round, 1, quantity=2, item=small)])
    changed = await ledger.cancel(number(sale.round, 1), "buyer-1")
    assert changed is not None
    assert changed.done
    assert await sold_of(ledger, sale.round.id) == dict.fromkeys((item.id for item in sale.items), 0)
    tally = await ledger.tally(sale.round.id)
    assert tally is not None
    assert (tally.total, tally.recorded, tally.ended) == (5, 2, 2)
    of_small = tally.items[small]
    assert (of_small.total, of_small.recorded, of_small.ended, of_small.sold) == (2, 2, 2, 0)


@pytest.mark.parametrize("guarded", [True, False])
async def test_workers_at_once_sell_an_item_to_its_last_unit(ledger: SqlLedger, ledger_url: str, guarded: bool) -> None:
    """Three times as many want it, and there are others. The control takes the guard away."""
    other = open_ledger(ledger_url)
    sale, small, large = await announced(ledger, small=10, large=15)
    if not guarded:
        this = (round_items.c.round_id == bindparam("round"), round_items.c.item_id == bindparam("item"))
        for each in (ledger, other):
            each._recording._take_item = update(round_items).where(*this).values(sold=round_items.c.sold)
    wanted = [admission(sale.round, counter, item=large if counter % 4 == 3 else small) for counter in range(40)]
    await asyncio.gather(*[try_to_record((ledger, other)[place % 2], each) for place, each in enumerate(wanted)])
    await other.close()
    written = [row.item_id for row in await rows(ledger, select(orders.c.item_id))]
    if guarded:
        assert (written.count(small), written.count(large)) == (10, 10)
        assert await sold_of(ledger, sale.round.id) == {small: 10, large: 10}
    else:
        assert written.count(small) > 10


async def test_rounds_of_a_repeating_sale_begin_with_every_items_units(ledger: SqlLedger) -> None:
    begins_ms = 1_800_000_000_000
    again = Recurrence(repeat="FREQ=DAILY", timezone="UTC", begins_ms=begins_ms, window_ms=HOUR_MS)
    made = draft(items=two(), begins_ms=begins_ms, ends_ms=begins_ms + HOUR_MS, recurrence=again)
    sale = await ledger.create_sale(made, lane=0)
    small, large = (item.id for item in sale.items)
    await ledger.change_sale(sale.id, SaleChange(items=(ItemChange(id=small, add_units=5),)))
    day_ms = 24 * HOUR_MS
    added = await ledger.add_round(sale.round, begins_ms + day_ms, begins_ms + day_ms + HOUR_MS, 0)
    assert added is not None
    assert added.round.items == (ItemUnits(small, 2), ItemUnits(large, 3)), "units are added to one round"
    first = await ledger.sale(sale.id, sale.round.id)
    assert first is not None
    assert (first.round.items, first.round.total) == ((ItemUnits(small, 7), ItemUnits(large, 3)), 10)


async def test_what_an_operator_may_change_about_an_item(ledger: SqlLedger) -> None:
    sale, small, large = await announced(ledger)
    wanted = ItemChange(id=large, add_units=4, title="Large", external_id="sku-l", image="")
    changed = await ledger.change_sale(sale.id, SaleChange(items=(wanted,)))
    assert changed is not None
    item = changed.item(large)
    assert item is not None
    assert (item.title, item.external_id, item.image, item.price_cents) == ("Large", "sku-l", None, 0)
    assert (changed.round.total, dict(changed.round.items)) == (9, {small: 2, large: 7})
    assert changed.round.revision == sale.round.revision + 1, "so that the gate gets it"
    for change, why in (
        (SaleChange(items=(ItemChange(id=large, external_id="sku-s"),)), "same external_id"),
        (SaleChange(items=(ItemChange(id=99, add_units=1),)), "no such item"),
        (SaleChange(items=(ItemChange(id=small, add_units=-1),)), "only be added"),
        (SaleChange(add_units=1), "add units to one of them"),
    ):
        with pytest.raises(NotPossible, match=why):
            await ledger.change_sale(sale.id, change)


async def test_wrong_counts_of_items_are_counted_again(ledger: SqlLedger) -> None:
    sale, small, large = await announced(ledger)
    await ledger.record([admission(sale.round, 1, item=small)])
    assert not await ledger.recount(sale.round.id)
    await write(ledger, update(round_items).where(round_items.c.item_id == large).values(sold=2))
    assert await ledger.recount(sale.round.id)
    assert await sold_of(ledger, sale.round.id) == {small: 1, large: 0}


async def test_what_is_given_up_counts_for_its_item(ledger: SqlLedger) -> None:
    sale, small, _ = await announced(ledger)
    lost = admission(sale.round, 1, item=small, epoch=0)
    delivery = Delivery(0, "1-1", write_entry(lost), lost)
    await ledger.set_aside(delivery, "void", 0.0)
    [letter] = await ledger.letters_due(10)
    assert await ledger.bury(letter, lost, "given up") is OrderState.FAILED
    order = await ledger.order(lost.number)
    assert order is not None
    assert (order.item, order.price_cents) == (small, 900)
    tally = await ledger.tally(sale.round.id)
    assert tally is not None
    assert (tally.items[small].recorded, tally.items[small].ended, tally.items[small].sold) == (1, 1, 0)


async def test_the_orders_of_an_item_and_of_no_other(ledger: SqlLedger) -> None:
    sale, small, large = await announced(ledger, small=9, large=9)
    items = [small, large, large, small, large]
    made = [admission(sale.round, counter, item=item) for counter, item in enumerate(items, 1)]
    await ledger.record(made)
    await ledger.cancel(made[3].number, made[3].user)
    history = SqlHistory(ledger.database)

    async def found(count: int, after: OrderNumber | None = None, **wanted: Any) -> list[OrderNumber]:
        page = await history.page(OrderFilter(sale_id=sale.id, **wanted), after, count)
        return [order.number for order in page]

    of_large = [made[place].number for place in (4, 2, 1)]
    assert await found(9, item=large) == of_large
    assert await found(2, item=large) == of_large[:2]
    assert await found(2, of_large[1], item=large) == of_large[2:], "and the next page"
    assert await found(9, item=small, state=OrderState.CANCELLED) == [made[3].number]
    assert await found(9, item=large, state=OrderState.CANCELLED) == []
    assert await found(9, item=small, user=made[0].user) == [made[0].number]
    assert await found(9, item=large, user=made[0].user) == []
