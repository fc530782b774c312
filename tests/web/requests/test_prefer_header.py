"""`Prefer: wait=S` as RFC 7240 has it: a wish, so what cannot be understood is ignored."""

import pytest

from seckill.web.requests.prefer_header import applied, preferred_wait_s


def of(*values: bytes) -> int | None:
    return preferred_wait_s([(b"host", b"shop"), *((b"prefer", value) for value in values)])


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (b"wait=10", 10),
        (b"WAIT = 10", 10),
        (b'wait="10"', 10),
        (b"wait=10; why=patience", 10),
        (b"respond-async, wait=10", 10),
        (b'note="a, wait=3", wait=10', 10),
        (b"wait=0", 0),
        (b"wait=007", 7),
        (b"wait=30", 30),
    ],
)
def test_what_is_understood(value: bytes, wait_s: int) -> None:
    assert of(value) == wait_s


@pytest.mark.parametrize("value", [b"wait=31", b"wait=1000000000", b"wait=" + b"9" * 5000])
def test_more_than_there_may_be_is_cut_down(value: bytes) -> None:
    assert of(value) == 30
    assert applied(30) == b"preference-applied: wait=30\r\n"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"wait",
        b"wait=",
        b"wait=abc",
        b"wait=-1",
        b"wait=1e9",
        b"wait=1.5",
        b"wait=10 s",
        b"waiting=10",
        b"return=minimal",
        b'note="wait=3',
        "wait=１０".encode(),
        b'"' * 5000,
    ],
)
def test_what_cannot_be_understood_is_no_preference(value: bytes) -> None:
    assert of(value) is None


def test_the_first_of_several_preferences_counts() -> None:
    assert of(b"wait=3, wait=9") == 3
    assert of(b"return=minimal", b"wait=3", b"wait=9") == 3
    assert of(b"wait=abc", b"wait=9") is None
    assert of() is None
