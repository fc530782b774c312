"""How a round went, on every database: from its orders alone."""

from msgspec import structs

from seckill.backends.sql import SqlLedger
from tests.backends.sql.making import admission, draft, number


async def test_the_story_is_read_from_the_orders(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=5, limit_per_buyer=2), lane=0)
    begins_ms = sale.round.begins_ms
    bought = [
        structs.replace(admission(sale.round, place, quantity=units), admitted_ms=begins_ms + at_ms)
        for place, units, at_ms in ((1, 2, 100), (2, 2, 350), (3, 1, 1099))
    ]
    await ledger.record(bought)
    told = await ledger.story(sale.round.id, 4)
    assert (told.first_ms, told.last_ms, told.gone_ms) == (begins_ms + 100, begins_ms + 1099, begins_ms + 1099)
    assert (told.orders, told.units, told.returned) == (3, 5, 0)
    assert told.curve == (2, 4, 4, 5), "at 350, 600, 850 and 1100 ms"
    await ledger.cancel(number(sale.round, 1), "buyer-1")
    await ledger.record([structs.replace(admission(sale.round, 9), admitted_ms=begins_ms + 5000)])
    told = await ledger.story(sale.round.id, 4)
    assert (told.orders, told.units, told.returned, told.gone_ms) == (4, 6, 2, begins_ms + 1099)


async def test_a_round_in_which_nobody_has_bought(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=5), lane=0)
    told = await ledger.story(sale.round.id, 4)
    assert (told.first_ms, told.last_ms, told.gone_ms, told.orders, told.units, told.curve) == (None,) * 3 + (0, 0, ())


async def test_a_round_that_did_not_sell_out(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=5), lane=0)
    await ledger.record([admission(sale.round, 1)])
    told = await ledger.story(sale.round.id, 4)
    assert (told.gone_ms, told.units, told.curve) == (None, 1, (1, 1, 1, 1))


async def test_what_came_back_in_between_was_not_gone(ledger: SqlLedger) -> None:
    """Five were given out by then, and four of them were out."""
    sale = await ledger.create_sale(draft(units=4), lane=0)
    begins_ms = sale.round.begins_ms

    async def buys(place: int, at_ms: int) -> None:
        await ledger.record([structs.replace(admission(sale.round, place), admitted_ms=at_ms)])

    for place in (1, 2, 3):
        await buys(place, begins_ms + place)
    await ledger.cancel(number(sale.round, 1), "buyer-1")
    order = await ledger.order(number(sale.round, 1))
    assert order is not None
    assert order.closed_ms is not None
    await buys(4, order.closed_ms + 1)
    assert (await ledger.story(sale.round.id, 4)).gone_ms is None, "four were given out, three are"
    await buys(5, order.closed_ms + 2)
    assert (await ledger.story(sale.round.id, 4)).gone_ms == order.closed_ms + 2
