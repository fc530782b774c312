"""Which load comes next: twice as much until something is full, then halfway between, then an opening to confirm it.
Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seckill.lab.rehearsal.crowd import HABITS, Habits, Phase, Shape

FIRST_RATE = 100.0
RATE_MAX = 1_000_000.0
GROWS = 2.0
# Good and bad are so near to each other that another step would tell nothing.
NEAR = 1.15
# A crowd is never as even as a step: this share of the highest even rate is tried as the peak of an opening.
SAFE_SHARE = 0.8
# And so much of it, if that was too much.
LESS = 0.7
WAVES_MAX = 2
STEPS = 15  # in the whole time, so one of them takes this part of it
WAVE_SHARE = 0.2  # of the time is kept for an opening
STEP_S_MIN = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    phase: Phase
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    seconds: float  # of load
    buyers: int
    need: float | None = None
    habits: Habits = HABITS

    @property
    def step_s(self) -> float:
        return max(STEP_S_MIN, self.seconds / STEPS)

    @property
    def wave_s(self) -> float:
        return max(STEP_S_MIN, self.seconds * WAVE_SHARE)

    @property
    def presses(self) -> float:
        return self.buyers * self.habits.presses_per_visit


def highest_good(tried: Sequence[Tried], shape: Shape) -> float | None:
    return max((each.phase.rate for each in tried if each.good and each.phase.shape is shape), default=None)


def lowest_bad(tried: Sequence[Tried], shape: Shape) -> float | None:
    return min((each.phase.rate for each in tried if not each.good and each.phase.shape is shape), default=None)


def next_phase(tried: Sequence[Tried], budget: Budget) -> Phase | None:
    """None: enough is known, or nothing is left of time or buyers."""
    left_s = budget.seconds - sum(each.phase.seconds for each in tried)
    left = budget.presses - sum(each.phase.presses for each in tried)
    waves = [each for each in tried if each.phase.shape is Shape.WAVE]
    if not waves:
        step = _next_step(tried, budget)
        wave = _opening(tried, budget)
        kept = 0.0 if wave is None else wave.presses
        if step is not None and left_s - step.seconds >= budget.wave_s and left - step.presses >= kept:
            return step
        return wave if wave is not None and wave.presses <= left else None
    last = waves[-1]
    if last.good or len(waves) >= WAVES_MAX:
        return None
    # The second is given its time even when nothing is left of it: a rate that nobody has confirmed is of no use.
    less = Phase(shape=Shape.WAVE, rate=last.phase.rate * LESS, seconds=last.phase.seconds)
    return less if less.presses <= left else None


def _next_step(tried: Sequence[Tried], budget: Budget) -> Phase | None:
    good, bad = highest_good(tried, Shape.STEADY), lowest_bad(tried, Shape.STEADY)
    if good is None:
        rate = FIRST_RATE if bad is None else bad / 4
    elif bad is None:
        rate = good * GROWS
        if budget.need is not None and good < budget.need < rate:
            rate = budget.need
    else:
        rate = math.sqrt(good * bad)
        if bad / good <= NEAR:
            return None
    if not 1 <= rate <= RATE_MAX:
        return None
    return Phase(shape=Shape.STEADY, rate=round(rate, 1), seconds=budget.step_s)


def _opening(tried: Sequence[Tried], budget: Budget) -> Phase | None:
    good = highest_good(tried, Shape.STEADY)
    if good is None:
        return None
    peak = good * SAFE_SHARE
    if budget.need is not None and peak < budget.need <= good:
        peak = budget.need
    return Phase(shape=Shape.WAVE, rate=round(peak, 1), seconds=budget.wave_s)
