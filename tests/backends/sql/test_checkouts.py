"""The ledger's part of pages to pay on: each is noted once, due when its order ends, and taken by one keeper."""

import asyncio

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import checkouts
from seckill.domain.order import OrderState
from seckill.ports.payment import Checkout
from tests.backends.sql.looking import now_ms, rows, write
from tests.backends.sql.paying import capture, make_order, make_round


async def page(ledger: SqlLedger, ref: str = "c1", address: str = "https://pay", lasts_ms: int = 60_000) -> Checkout:
    return Checkout(ref=ref, address=address, until_ms=await now_ms(ledger) + lasts_ms)


async def test_a_page_is_found_while_its_address_is_good(ledger: SqlLedger) -> None:
    made = await make_order(ledger, await make_round(ledger))
    assert await ledger.checkouts.checkout(made.number, "p", on_phone=False) is None
    noted = await page(ledger)
    await asyncio.gather(
        *(ledger.checkouts.note_checkout(made.number, "p", noted, on_phone=False, look_after_s=900) for _ in range(5))
    )
    assert await ledger.checkouts.checkout(made.number, "p", on_phone=False) == noted
    assert await ledger.checkouts.checkout(made.number, "p", on_phone=True) is None
    assert await ledger.checkouts.checkout(made.number, "other", on_phone=False) is None
    newer = await page(ledger, address="https://pay/again")
    await ledger.checkouts.note_checkout(made.number, "p", newer, on_phone=False, look_after_s=900)
    assert await ledger.checkouts.checkout(made.number, "p", on_phone=False) == newer
    assert len(await rows(ledger, checkouts.select())) == 1
    await write(ledger, "UPDATE checkouts SET until_ms = 1")
    assert await ledger.checkouts.checkout(made.number, "p", on_phone=False) is None


async def test_a_page_is_due_when_its_order_ends_and_not_before(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    cancelled, expired, paid = [await make_order(ledger, round_, counter) for counter in (1, 2, 3)]
    for made in (cancelled, expired, paid):
        await ledger.checkouts.note_checkout(
            made.number, "p", await page(ledger, str(int(made.number))), on_phone=False, look_after_s=900
        )
    assert await ledger.checkouts.take_checkouts(10, 30) == []
    await ledger.cancel(cancelled.number, cancelled.user)
    await ledger.payments.capture(paid.number, capture(), 5)
    await write(ledger, "UPDATE orders SET expires_ms = 1 WHERE state = 'unpaid'")
    assert len(await ledger.expire_due(10)) == 1
    taken = await ledger.checkouts.take_checkouts(10, 30)
    assert [(each.order.state, each.ref, each.attempts) for each in taken] == [
        (OrderState.CANCELLED, str(int(cancelled.number)), 1),
        (OrderState.EXPIRED, str(int(expired.number)), 1),
    ]


async def test_several_keepers_share_what_is_due(ledger: SqlLedger) -> None:
    round_ = await make_round(ledger)
    for counter in range(1, 7):
        made = await make_order(ledger, round_, counter)
        await ledger.checkouts.note_checkout(
            made.number, "p", await page(ledger, f"c{counter}"), on_phone=False, look_after_s=0
        )
    shares = await asyncio.gather(*(ledger.checkouts.take_checkouts(2, 30) for _ in range(6)))
    taken = [each.id for share in shares for each in share]
    assert len(taken) == len(set(taken))
    assert await ledger.checkouts.take_checkouts(10, 30) == [] or len(taken) < 6
    first, *others = taken
    await ledger.checkouts.checkout_over(first)
    await ledger.checkouts.put_off_checkout(first, -1)
    assert [each.id for each in await ledger.checkouts.take_checkouts(10, 30) if each.id == first] == [], "for good"
    if others:
        await ledger.checkouts.put_off_checkout(others[0], -1)
        assert others[0] in [each.id for each in await ledger.checkouts.take_checkouts(10, 30)]
