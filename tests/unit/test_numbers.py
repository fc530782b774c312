import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seckill.numbers import COUNTER_MAX, ORIGIN_S, OrderNumber, PublicIds, request_id

KEY = bytes(range(32))
ids = PublicIds(KEY, "order")


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


@given(st.integers(0, 2**63 - 1))
def test_public_ids_come_back(number: int) -> None:
    text = ids.encode(number)
    assert len(text) == 13
    assert ids.decode(text) == number


@pytest.mark.parametrize("spelled", [str.lower, lambda t: f"{t[:4]}-{t[4:8]}-{t[8:]}", lambda t: t.replace("0", "O")])
def test_people_may_spell_them_their_way(spelled: object) -> None:
    text = next(t for t in map(ids.encode, range(10_000)) if "0" in t)
    assert ids.decode(spelled(text)) == ids.decode(text)  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    ["", "0", "Z" * 13, "U" * 13, "0" * 12, "0" * 14, "A" * 10_000, "0123456789AB\n", "{1}:*", "零" * 13],
)
def test_anything_else_is_no_id(text: str) -> None:
    assert ids.decode(text) is None


def test_neighbours_look_unrelated() -> None:
    """F21: two orders in a row tell nothing about what lies between them."""
    first, second = (ids.encode(number) for number in (1_000_000, 1_000_001))
    assert sum(a != b for a, b in zip(first, second, strict=True)) >= 8


def test_each_key_and_kind_has_its_own() -> None:
    assert len({PublicIds(key, kind).encode(7) for key in (KEY, KEY[::-1]) for kind in ("order", "sale")}) == 4


def test_made_up_ids_mean_nothing() -> None:
    """Sales are numbered from 1: among random ids not one may decode to such a small number."""
    chance = random.Random(7)
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    made_up = ("".join(chance.choices(alphabet, k=13)) for _ in range(100_000))
    assert not [number for number in map(ids.decode, made_up) if number is not None and number < 2**31]


def test_request_ids_are_short_whatever_the_key() -> None:
    assert request_id("") == ""
    assert request_id("a") != request_id("b")
    assert {len(request_id("x" * n)) for n in (1, 36, 255)} == {16}
