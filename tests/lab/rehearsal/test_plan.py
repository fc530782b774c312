"""The load grows until something is full, comes nearer to that, and ends with an opening; within time and buyers."""

import random
from collections.abc import Callable

import pytest

from seckill.lab.rehearsal.crowd import HABITS, PRESSES_ONLY, Phase, Shape, arrivals, intensity
from seckill.lab.rehearsal.plan import SAFE_SHARE, WAVES_MAX, Budget, Tried, next_phase
from tests.lab.rehearsal.making import steady, wave

MINUTE = Budget(seconds=60, buyers=1_000_000)


def played(budget: Budget, is_good: Callable[[Phase], bool]) -> list[Tried]:
    tried: list[Tried] = []
    while (phase := next_phase(tried, budget)) is not None:
        tried.append(Tried(phase=phase, good=is_good(phase)))
        assert len(tried) < 100
    return tried


@pytest.mark.parametrize("limit", [30, 150, 1_000, 2_345, 7_000])
def test_it_finds_what_a_deployment_can_do(limit: float) -> None:
    tried = played(MINUTE, lambda phase: phase.rate <= limit)
    steps = [each for each in tried if each.phase.shape is Shape.STEADY]
    best = max(each.phase.rate for each in steps if each.good)
    assert limit / 2 <= best <= limit
    assert tried[-1].phase.shape is Shape.WAVE
    assert tried[-1].good
    assert tried[-1].phase.rate == pytest.approx(best * SAFE_SHARE, abs=0.1)


def test_an_opening_that_was_too_much_is_tried_once_more_with_less() -> None:
    tried = played(MINUTE, lambda phase: phase.shape is Shape.STEADY and phase.rate < 500)
    waves = [each.phase.rate for each in tried if each.phase.shape is Shape.WAVE]
    assert len(waves) == WAVES_MAX
    assert waves == sorted(waves, reverse=True)


def test_nothing_is_confirmed_where_nothing_goes_well() -> None:
    tried = played(MINUTE, lambda _: False)
    assert {each.phase.shape for each in tried} == {Shape.STEADY}
    assert [each.phase.rate for each in tried] == sorted((each.phase.rate for each in tried), reverse=True)


@pytest.mark.parametrize("is_good", [True, False])
@pytest.mark.parametrize("budget", [Budget(seconds=5, buyers=200), Budget(seconds=60, buyers=3_000), MINUTE])
def test_time_and_buyers_are_kept(budget: Budget, is_good: bool) -> None:
    tried = played(budget, lambda phase: is_good or phase.rate < 200)
    assert tried
    assert sum(each.phase.presses for each in tried) <= budget.presses
    # But for a second opening, see the plan.
    assert sum(each.phase.seconds for each in tried) <= budget.seconds + budget.wave_s


def test_a_rate_that_is_needed_is_tried_as_it_is() -> None:
    budget = Budget(seconds=60, buyers=1_000_000, need=1_000)
    tried = played(budget, lambda phase: phase.rate <= 1_050)
    assert 1_000 in [each.phase.rate for each in tried if each.phase.shape is Shape.STEADY]
    assert tried[-1].phase == wave(1_000, budget.wave_s)


def test_visitors_come_as_often_as_they_should() -> None:
    for phase in (steady(1_000, 10), wave(1_000, 10)):
        came = list(arrivals(phase, random.Random(7)))
        assert came == sorted(came)
        assert came[-1] < 10
        assert len(came) * HABITS.presses_per_visit == pytest.approx(phase.presses, rel=0.05)
    first, last = sum(at_s < 2 for at_s in came), sum(at_s >= 8 for at_s in came)
    assert first > 8 * last, "a wave, then a tail"


def test_a_wave_begins_with_everybody_and_only_gets_smaller() -> None:
    heights = [intensity(Shape.WAVE, at / 100) for at in range(101)]
    assert heights[0] == 1
    assert heights == sorted(heights, reverse=True)
    assert 0 < heights[-1] < 0.1


def test_who_only_presses_does_so_once() -> None:
    assert PRESSES_ONLY.presses_per_visit == 1
    assert Budget(seconds=60, buyers=100, habits=PRESSES_ONLY).presses == 100
    came = list(arrivals(steady(1_000, 5), random.Random(7), PRESSES_ONLY))
    assert len(came) == pytest.approx(5_000, rel=0.05)
