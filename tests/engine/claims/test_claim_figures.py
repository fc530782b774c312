"""Counting claims in a fixed space."""

import pytest

from seckill.domain.outcome import Outcome
from seckill.engine.claims.claim_figures import BOUNDS_S, ROUNDS_MAX, WINDOW_S, ClaimFigures, added, percentile_ms


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_refusals_by_round_and_reason_and_nothing_that_was_accepted() -> None:
    figures = ClaimFigures()
    for outcome in (Outcome.ADMITTED, Outcome.REPEATED, Outcome.SOLD_OUT, Outcome.SOLD_OUT, Outcome.PAUSED):
        figures.note(7, outcome, [0.001])
    figures.note(8, Outcome.ENDED, [0.001])
    assert figures.claims == 6
    assert figures.refused() == {"7": {"sold_out": 2, "paused": 1}, "8": {"ended": 1}}


def test_old_seconds_and_old_rounds_are_let_go() -> None:
    clock = Clock()
    figures = ClaimFigures(clock)
    for second in range(3 * WINDOW_S):
        clock.now = 1000.0 + second
        figures.note(second, Outcome.SOLD_OUT, [0.001])
    assert sum(figures.answers()) == WINDOW_S
    assert len(figures._slots) == WINDOW_S
    clock.now += WINDOW_S
    assert figures.answers() == []
    for round_id in range(2 * ROUNDS_MAX):
        figures.note(round_id, Outcome.SOLD_OUT, [0.001])
    assert len(figures.refused()) == ROUNDS_MAX


def test_percentiles_over_several_processes() -> None:
    one, other = ClaimFigures(), ClaimFigures()
    for _ in range(98):
        one.note(1, Outcome.ADMITTED, [0.010])
    for _ in range(2):
        other.note(1, Outcome.ADMITTED, [1.0])
    counts = added([one.answers(), other.answers(), []])
    assert sum(counts) == 100
    assert percentile_ms(counts, 0.5) == pytest.approx(10, rel=0.3)
    assert percentile_ms(counts, 0.99) == pytest.approx(1000, rel=0.3)
    assert percentile_ms([], 0.99) is None


def test_the_slowest_and_the_quickest_are_counted_too() -> None:
    figures = ClaimFigures()
    figures.note(1, Outcome.ADMITTED, [0.0, 1000.0])
    counts = figures.answers()
    assert (counts[0], counts[-1], len(counts)) == (1, 1, len(BOUNDS_S) + 1)


def test_buckets_of_another_version_are_left_out() -> None:
    assert added([[1, 2, 3]]) == []
