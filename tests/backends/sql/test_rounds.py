"""The keeper makes notes about rounds, and workers and buyers read them."""

import asyncio
from dataclasses import replace

from seckill.backends.sql import SqlLedger
from seckill.domain.sale import SaleChange
from tests.backends.sql.looking import write
from tests.backends.sql.making import admission, draft, number


async def test_a_round_is_to_be_synced_until_the_gate_has_its_newest_revision(ledger: SqlLedger) -> None:
    sale, other = [await ledger.create_sale(draft(), lane=0) for _ in range(2)]
    assert await ledger.rounds_to_sync() == [sale.round, other.round]
    assert await ledger.mark_opened(sale.round.id, epoch=1, opened_ms=7) == 7
    assert len(await ledger.rounds_to_sync()) == 2, "open, but without the rules"
    await ledger.mark_synced(sale.round.id, epoch=1, revision=1)
    assert await ledger.rounds_to_sync() == [other.round]
    await ledger.change_sale(sale.id, SaleChange(add_units=1))
    [again, _] = await ledger.rounds_to_sync()
    assert (again.id, again.revision, again.synced_revision) == (sale.round.id, 2, 1)


async def test_a_revision_without_the_opening_is_not_enough(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.mark_synced(sale.round.id, epoch=1, revision=1)
    assert [round_.id for round_ in await ledger.rounds_to_sync()] == [sale.round.id]


async def test_one_opening_counts_and_all_keepers_learn_which(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    openings = [ledger.mark_opened(sale.round.id, epoch=1, opened_ms=at_ms) for at_ms in range(1, 11)]
    (noted_ms,) = set(await asyncio.gather(*openings))
    after = await ledger.sale(sale.id)
    assert after is not None
    assert after.round.opened_ms == noted_ms
    assert noted_ms in range(1, 11)


async def test_a_round_of_another_epoch_is_not_opened(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    assert await ledger.mark_opened(sale.round.id, epoch=2, opened_ms=7) is None
    assert await ledger.mark_opened(999, epoch=1, opened_ms=7) is None
    await ledger.mark_synced(sale.round.id, epoch=2, revision=1)
    assert await ledger.rounds_to_sync() == [sale.round]


async def test_a_round_that_was_opened_meanwhile_keeps_its_epoch(ledger: SqlLedger) -> None:
    """A keeper that wants to begin its rebuild again has not heard of that, and would void what was sold since."""
    sale = await ledger.create_sale(draft(), lane=0)
    raised = await ledger.next_epoch(sale.round, gate_epoch=4)
    assert raised is not None
    assert (raised.epoch, raised.opened_ms) == (5, None)
    assert await ledger.next_epoch(sale.round) is None, "another keeper was quicker"
    assert await ledger.mark_opened(raised.id, raised.epoch, 7) == 7
    assert await ledger.next_epoch(raised) is None
    again = await ledger.next_epoch(replace(raised, opened_ms=7))
    assert again is not None
    assert (again.epoch, again.opened_ms) == (6, None)


async def test_an_older_revision_takes_nothing_back(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.mark_opened(sale.round.id, epoch=1, opened_ms=7)
    for units in (1, 2):
        await ledger.change_sale(sale.id, SaleChange(add_units=units))
    await ledger.mark_synced(sale.round.id, epoch=1, revision=3)
    await ledger.mark_synced(sale.round.id, epoch=1, revision=1)
    assert await ledger.rounds_to_sync() == []


async def test_lanes_in_use(ledger: SqlLedger) -> None:
    assert await ledger.lanes_in_use() == set()
    for lane in (0, 3, 3, 255):
        await ledger.create_sale(draft(), lane=lane)
    assert await ledger.lanes_in_use() == {0, 3, 255}


async def test_an_order_as_it_is_read(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(limit_per_buyer=2), lane=0)
    await ledger.record([admission(sale.round, 1, quantity=2)])
    order = await ledger.order(number(sale.round, 1))
    assert order is not None
    assert (order.number, order.sale_id, order.round_id) == (number(sale.round, 1), sale.id, sale.round.id)
    assert (order.user, order.quantity, order.state) == ("buyer-1", 2, "unpaid")
    assert (order.price_cents, order.currency) == (1000, "CNY")
    assert order.created_ms == sale.round.begins_ms + 1
    assert order.expires_ms is not None
    assert (order.paid_ms, order.closed_ms) == (None, None)


async def test_orders_that_are_not_there(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1)])
    assert await ledger.order(number(sale.round, 2)) is None
    assert await ledger.orders([]) == []
    found = await ledger.orders([number(sale.round, 1), number(sale.round, 2)])
    assert [order.number for order in found] == [number(sale.round, 1)]


async def test_orders_of_a_buyer_newest_first_page_by_page(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    for counter in range(1, 8):
        await ledger.record(
            [admission(sale.round, counter, user="ann"), admission(sale.round, 100 + counter, user=f"bob-{counter}")]
        )
        await write(ledger, "UPDATE orders SET state = 'cancelled', active_slot = NULL WHERE user_id = 'ann'")
    pages = []
    before = None
    while page := await ledger.orders_of("ann", before, 3):
        pages.append([order.number.counter for order in page])
        before = page[-1].number
    assert pages == [[7, 6, 5], [4, 3, 2], [1]]
    assert await ledger.orders_of("nobody", None, 3) == []
