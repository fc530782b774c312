"""Plans the next load: twice as much until some part is full, then halfway between, then an opening to confirm it.
Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seckill.lab.rehearsal.crowd import HABITS, Habits, Phase, Shape

FIRST_RATE = 100.0
RATE_MAX = 1_000_000.0
GROWS = 2.0
# When the lowest bad rate is within this factor of the highest good one, another step would tell nothing new.
NEAR = 1.15
# This share of the highest even rate is tried as the peak of an opening, because a crowd is never as even as a step.
SAFE_SHARE = 0.8
# If that was too much, this share of it is tried.
LESS = 0.7
WAVES_MAX = 2
STEPS = 15  # number of steps in the whole time
WAVE_SHARE = 0.2  # the share of the time that an opening gets
STEP_S_MIN = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    phase: Phase
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    seconds: float  # seconds of load
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
    """Returns None if enough is known, or if no time or no buyers are left."""
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
    # The second opening runs even when no time is left, because a rate that no opening has confirmed is of no use.
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
