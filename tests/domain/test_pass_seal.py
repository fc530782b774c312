"""A pass is for one buyer, one round and a limited time, and no one can forge one."""

import string

from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.pass_seal import PassSeal

SEAL = PassSeal(b"k" * 32)
NOW_S = 1_800_000_000


def test_a_pass_is_its_buyers_for_its_round_and_its_time() -> None:
    made = SEAL.seal(7, "ann", NOW_S + 60).encode()
    assert SEAL.holds(made, 7, "ann", NOW_S)
    assert not SEAL.holds(made, 7, "bob", NOW_S)
    assert not SEAL.holds(made, 8, "ann", NOW_S)
    assert not SEAL.holds(made, 7, "ann", NOW_S + 60)
    assert not PassSeal(b"x" * 32).holds(made, 7, "ann", NOW_S)


def test_no_part_of_it_can_be_taken_for_another() -> None:
    """`1` and `0 1800…` of round and end, or of end and name."""
    made = SEAL.seal(7, "ann", NOW_S + 60).encode()
    _, _, mac = made.partition(b".")
    assert not SEAL.holds(b"%d.%b" % (NOW_S + 61, mac), 7, "ann", NOW_S)
    assert not SEAL.holds(b"%d.%b" % (10 * NOW_S, mac), 7, "ann", NOW_S)
    assert SEAL.seal(7, "1 ann", NOW_S) != SEAL.seal(71, "ann", NOW_S)


def test_a_seal_fits_into_a_header() -> None:
    assert set(SEAL.seal(1 << 62, "用户", NOW_S)) <= set(string.ascii_letters + string.digits + "-_.")


@given(st.binary(max_size=60))
def test_nothing_else_is_one(sent: bytes) -> None:
    assert not SEAL.holds(sent, 7, "ann", NOW_S)
