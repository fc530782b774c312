"""Pay against expire and cancel against pay, again and again, from two processes' worth of connections.

Each side is a transaction of several statements, and an asynchronous driver takes milliseconds for it. So a run of the
suite has some hundreds of races of each kind on each database; `RACES=10000` in the environment makes it ten thousand.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from sqlalchemy import Insert, insert, select, update

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.tables import orders, outbox, payments
from seckill.domain.admission import Admission
from seckill.domain.order import OrderState
from seckill.domain.sale import Round
from tests.backends.sql.looking import now_ms, order_rows, rows, sold, write
from tests.backends.sql.making import admission, draft
from tests.backends.sql.test_endings import capture

RACES = int(os.environ.get("RACES", "400"))
# Where a race takes longest, a part of them.
RACES_OF_MARIADB = int(os.environ.get("RACES", "120"))
AT_ONCE = 40
PRICE_CENTS = 500
# Within this time all orders of a group come to the end of their time to pay, each at its own moment…
GROUP_MS = 200
# …and the payment comes so long before or after it.
EDGE_MS = 20
# So much earlier than the cancellation begins every other payment.
HEAD_START_MS = 5

Act = Callable[[SqlLedger, Admission, float], Awaitable[bool]]

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
async def ledgers(ledger: SqlLedger, ledger_url: str) -> AsyncIterator[list[SqlLedger]]:
    other = open_ledger(ledger_url)
    yield [ledger, other]
    await other.close()


async def make_orders(ledger: SqlLedger) -> tuple[Round, list[list[Admission]]]:
    count = RACES_OF_MARIADB if ledger.database.writers.dialect.name == "mysql" else RACES
    sale = await ledger.create_sale(draft(units=count, price_cents=PRICE_CENTS), lane=0)
    made = [admission(sale.round, counter) for counter in range(1, count + 1)]
    for start in range(0, count, 500):
        await ledger.record(made[start : start + 500])
    return sale.round, [made[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]


async def pay(ledger: SqlLedger, order: Admission, after_s: float = 0.0) -> bool:
    await asyncio.sleep(after_s)
    paid = await ledger.pay(order.number, order.user, capture(str(int(order.number)), PRICE_CENTS))
    assert paid is not None
    assert paid.done == (paid.order.state is OrderState.PAID), "who loses learns what the order is"
    return paid.done


async def cancel(ledger: SqlLedger, order: Admission, after_s: float) -> bool:
    await asyncio.sleep(after_s)
    ended = await ledger.cancel(order.number, order.user)
    assert ended is not None
    assert ended.done == (ended.order.state is OrderState.CANCELLED)
    return ended.done


async def check_books(ledger: SqlLedger, round_: Round, paid: set[int], ended: set[int]) -> None:
    """Each order has one winner, and money, releases and units follow from who it was."""
    assert len(paid) + len(ended) == len(await order_rows(ledger))
    assert paid.isdisjoint(ended)
    assert {row.id for row in await order_rows(ledger) if row.state == OrderState.PAID} == paid
    captured = await rows(ledger, select(payments.c.order_id, payments.c.amount_cents))
    assert sorted(row.order_id for row in captured) == sorted(paid)
    assert sum(row.amount_cents for row in captured) == PRICE_CENTS * len(paid)
    released = await rows(ledger, select(outbox.c.order_id).where(outbox.c.kind == "release"))
    assert sorted(row.order_id for row in released) == sorted(ended)
    assert await sold(ledger, round_.id) == len(paid)


async def test_pay_against_expire_at_the_edge(ledgers: list[SqlLedger]) -> None:
    chance = random.Random(52)
    ledger = ledgers[0]
    round_, groups = await make_orders(ledger)
    paid: set[int] = set()
    expired: list[int] = []

    async def sweep(by: SqlLedger, decided: asyncio.Event) -> None:
        while not decided.is_set():
            expired.extend(map(int, await by.expire_due(5)))
            await asyncio.sleep(0.005)

    for group in groups:
        edges_ms = {int(order.number): chance.randrange(GROUP_MS) for order in group}
        began_ms = await now_ms(ledger)
        async with ledger.database.writers.begin() as connection:
            for order_id, edge_ms in edges_ms.items():
                edge = update(orders).where(orders.c.id == order_id)
                await connection.execute(edge.values(expires_ms=began_ms + edge_ms))
        decided = asyncio.Event()
        sweeping = [asyncio.create_task(sweep(by, decided)) for by in ledgers]
        late_ms = await now_ms(ledger) - began_ms
        waits_s = [
            max(0, edges_ms[int(order.number)] - late_ms + chance.uniform(-EDGE_MS, EDGE_MS)) / 1000 for order in group
        ]
        won = await asyncio.gather(
            *[pay(ledgers[i % 2], order, waits_s[i]) for i, order in enumerate(group)]  # by now all are decided
        )
        decided.set()
        await asyncio.gather(*sweeping)
        paid |= {int(order.number) for order, done in zip(group, won, strict=True) if done}
    assert paid, "payments have won somewhere"
    assert expired, "and so have the sweeps"
    assert len(set(expired)) == len(expired), "none was ended twice"
    await check_books(ledger, round_, paid, set(expired))


async def test_cancel_against_pay(ledgers: list[SqlLedger]) -> None:
    chance = random.Random(53)
    round_, groups = await make_orders(ledgers[0])
    paid: set[int] = set()
    cancelled: set[int] = set()

    async def race(won: set[int], order: Admission, by: SqlLedger, act: Act, after_s: float = 0.0) -> None:
        if await act(by, order, after_s):
            won.add(int(order.number))

    for group in groups:
        # A payment is the longer transaction and loses nearly all races that begin at once.
        starts_s = [chance.choice((0, HEAD_START_MS)) / 1000 for _ in group]
        rivals = [race(paid, order, ledgers[i % 2], pay) for i, order in enumerate(group)]
        rivals += [race(cancelled, order, ledgers[1 - i % 2], cancel, starts_s[i]) for i, order in enumerate(group)]
        chance.shuffle(rivals)
        await asyncio.gather(*rivals)
    assert paid, "payments have won somewhere"
    assert cancelled, "and so have cancellations"
    await check_books(ledgers[0], round_, paid, cancelled)


async def unguarded(ledger: SqlLedger, order: Admission, to: OrderState, everybody_has_read: asyncio.Barrier) -> bool:
    """Reads the state, and acts on it as if nothing could happen in between."""
    [(state,)] = await rows(ledger, select(orders.c.state).where(orders.c.id == int(order.number)))
    await everybody_has_read.wait()
    if state != OrderState.UNPAID:
        return False
    await write(ledger, update(orders).where(orders.c.id == int(order.number)).values(state=to))
    if to is OrderState.PAID:
        await write(ledger, _captured(order))
    else:
        facts = {"kind": "release", "order_id": int(order.number), "round_id": order.round_id, "epoch": order.epoch}
        await write(ledger, insert(outbox).values(**facts, payload=to, created_ms=1))
    return True


def _captured(order: Admission) -> Insert:
    paid = capture(str(int(order.number)), PRICE_CENTS)
    facts = {"provider": paid.provider, "provider_ref": paid.ref, "amount_cents": paid.amount_cents}
    return insert(payments).values(
        order_id=int(order.number), settles=int(order.number), **facts, currency=paid.currency, created_ms=1
    )


async def test_control_check_then_act_has_two_winners(ledgers: list[SqlLedger]) -> None:
    ledger = ledgers[0]
    sale = await ledger.create_sale(draft(price_cents=PRICE_CENTS), lane=0)
    made: Sequence[Admission] = [admission(sale.round, counter) for counter in range(1, 21)]
    await ledger.record(made)
    barrier = asyncio.Barrier(2 * len(made))
    won = await asyncio.gather(
        *[unguarded(ledgers[0], order, OrderState.PAID, barrier) for order in made],
        *[unguarded(ledgers[1], order, OrderState.EXPIRED, barrier) for order in made],
    )
    assert sum(won) == 2 * len(made)
    states = {row.id: row.state for row in await order_rows(ledger)}
    captured = {row.order_id for row in await rows(ledger, select(payments.c.order_id))}
    released = {row.order_id for row in await rows(ledger, select(outbox.c.order_id))}
    assert captured == released == set(states), "each is paid for, and its unit is on sale again"
