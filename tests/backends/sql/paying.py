"""Orders and captures for the tests of payments, and what must add up after them."""

import secrets
from typing import Any

from sqlalchemy import func, select

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.tables import feed, order_actions, order_events, orders, outbox, payments, refunds
from seckill.domain.admission import Admission
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.payment_fate import Fate
from seckill.domain.sale import Round
from seckill.ports.order_action import ActionKind, OrderAction
from seckill.ports.payment import Capture, LatePayment
from tests.backends.sql.looking import rows
from tests.backends.sql.making import admission, draft

PRICE = 500


def capture(ref: str = "r1", *, cents: int = PRICE, currency: str = "CNY", provider: str = "p") -> Capture:
    return Capture(provider=provider, ref=ref, amount_cents=cents, currency=currency)


async def make_round(ledger: SqlLedger, **facts: Any) -> Round:
    return (await ledger.create_sale(draft(limit_per_buyer=9, price_cents=PRICE, **facts), lane=2)).round


async def make_order(
    ledger: SqlLedger, round_: Round, counter: int = 1, *, user: str = "ann", slot: int | None = None
) -> Admission:
    made = admission(round_, counter, user=user, slot=counter if slot is None else slot)
    await ledger.record([made])
    return made


async def make_late(ledger: SqlLedger, made: Admission, ref: str = "late") -> LatePayment:
    await ledger.cancel(made.number, made.user)
    captured = await ledger.payments.capture(made.number, capture(ref), 0)
    assert captured.fate is Fate.LATE
    late = await ledger.payments.late(captured.payment_id)
    assert late is not None
    return late


def cancelling(made: Admission, **facts: Any) -> OrderAction:
    return OrderAction(
        number=made.number, kind=ActionKind.CANCEL, **({"request_id": fresh_key(), "reason": "r"} | facts)
    )


def refunding(made: Admission, cents: int | None = None, *, back: bool = True, **facts: Any) -> OrderAction:
    wish = {"request_id": fresh_key(), "reason": "r", "amount_cents": cents, "return_unit": back}
    return OrderAction(number=made.number, kind=ActionKind.REFUND, **(wish | facts))


def fresh_key() -> str:
    return secrets.token_hex(16)


async def make_paid(ledger: SqlLedger, round_: Round, counter: int = 1, *, user: str = "ann") -> Admission:
    made = await make_order(ledger, round_, counter, user=user)
    captured = await ledger.payments.capture(made.number, capture(f"of-{counter}"), 5)
    assert captured.fate is Fate.SETTLED
    return made


async def everything(ledger: SqlLedger) -> list[list[tuple[Any, ...]]]:
    tables = (orders, order_events, payments, refunds, outbox, order_actions, feed)
    return [[tuple(row) for row in await rows(ledger, select(each).order_by(each.c.id))] for each in tables]


async def state_of(ledger: SqlLedger, number: OrderNumber) -> OrderState:
    order = await ledger.order(number)
    assert order is not None
    return order.state


async def check_money(ledger: SqlLedger) -> None:
    """Checks that money taken = what is left of the price of paid orders + refunds + what is late and undecided, and
    that each order has one capture (I14)."""

    async def total(statement: Any) -> int:
        return int((await rows(ledger, statement))[0][0] or 0)

    taken = await total(select(func.sum(payments.c.amount_cents)))
    left = orders.c.price_cents - orders.c.refunded_cents
    paid = await total(select(func.sum(left)).where(orders.c.state == OrderState.PAID))
    back = await total(select(func.sum(refunds.c.amount_cents)))
    late = await total(select(func.sum(payments.c.amount_cents)).where(payments.c.next_ms.is_not(None)))
    assert taken == paid + back + late
    settled = select(func.sum(payments.c.amount_cents)).join(orders, orders.c.id == payments.c.settles)
    of_paid = select(func.sum(orders.c.price_cents)).where(orders.c.state == OrderState.PAID)
    assert await total(settled.where(orders.c.state == OrderState.PAID)) == await total(of_paid)
    of_order = select(orders, func.sum(refunds.c.amount_cents).label("back")).join(
        payments, payments.c.settles == orders.c.id
    )
    for row in await rows(ledger, of_order.join(refunds, refunds.c.payment_id == payments.c.id).group_by(orders.c.id)):
        assert (row.refunded_cents, row.state == "refunded") == (row.back, row.back == row.price_cents)
        assert row.refunded_cents <= row.price_cents
    by_hand = select(func.count()).select_from(refunds.join(payments, payments.c.id == refunds.c.payment_id))
    assert await total(by_hand.where(payments.c.settles.is_not(None), refunds.c.action_id.is_(None))) == 0
    for row in await rows(ledger, select(orders).where(orders.c.replaced_by.is_not(None))):
        assert await state_of(ledger, OrderNumber.from_int(row.replaced_by)) in (OrderState.PAID, OrderState.REFUNDED)
        assert row.state in {"cancelled", "expired", "failed"}
