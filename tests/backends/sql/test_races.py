"""All buyers at once. The first test takes the guard away: if it does not oversell, the others prove nothing."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec import structs
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.record_orders import Recording
from seckill.backends.sql.tables import orders, rounds
from seckill.domain.admission import Admission
from seckill.domain.order_number import OrderNumber
from seckill.errors import LedgerRefused
from seckill.ports.ledger import Recorded
from tests.backends.sql.looking import counts, order_rows, rows
from tests.backends.sql.making import admission, draft

BUYERS = 200
UNITS = 100


async def unguarded(ledger: SqlLedger, order: Admission, everybody_has_read: asyncio.Barrier) -> bool:
    """Reads what is left, and writes what follows from it, as if nothing could happen in between."""
    [(sold, total)] = await rows(ledger, select(rounds.c.sold, rounds.c.total))
    await everybody_has_read.wait()
    if sold >= total:
        return False
    async with ledger.database.writers.begin() as connection:
        await connection.execute(update(rounds).values(sold=sold + 1))
        await connection.execute(
            insert(orders).values(
                id=int(order.number),
                round_id=order.round_id,
                sale_id=1,
                user_id=order.user,
                quantity=order.quantity,
                state="unpaid",
                active_slot=order.slot,
                slot=order.slot,
                request_id=order.request_id,
                epoch=order.epoch,
                price_cents=1,
                currency="CNY",
                created_ms=1,
                recorded_ms=1,
            )
        )
    return True


async def test_control_without_the_guard_it_oversells(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=UNITS), lane=0)
    barrier = asyncio.Barrier(BUYERS)
    bought = await asyncio.gather(
        *[unguarded(ledger, admission(sale.round, counter), barrier) for counter in range(1, BUYERS + 1)]
    )
    assert sum(bought) > UNITS
    assert len(await order_rows(ledger)) == sum(bought)


async def try_to_record(ledger: SqlLedger, *batch: Admission) -> int:
    try:
        return (await ledger.record(batch)).new
    except LedgerRefused:
        return 0


async def test_two_hundred_orders_for_a_hundred_units_sell_exactly_a_hundred(
    ledger: SqlLedger, ledger_url: str
) -> None:
    other = open_ledger(ledger_url)
    sale = await ledger.create_sale(draft(units=UNITS), lane=0)
    new = await asyncio.gather(
        *[
            try_to_record((ledger, other)[counter % 2], admission(sale.round, counter))
            for counter in range(1, BUYERS + 1)
        ]
    )
    await other.close()
    assert sum(new) == UNITS
    assert await counts(ledger, sale.round.id) == (UNITS, UNITS, UNITS)


async def test_fifty_orders_of_one_buyer_at_once_are_one(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(), lane=0)
    new = await asyncio.gather(
        *[try_to_record(ledger, admission(sale.round, counter, user="ann")) for counter in range(1, 51)]
    )
    assert sum(new) == 1
    assert await counts(ledger, sale.round.id) == (1, 1, 1)


async def test_two_workers_with_the_same_batches_write_each_order_once(ledger: SqlLedger, ledger_url: str) -> None:
    """A worker that was given up for dead goes on beside the one that took over, over two rounds, in any order."""
    other = open_ledger(ledger_url)
    sales = [await ledger.create_sale(draft(units=1000), lane=lane) for lane in (0, 1)]
    batches = [
        [admission(sale.round, counter, user=f"{sale.id}-{counter}") for counter in range(start, start + 40)]
        for start in range(1, 200, 20)  # each shares half of its orders with the next
        for sale in sales
    ]
    mixed = [one + two for one, two in zip(batches[::2], batches[1::2], strict=True)]
    answers = await asyncio.gather(
        *[ledger.record(batch) for batch in mixed], *[other.record(batch[::-1]) for batch in reversed(mixed)]
    )
    await other.close()
    different = {order.number for batch in mixed for order in batch}
    assert sum(answer.new for answer in answers) == len(different)
    assert len(await order_rows(ledger)) == len(different)


async def test_an_order_that_another_worker_writes_at_the_same_instant_is_no_refusal(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL has looked for the order, the other worker writes it, and then the buyer's slot is taken."""
    sale = await ledger.create_sale(draft(units=10), lane=0)
    order = admission(sale.round, 1)
    run = Recording.run
    collisions = 0

    async def collide(self: Recording, connection: AsyncConnection, admissions: Sequence[Admission]) -> Recorded:
        nonlocal collisions
        if not collisions:
            collisions += 1
            await run(self, connection, [structs.replace(order, number=OrderNumber(1, 0, 2), slot=1)])
            await run(self, connection, [structs.replace(order, number=OrderNumber(1, 0, 3), slot=1)])
        return await run(self, connection, admissions)

    monkeypatch.setattr(Recording, "run", collide)
    assert (await ledger.record([order])).new == 1
    assert collisions == 1
    assert [row.id for row in await order_rows(ledger)] == [int(order.number)], "what collided was undone"


async def test_a_slot_that_is_taken_for_good_is_refused(ledger: SqlLedger) -> None:
    sale = await ledger.create_sale(draft(units=10), lane=0)
    assert (await ledger.record([admission(sale.round, 1)])).new == 1
    with pytest.raises(LedgerRefused):
        await ledger.record([structs.replace(admission(sale.round, 2), user=admission(sale.round, 1).user)])
