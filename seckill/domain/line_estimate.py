"""How likely it is that a place in a line gets a unit. Pure, and computed from what has happened in this round alone.

A unit goes from buyer to buyer until one pays for it. If each of them lets it lapse with the same probability `p`,
independently of the others, the number of lapses of one unit has a geometric distribution, and the lapses of all unpaid
units are the sum of such numbers. A place with `ahead` units before it gets one if that many units are offered, and one
more.

`p` is not known, but the outcomes of orders whose time to pay is over are. Orders still running would bias it, because
buyers who pay do so early, while the others lapse late. So all rates are tried, weighted by how well they fit those
orders (a Beta distribution with Jeffreys' prior), and the chance is the average.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, erfc, sqrt
from statistics import NormalDist

# Fewer decided orders than this say nothing about the rate.
DECIDED_MIN = 10
# Up to this many lapses in all, the sum is computed exactly; beyond, it is practically normally distributed.
EXACT_MAX = 120
_RATES = 16
_SPREAD = tuple(NormalDist().inv_cdf((point + 0.5) / _RATES) for point in range(_RATES))


@dataclass(frozen=True, slots=True)
class RoundSoFar:
    units_left: int  # not offered to anyone yet
    unpaid: int  # units that are offered, and neither paid nor lapsed
    paid: int  # paid orders among those whose time to pay is over
    lapsed: int  # unpaid orders among those
    passes: int  # how often a unit can still lapse before the round is over, at most
    calls: int | None = None  # how many can still be offered one before the round is over, at most; None: any number

    def after_offering(self, units: int) -> "RoundSoFar":
        """The same when this many more are offered."""
        offered = min(units, self.units_left)
        return replace(self, units_left=self.units_left - offered, unpaid=self.unpaid + offered)


def chance(ahead: int, so_far: RoundSoFar) -> float | None:
    """Returns the chance of a place with this many units wanted before it, or None if too little is known to compute
    it."""
    if so_far.calls is not None and ahead >= so_far.calls:
        return 0.0
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
    """Each pass takes at most the time to pay, and the last order need not be paid before the round is over."""
    return max(0, ceil(left_ms / (1000 * pay_within_s)))


def calls_left(left_ms: int, serve_per_s: int | None) -> int | None:
    """At most, because one second's worth may be called at once."""
    return None if serve_per_s is None else serve_per_s * (1 + ceil(max(0, left_ms) / 1000))


@lru_cache(10_000)
def _at_least(lapses: int, units: int, rate: float, passes: int) -> float:
    """Returns the probability that this many units lapse at least this often in all."""
    if units * passes <= EXACT_MAX:
        return sum(_sum_of_lapses(units, rate, passes)[lapses:])
    mean, variance = _moments(rate, passes)
    deviation = sqrt(units * variance)
    return (
        0.5 * erfc((lapses - 0.5 - units * mean) / deviation / sqrt(2)) if deviation else float(units * mean >= lapses)
    )


def _one_unit(rate: float, passes: int) -> list[float]:
    """Returns the probability of each number of lapses."""
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
        left *= rate  # the probability of n or more lapses
        mean += left
        second += (2 * n - 1) * left
        if left < 1e-12:
            break
    return mean, second - mean * mean
