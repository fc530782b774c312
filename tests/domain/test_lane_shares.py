"""Dividing a round among lanes."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from seckill.domain.lane_shares import deal, even_out, on_the_way, place_of, units_left, went_back
from seckill.domain.sale import RoundRef


@dataclass
class Share:
    available: int
    sent: Counter[int] = field(default_factory=Counter)
    got: Counter[int] = field(default_factory=Counter)

    def copy(self) -> "Share":
        return Share(self.available, self.sent.copy(), self.got.copy())


def test_a_buyer_is_in_the_same_share_for_ever() -> None:
    """Orders are found by it, so these must never change."""
    assert [place_of(user, 8) for user in ("ann", "bob", "用户", "")] == [3, 0, 5, 0]
    assert RoundRef(id=1, lane=5, lanes=8).lane_of("ann") == 8
    assert {RoundRef(id=1, lane=5).lane_of(f"u{i}") for i in range(100)} == {5}


def test_buyers_spread_over_the_shares() -> None:
    counts = Counter(place_of(f"user-{i}", 8) for i in range(8000))
    assert set(counts) == set(range(8))
    assert max(counts.values()) < 1.2 * min(counts.values())


@given(units=st.integers(0, 1000), more=st.integers(0, 50), lanes=st.integers(1, 16))
def test_all_units_are_dealt_and_more_units_make_no_share_smaller(units: int, more: int, lanes: int) -> None:
    before, after = deal(units, lanes), deal(units + more, lanes)
    assert sum(before) == units
    assert max(before) - min(before) <= 1
    assert all(a >= b for a, b in zip(after, before, strict=True))


@given(live=st.lists(st.integers(0, 40), min_size=1, max_size=8), left=st.integers(0, 60))
def test_what_is_dealt_anew_covers_what_every_share_has_sold(live: list[int], left: int) -> None:
    units = sum(live) + left
    shares = deal(units, len(live))
    for move in even_out(units, live):
        assert move.units > 0
        shares[move.origin] -= move.units
        shares[move.to] += move.units
    available = [has - sold for has, sold in zip(shares, live, strict=True)]
    assert sum(available) == left
    assert available == deal(left, len(live))


moves = st.tuples(st.sampled_from(["give", "take", "read"]), st.integers(0, 2), st.integers(0, 2), st.integers(1, 5))


@given(st.lists(moves, max_size=60))
def test_what_is_left_is_right_however_the_readings_fall_between_the_moves(
    history: list[tuple[str, int, int, int]],
) -> None:
    """The shares are read one at a time, in any order, while units move. Nothing is sold, so nothing changes."""
    shares = {lane: Share(7) for lane in range(3)}
    read = {lane: share.copy() for lane, share in shares.items()}
    for step, one, other, units in history:
        if step == "read":
            read[one] = shares[one].copy()
        elif one != other and step == "give":
            giving = min(units, shares[one].available)
            shares[one].available -= giving
            shares[one].sent[other] += giving
        elif one != other:
            coming = shares[one].sent[other] - shares[other].got[one]
            shares[other].available += coming
            shares[other].got[one] += coming
        assert units_left(read) == 21
    assert not went_back(read, shares), "no lane has forgotten anything"
    assert {(a, b) for a, b, _ in on_the_way(shares)} == {
        (a, b) for a in shares for b in shares if shares[a].sent[b] > shares[b].got[a]
    }


def test_a_lane_that_forgot_what_it_sent_is_found_out() -> None:
    donor, other = Share(5, sent=Counter({1: 3})), Share(4, got=Counter({0: 3}))
    assert not went_back({0: donor, 1: other}, {0: donor, 1: other})
    assert went_back({0: donor, 1: other}, {0: Share(8), 1: other})
