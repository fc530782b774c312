from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.idempotency_key import request_id
from seckill.domain.order_number import COUNTER_MAX, ORIGIN_S, OrderNumber


@given(
    st.integers(0, 2**31 - 1),
    st.integers(0, 255),
    st.integers(0, COUNTER_MAX),
)
def test_a_number_is_its_parts(seconds: int, lane: int, counter: int) -> None:
    number = OrderNumber(seconds, lane, counter)
    assert 0 <= int(number) < 2**63
    assert OrderNumber.from_int(int(number)) == number


def test_numbers_sort_by_time() -> None:
    earlier = OrderNumber.mint((ORIGIN_S + 5) * 1000 + 999, 255, COUNTER_MAX)
    later = OrderNumber.mint((ORIGIN_S + 6) * 1000, 0, 1)
    assert int(earlier) < int(later)
    assert earlier < later


def test_request_ids_are_short_whatever_the_key() -> None:
    assert request_id("") == ""
    assert request_id("a") != request_id("b")
    assert {len(request_id("x" * n)) for n in (1, 36, 255)} == {16}
