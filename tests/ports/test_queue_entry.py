"""The form of a queue entry, on every transport."""

import json

import pytest

from seckill.domain.admission import Admission
from seckill.domain.order_number import OrderNumber
from seckill.ports.queue_entry import read_entry, salvage, write_entry


def entry(**changes: object) -> bytes:
    facts: dict[str, object] = {"v": 1, "round": 1, "epoch": 1, "lane": 3, "seconds": 1, "at_ms": 1}
    facts |= {"counter": 1, "quantity": 1, "slot": 1, "user": "u", "request": ""}
    return json.dumps(facts | changes).encode()


def test_an_entry_of_ours_can_be_read() -> None:
    assert read_entry(3, "1-1", entry()).admission is not None


def test_what_is_written_is_what_is_read() -> None:
    admission = Admission(
        number=OrderNumber(7, 3, 9),
        round_id=11,
        epoch=2,
        user='o"hara\\ 用户',
        quantity=4,
        slot=5,
        request_id="k",
        admitted_ms=1_700_000_000_123,
    )
    assert read_entry(3, "1-1", write_entry(admission)).admission == admission


@pytest.mark.parametrize(
    "payload",
    [b"", b"{}", entry(v=2), entry(lane=4), entry(quantity="1"), entry(surprise=1), b"\xff\xfe"],
)
def test_an_entry_that_cannot_be_read_says_why(payload: bytes) -> None:
    delivery = read_entry(3, "1-1", payload)
    assert delivery.admission is None
    assert delivery.problem


IMPOSSIBLE = [
    {"round": 2**63},
    {"round": 0},
    {"epoch": 2**31},
    {"seconds": 2**40},
    {"seconds": -1},
    {"at_ms": 2**63},
    {"counter": 2**24},
    {"quantity": 2**70},
    {"quantity": 0},
    {"slot": 2**31},
    {"user": "u" * 129},
]


@pytest.mark.parametrize("changes", IMPOSSIBLE, ids=str)
def test_numbers_that_no_gate_can_have_written_get_no_further(changes: dict[str, object]) -> None:
    """Neither as an order nor, when it is given up, as a failed one: a database may not be able to hold them."""
    for version in (1, 2):
        payload = entry(v=version, **changes)
        assert read_entry(3, "1-1", payload).admission is None
        assert salvage(3, payload) is None


def test_an_entry_of_another_version_still_says_whose_it_is() -> None:
    saved = salvage(3, entry(v=2, surprise=1))
    assert saved is not None
    assert (saved.number, saved.user) == (OrderNumber(1, 3, 1), "u")
    assert salvage(4, entry(v=2)) is None, "of another lane"
