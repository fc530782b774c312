"""How much is left is told in steps."""

import itertools

import pytest

from seckill.domain.left_percent import STEPS, left_percent


@pytest.mark.parametrize(
    ("available", "total", "told"),
    [
        (0, 100, 0),
        (1, 100, 10),
        (10, 100, 10),
        (11, 100, 25),
        (50, 100, 50),
        (51, 100, 75),
        (100, 100, 100),
        (1, 1, 100),
    ],
)
def test_it_is_the_lowest_step_that_is_enough(available: int, total: int, told: int) -> None:
    assert left_percent(available, total) == told


def test_a_sale_changes_its_answer_only_as_often_as_there_are_steps() -> None:
    """Holds for any number of units, so caches ask no more often in large sales."""
    told = [left_percent(available, 10_000) for available in range(10_000, -1, -1)]
    assert sum(one != other for one, other in itertools.pairwise(told)) == len(STEPS)
    assert told == sorted(told, reverse=True)


def test_units_that_were_added_a_moment_ago_are_no_more_than_all() -> None:
    assert left_percent(12, 10) == 100
