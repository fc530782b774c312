import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.public_id import PublicIds

KEY = bytes(range(32))
ids = PublicIds(KEY, "order")


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
    """Two orders in a row tell nothing about what lies between them (F21)."""
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


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=40))
def test_many_at_once_are_as_one_by_one(numbers: list[int]) -> None:
    assert ids.encode_all(numbers) == [ids.encode(number) for number in numbers]


def test_no_ids_are_made_of_no_numbers() -> None:
    assert ids.encode_all([]) == []


def test_ids_stay_what_they_are() -> None:
    """They are in buyers' hands: another version must find the same orders by them."""
    assert [ids.encode(number) for number in (0, 1, 2**63 - 1)] == ["8NZB467QKE7V1", "D3YZR68XQVKBF", "1WDWQJ1RR5NCP"]
