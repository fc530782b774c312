"""Which events an endpoint gets."""

import pytest

from seckill.domain.event import EventType, matching


@pytest.mark.parametrize(
    ("word", "types"),
    [
        ("order.paid", {EventType.ORDER_PAID}),
        ("refund.*", {EventType.REFUND_REQUESTED, EventType.REFUND_REFUSED, EventType.REFUND_DONE}),
        ("refund", set()),
        ("refund.", set()),
        ("*", set()),
        ("", set()),
    ],
)
def test_types(word: str, types: set[EventType]) -> None:
    assert matching(word) == types
