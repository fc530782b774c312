"""Only what lasts is told."""

import asyncio

import pytest

from seckill.engine.claims import lasting_states
from seckill.engine.claims.lasting_states import LastingStates


@pytest.fixture(autouse=True)
def lasts_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting_states, "LASTS_S", 0.05)


async def until(told: list[tuple[int, bool]], count: int) -> None:
    async with asyncio.timeout(30):
        while len(told) < count:
            await asyncio.sleep(0.01)


async def test_a_state_that_flickers_is_told_once_when_it_lasts() -> None:
    told: list[tuple[int, bool]] = []
    states = LastingStates(lambda subject, on: told.append((subject, on)))
    for _ in range(1000):
        states.change(7, on=True)
        states.change(7, on=False)
    states.change(7, on=True)
    await until(told, 1)
    assert told == [(7, True)]
    for _ in range(1000):
        states.change(7, on=False)
        states.change(7, on=True)
    states.change(8, on=True)
    await until(told, 2)
    assert told == [(7, True), (8, True)], "7 is what it was told to be"
    states.change(7, on=False)
    await until(told, 3)
    assert told[2] == (7, False)
    assert not states._timers
    assert not states._now


async def test_nothing_is_kept_of_what_is_over() -> None:
    told: list[tuple[int, bool]] = []
    states = LastingStates(lambda subject, on: told.append((subject, on)))
    states.change(1, on=True)
    states.change(2, on=True)
    states.keep([2])
    await until(told, 1)
    assert told == [(2, True)]
    states.keep([])
    assert not states._told
