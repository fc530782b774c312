"""The fate of money for an order that is not unpaid, and which money is for an order at all."""

import pytest

from seckill.domain.order import OVER, OrderState
from seckill.domain.payment_fate import Fate, fate_of_unneeded, is_its_price
from tests.making import make_order


@pytest.mark.parametrize("state", sorted(OVER))
def test_money_for_an_order_that_is_over_is_late_unless_another_was_paid_instead(state: OrderState) -> None:
    order = make_order(state=state)
    assert fate_of_unneeded(order) is Fate.LATE
    assert fate_of_unneeded(make_order(state=state, replaced_by=order.number)) is Fate.SURPLUS


def test_otherwise_it_goes_back() -> None:
    assert fate_of_unneeded(make_order(state=OrderState.PAID)) is Fate.SURPLUS
    assert fate_of_unneeded(make_order(state=OrderState.REFUNDED)) is Fate.REFUNDED


def test_only_its_price_in_its_currency_pays_an_order() -> None:
    order = make_order()
    assert is_its_price(order, 100, "CNY")
    assert not is_its_price(order, 99, "CNY")
    assert not is_its_price(order, 100, "EUR")
