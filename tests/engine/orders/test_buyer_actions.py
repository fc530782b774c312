"""Buyers pay and cancel their orders, apart from the database."""

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.public_id import PublicIds
from seckill.engine.orders.buyer_actions import BuyerActions
from seckill.engine.orders.buyer_orders import recorded
from seckill.errors import NotPossible
from seckill.ports.ledger import Changed
from seckill.ports.payment import Capture
from tests.engine.orders.test_buyer_orders import make_order

ORDER = replace(make_order(number=OrderNumber.from_int(7), user="ann"), state=OrderState.UNPAID)


class Ledger:
    def __init__(self, changed: Changed | None) -> None:
        self.changed = changed
        self.captures: list[Capture] = []

    async def pay(self, number: OrderNumber, user: str, capture: Capture) -> Changed | None:
        self.captures.append(capture)
        return self.changed

    async def cancel(self, number: OrderNumber, user: str) -> Changed | None:
        return self.changed


class Provider:
    name = "test"

    def __init__(self, *, sandbox: bool) -> None:
        self.sandbox = sandbox


def actions(ledger: Ledger, *, sandbox: bool = True) -> BuyerActions:
    provider: Any = Provider(sandbox=sandbox)
    return BuyerActions(ledger, provider, PublicIds(b"k" * 32, "order"))


def counted(fate: str) -> float:
    return REGISTRY.get_sample_value("seckill_captures_total", {"fate": fate}) or 0.0


PAID = replace(ORDER, state=OrderState.PAID)
OVER = replace(ORDER, state=OrderState.EXPIRED)


@pytest.mark.parametrize(
    ("changed", "fates"),
    [
        (Changed(PAID, True), {"settled"}),
        (Changed(PAID, False), {"repeated"}),
        (Changed(OVER, False), set()),  # no money has moved
        (None, set()),
    ],
)
async def test_a_payment_in_the_sandbox_is_counted(changed: Changed | None, fates: set[str]) -> None:
    before = {fate: counted(fate) for fate in ("settled", "repeated")}
    ledger = Ledger(changed)
    order = await actions(ledger).pay("ann", recorded(ORDER))
    assert order == (None if changed is None else changed.order)
    assert {fate for fate, count in before.items() if counted(fate) == count + 1} == fates
    (capture,) = ledger.captures
    assert (capture.provider, capture.amount_cents, capture.currency) == ("test", ORDER.price_cents, ORDER.currency)
    assert capture.ref.startswith("*"), "none that a callback could use"


async def test_where_real_money_is_taken_nobody_pays_by_saying_so() -> None:
    ledger = Ledger(Changed(PAID, True))
    with pytest.raises(NotPossible):
        await actions(ledger, sandbox=False).pay("ann", recorded(ORDER))
    assert ledger.captures == []


async def test_a_cancelled_order_is_told_as_it_is() -> None:
    ledger = Ledger(Changed(OVER, False))
    assert await actions(ledger).cancel("ann", ORDER.number) == OVER
    ledger.changed = None
    assert await actions(ledger).cancel("ann", ORDER.number) is None
