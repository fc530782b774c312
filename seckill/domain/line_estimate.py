"""How likely it is that a place in a line gets a unit. Pure, and computed from what has happened in this round alone.

A unit goes from hand to hand until somebody pays for it. If each of its holders lets it lapse with the same
probability `p`, independently of the others, the lapses of one unit are geometric, and those of all units that are not
paid for yet are their sum. A place with `ahead` units before it gets one if that many units are offered, and one more.

`p` is not known. What is known is what became of the orders whose time to pay is over: those still running would not
do, because whoever pays does so early and whoever does not lapses late. So all rates that fit those orders are tried,
weighted by how well they fit (a Beta distribution, after Jeffreys'), and the chance is the average.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, erfc, sqrt
from statistics import NormalDist

# Fewer orders say nothing about a rate.
DECIDED_MIN = 10
# Up to so many lapses in all, they are added up exactly; beyond, their sum is as good as normal.
EXACT_MAX = 120
_RATES = 16
_SPREAD = tuple(NormalDist().inv_cdf((point + 0.5) / _RATES) for point in range(_RATES))


@dataclass(frozen=True, slots=True)
class RoundSoFar:
    units_left: int  # nobody has been offered these yet
    unpaid: int  # units that are offered, and neither paid nor lapsed
    paid: int  # of the orders whose time to pay is over
    lapsed: int  # and of these, those that were not paid
    passes: int  # how often a unit can still lapse before the round is over, at most


def chance(ahead: int, so_far: RoundSoFar) -> float | None:
    """Of a place with so many units wanted before it. None: nothing is known yet that it could be computed from."""
    missing = ahead + 1 - so_far.units_left
    if missing <= 0:
        return 1.0
    in_play = so_far.units_left + so_far.unpaid
    if in_play * so_far.passes < missing:
        return 0.0
    decided = so_far.paid + so_far.lapsed
    if decided < DECIDED_MIN:
        return None
    mean = (so_far.lapsed + 0.5) / (decided + 1)
    deviation = sqrt(mean * (1 - mean) / (decided + 2))
    rates = [min(0.999, max(0.001, mean + z * deviation)) for z in _SPREAD]
    return sum(_at_least(missing, in_play, round(rate, 4), so_far.passes) for rate in rates) / _RATES


def passes_left(left_ms: int, pay_within_s: int) -> int:
    """Each takes as long as one may take to pay, at most; and the last need not be paid before the round is over."""
    return max(0, ceil(left_ms / (1000 * pay_within_s)))


@lru_cache(10_000)
def _at_least(lapses: int, units: int, rate: float, passes: int) -> float:
    """That so many units lapse so often in all."""
    if units * passes <= EXACT_MAX:
        return sum(_sum_of_lapses(units, rate, passes)[lapses:])
    mean, variance = _moments(rate, passes)
    deviation = sqrt(units * variance)
    return (
        0.5 * erfc((lapses - 0.5 - units * mean) / deviation / sqrt(2)) if deviation else float(units * mean >= lapses)
    )


def _one_unit(rate: float, passes: int) -> list[float]:
    """The probability of each number of lapses."""
    return [rate**n * (1 - rate) for n in range(passes)] + [rate**passes]


@lru_cache(1_000)
def _sum_of_lapses(units: int, rate: float, passes: int) -> tuple[float, ...]:
    if units == 0:
        return (1.0,)
    half = _sum_of_lapses(units // 2, rate, passes)
    both = _convolved(half, half)
    return tuple(_convolved(both, _one_unit(rate, passes)) if units % 2 else both)


def _convolved(one: tuple[float, ...] | list[float], other: tuple[float, ...] | list[float]) -> list[float]:
    found = [0.0] * (len(one) + len(other) - 1)
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            found[i + j] += left * right
    return found


@lru_cache(1_000)
def _moments(rate: float, passes: int) -> tuple[float, float]:
    mean = second = 0.0
    left = 1.0
    for n in range(1, min(passes, 10_000) + 1):
        left *= rate  # that it lapses n times or more
        mean += left
        second += (2 * n - 1) * left
        if left < 1e-12:
            break
    return mean, second - mean * mean
