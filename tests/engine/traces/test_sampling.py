"""Which claims are traced, and that no client can have more of them traced than an operator has allowed."""

import random

import pytest

from seckill.domain.trace import Trace
from seckill.engine.traces.sampling import Sampling

ASKED = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
NOT_TRACED = Trace(ASKED.trace_id, ASKED.span_id, sampled=False)
MANY = 1_000_000


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def sampling(
    ratio: float, per_second: int = MANY, *, heeds_parent: bool = True, clock: Clock | None = None
) -> Sampling:
    chance = random.Random(1)
    return Sampling(
        ratio, per_second, heeds_parent=heeds_parent, monotonic=clock or Clock(), random_=lambda: chance.random()
    )


@pytest.mark.parametrize("ratio", [0.0, 0.001, 0.1, 0.5, 1.0])
def test_a_share_of_the_claims_that_nobody_has_decided_about_is_traced(ratio: float) -> None:
    chosen = sampling(ratio)
    count = 100_000
    traced = sum(chosen.choose(None) == "" for _ in range(count))
    assert abs(traced - ratio * count) <= 5 * (count * ratio * (1 - ratio)) ** 0.5


def test_who_counts_by_itself_chooses_the_same_share() -> None:
    """The quick way counts by itself, and asks only about the claim that is due."""
    chosen = sampling(0.01)
    count, traced = 100_000, 0
    for _ in range(count):
        if chosen.left > 1:
            chosen.left -= 1
        else:
            traced += chosen.choose(None) == ""
    assert abs(traced - 1000) < 5 * 1000**0.5


def test_a_caller_that_is_traced_decides_and_so_does_one_that_is_not() -> None:
    chosen = sampling(0.0)
    assert chosen.choose(ASKED) == str(ASKED)
    chosen = sampling(1.0)
    assert chosen.choose(NOT_TRACED) is None
    assert chosen.choose(None) == ""


def test_a_sampler_that_heeds_no_parent_goes_on_under_it_all_the_same() -> None:
    assert sampling(0.0, heeds_parent=False).choose(ASKED) is None
    assert sampling(1.0, heeds_parent=False).choose(NOT_TRACED) == str(NOT_TRACED)


def test_no_caller_can_have_everything_traced_or_use_up_what_is_ours() -> None:
    clock = Clock()
    chosen = sampling(1.0, 20, clock=clock)
    for _ in range(3):
        clock.now_s += 1
        assert sum(chosen.choose(ASKED) is not None for _ in range(10_000)) == 20
        assert sum(chosen.choose(None) is not None for _ in range(10_000)) == 20
