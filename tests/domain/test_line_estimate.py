"""People in a line are told of their chances, and that is about what happens then."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from seckill.domain.line_estimate import RoundSoFar, calls_left, chance, passes_left

SO_FAR = RoundSoFar(units_left=0, unpaid=100, paid=80, lapsed=20, passes=100)


def test_a_chance_that_is_certain_is_told_as_one_or_zero() -> None:
    assert chance(0, replace(SO_FAR, units_left=1)) == 1.0
    assert chance(9, replace(SO_FAR, units_left=10, paid=0, lapsed=0)) == 1.0, "whatever the others do"
    assert chance(0, replace(SO_FAR, unpaid=0)) == 0.0, "nothing can come back any more"
    assert chance(5, replace(SO_FAR, unpaid=5, passes=1)) == 0.0
    assert chance(0, replace(SO_FAR, passes=0)) == 0.0
    assert chance(3, replace(SO_FAR, paid=0, lapsed=9)) is None, "nine orders are no rate"


@pytest.mark.parametrize("unpaid", [3, 40, 1000, 100_000])
def test_a_chance_falls_with_the_place_and_grows_with_the_rate(unpaid: int) -> None:
    so_far = replace(SO_FAR, unpaid=unpaid)
    told = [chance(unpaid * share // 20, so_far) for share in range(21)]
    assert all(one is not None and other is not None and one >= other for one, other in pairwise(told))
    more = chance(unpaid // 4, replace(so_far, paid=50, lapsed=50))
    less = chance(unpaid // 4, replace(so_far, paid=95, lapsed=5))
    assert more is not None
    assert less is not None
    assert more > less


def test_exact_and_normal_agree_where_they_meet() -> None:
    few = chance(12, replace(SO_FAR, unpaid=40, passes=3, paid=8000, lapsed=2000))  # 120: added up
    many = chance(12, replace(SO_FAR, unpaid=40, passes=4, paid=8000, lapsed=2000))  # 160: normal
    assert few == pytest.approx(many, abs=0.03)


def test_a_line_that_is_too_slow_for_a_place_gives_it_no_chance() -> None:
    slow = replace(SO_FAR, units_left=1000, calls=60)
    assert (chance(59, slow), chance(60, slow)) == (1.0, 0.0)
    assert chance(60, replace(slow, calls=None)) == 1.0
    assert [calls_left(ms, 5) for ms in (-1, 0, 1, 10_000)] == [5, 5, 10, 55], "one second's worth at once"
    assert calls_left(10_000, None) is None


def test_a_unit_that_was_offered_meanwhile_is_not_left() -> None:
    before = replace(SO_FAR, units_left=10, unpaid=0, paid=0, lapsed=0)
    assert chance(9, before) == 1.0
    after = before.after_offering(4)
    assert (after.units_left, after.unpaid) == (6, 4)
    assert (chance(5, after), chance(6, after)) == (1.0, None)
    assert before.after_offering(11) == replace(before, units_left=0, unpaid=10)


def test_how_often_a_unit_can_lapse() -> None:
    assert [passes_left(ms, 60) for ms in (-1, 0, 1, 60_000, 60_001)] == [0, 0, 1, 1, 2]


class SimulatedRound:
    """Units go down a line in steps of the time to pay; each holder pays with a probability that is the round's own."""

    def __init__(self, dice: random.Random, rate: float) -> None:
        self.rate = rate
        self.dice = dice
        self.units = dice.choice((5, 20, 60, 200))
        self.unpaid, self.paid, self.lapsed, self.served = self.units, 0, 0, self.units
        self.passes = dice.randint(2, 6)

    def step(self) -> None:
        """The time to pay is over for all, and what lapsed is offered to the next."""
        lapsed = sum(self.dice.random() < self.rate for _ in range(self.unpaid))
        self.paid, self.lapsed = self.paid + self.unpaid - lapsed, self.lapsed + lapsed
        self.unpaid, self.served, self.passes = lapsed, self.served + lapsed, self.passes - 1

    def so_far(self) -> RoundSoFar:
        return RoundSoFar(0, self.unpaid, self.paid, self.lapsed, self.passes)


Rates = Callable[[random.Random], float]


@pytest.mark.parametrize(
    ("rates", "off_by"),
    [
        pytest.param(lambda dice: dice.uniform(0.02, 0.9), 0.08, id="any rate"),
        # A shop whose rounds are all alike: what looks high in a small round is mostly luck, and a round that knows
        # only itself cannot tell.
        pytest.param(lambda dice: dice.betavariate(2, 5), 0.15, id="rates that are alike"),
    ],
)
def test_about_thirty_percent_of_those_told_thirty_percent_get_one(rates: Rates, off_by: float) -> None:
    dice = random.Random(7)
    told: dict[int, list[tuple[float, bool]]] = {}
    for _ in range(3_000):
        round_ = SimulatedRound(dice, rates(dice))
        round_.step()
        so_far, served = round_.so_far(), round_.served
        places = [served + dice.randrange(max(1, 2 * round_.unpaid)) for _ in range(4)]  # still waiting now
        chances = [chance(place - served, so_far) for place in places]
        while round_.unpaid and round_.passes:
            round_.step()
        for place, said in zip(places, chances, strict=True):
            if said is not None:
                told.setdefault(min(9, int(10 * said)), []).append((said, place < round_.served))
    assert min(map(len, told.values())) > 100, "it says all kinds of things"
    assert len(told) == 10
    for tenth, heard in sorted(told.items()):
        said = sum(said for said, _ in heard) / len(heard)
        share = sum(got for _, got in heard) / len(heard)
        assert abs(share - said) < off_by, (tenth, said, share, len(heard))
