"""A buyer has each slot of a round once at a time."""

import pytest

from seckill.backends.sql import SqlLedger
from seckill.errors import LedgerRefused
from tests.backends.sql.looking import counts, order_rows, sold, write
from tests.backends.sql.making import admission, draft, number


async def test_two_slots_for_a_limit_of_two_and_each_only_once(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(limit_per_buyer=2), lane=0)
    await ledger.record([admission(sale.round, 1, user="ann", slot=1)])
    await ledger.record([admission(sale.round, 2, user="ann", slot=2)])
    with pytest.raises(LedgerRefused):
        await ledger.record([admission(sale.round, 3, user="ann", slot=2)])
    assert await sold(ledger, sale.round.id) == 2


async def test_a_slot_is_free_again_when_its_order_is_over(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    for counter in (1, 2, 3):
        await ledger.record([admission(sale.round, counter, user="ann")])
        await write(ledger, "UPDATE orders SET state = 'cancelled', active_slot = NULL WHERE state = 'unpaid'")
    await ledger.record([admission(sale.round, 4, user="ann")])
    assert [row.active_slot for row in await order_rows(ledger)] == [None, None, None, 1]


async def test_the_same_buyer_in_the_next_round(ledger: SqlLedger) -> None:
    first, second = [await ledger.create_sale(draft(), lane=0) for _ in range(2)]
    recorded = await ledger.record([admission(first.round, 1, user="ann"), admission(second.round, 2, user="ann")])
    assert recorded.new == 2


async def test_a_second_admission_of_the_same_buyer_is_refused_not_swallowed(ledger: SqlLedger) -> None:
    """An earlier order of the buyer does not make another one "done": its unit has to be given back."""
    sale = await ledger.create_sale(draft(), lane=0)
    await ledger.record([admission(sale.round, 1, user="ann")])
    with pytest.raises(LedgerRefused):
        await ledger.record([admission(sale.round, 2, user="ann")])
    assert await ledger.order(number(sale.round, 2)) is None
    assert await counts(ledger, sale.round.id) == (1, 1, 1)
