"""The states of an order and of a sale. The admission rule has its own suite, against the real gate."""

import itertools

import pytest

from seckill.domain.order import TRANSITIONS, OrderState, states_before
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundStatus, Sale, SaleState
from tests.making import make_round


def test_the_legal_ways_of_an_order_are_these_and_no_others() -> None:
    legal = {(a, b) for a, b in itertools.product(OrderState, OrderState) if a in states_before(b)}
    assert legal == {
        (OrderState.QUEUED, OrderState.UNPAID),
        (OrderState.QUEUED, OrderState.PAID),
        (OrderState.QUEUED, OrderState.FAILED),
        (OrderState.UNPAID, OrderState.PAID),
        (OrderState.UNPAID, OrderState.CANCELLED),
        (OrderState.UNPAID, OrderState.EXPIRED),
        (OrderState.PAID, OrderState.REFUNDED),
        (OrderState.CANCELLED, OrderState.REFUNDED),
        (OrderState.EXPIRED, OrderState.REFUNDED),
        (OrderState.FAILED, OrderState.REFUNDED),
    }
    assert set(TRANSITIONS) == set(OrderState)


def test_the_outcomes_stand_in_the_order_of_the_contract() -> None:
    assert [outcome.value for outcome in Outcome] == [
        "unauthenticated",
        "unknown_sale",
        "blocked",
        "not_invited",
        "pass_required",
        "person_unknown",
        "invalid",
        "rate_limited",
        "not_ready",
        "repeated",
        "key_reused",
        "cooling_down",
        "limit_reached",
        "join_the_line",
        "not_started",
        "ended",
        "paused",
        "overloaded",
        "sold_out",
        "admitted",
        "unknown",
    ]


@pytest.mark.parametrize(
    ("now_ms", "status", "sold_out", "shown"),
    [
        (99, RoundStatus.OPEN, False, SaleState.SCHEDULED),
        (99, RoundStatus.PAUSED, False, SaleState.PAUSED),
        (99, RoundStatus.CLOSED, False, SaleState.ENDED),
        (100, RoundStatus.OPEN, False, SaleState.OPEN),
        (100, RoundStatus.PAUSED, True, SaleState.PAUSED),
        (199, RoundStatus.OPEN, True, SaleState.SOLD_OUT),
        (200, RoundStatus.OPEN, False, SaleState.ENDED),
    ],
)
def test_what_buyers_are_shown(now_ms: int, status: RoundStatus, sold_out: bool, shown: SaleState) -> None:
    round_ = make_round(begins_ms=100, ends_ms=200, status=status)
    sale = Sale(id=1, title="t", price_cents=0, currency="CNY", pay_within_s=1, created_ms=0, changed=1, round=round_)
    assert sale.state(now_ms, sold_out) is shown
