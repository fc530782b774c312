"""Never more goes back than was paid, and nothing of what was not."""

import pytest

from seckill.domain.order import OrderState
from seckill.domain.refund import NoRefund, cents_to_refund, left_of_price
from tests.making import make_order


@pytest.mark.parametrize(
    ("refunded_cents", "wanted_cents", "goes_back"),
    [(0, None, 100), (30, None, 70), (30, 70, 70), (30, 1, 1), (30, 71, NoRefund.TOO_MUCH), (100, None, 0)],
)
def test_all_that_is_left_or_a_part(refunded_cents: int, wanted_cents: int | None, goes_back: int | NoRefund) -> None:
    order = make_order(state=OrderState.PAID, refunded_cents=refunded_cents)
    assert cents_to_refund(order, wanted_cents) == goes_back
    assert left_of_price(order) == 100 - refunded_cents


@pytest.mark.parametrize("state", [state for state in OrderState if state is not OrderState.PAID])
def test_only_what_is_paid(state: OrderState) -> None:
    assert cents_to_refund(make_order(state=state), None) is NoRefund.NOT_PAID
