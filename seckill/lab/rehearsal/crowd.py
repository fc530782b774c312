"""What a crowd does, and when it comes. Pure: the caller passes in the source of chance."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

# In a wave, visitors come at the full rate for the first share of its time, then fewer and fewer, down to the second
# share of the rate.
HOLDS = 0.2
TAIL = 0.08
FADES = 5.0  # in the rest of the wave, the rate falls to a third this many times


class Shape(StrEnum):
    STEADY = "steady"
    WAVE = "wave"  # as at the opening of a flash sale


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Shares of the visitors, or of those who got an order."""

    bots: float = 0.03  # press many times in a row, each time with a different key
    bot_presses: int = 8
    looks: float = 0.2  # ask for the sale before they press
    repeats: float = 0.1  # press again with the same key when the answer is there
    polls: float = 0.2  # wait for their order with a long poll
    streams: float = 0.1  # watch it as server-sent events
    stream_s: float = 3.0
    pays: float = 0.25  # of those who watch or poll, and only where no money moves
    think_s: float = 1.0  # before paying, on average

    @property
    def presses_per_visit(self) -> float:
        return self.bots * self.bot_presses + (1 - self.bots) * (1 + self.repeats)


HABITS = Habits()
# Every visitor presses once and does nothing else, as in `seckill bench`.
PRESSES_ONLY = Habits(bots=0, looks=0, repeats=0, polls=0, streams=0, pays=0)


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """`rate`: presses a second; for a wave, at its peak."""

    shape: Shape
    rate: float
    seconds: float

    @property
    def presses(self) -> float:
        """The expected number of presses."""
        return self.rate * self.seconds * _mean(self.shape)


def intensity(shape: Shape, at: float) -> float:
    """Returns the share of the rate at which visitors come when the share `at` of the phase is over."""
    if shape is Shape.STEADY or at < HOLDS:
        return 1.0
    return TAIL + (1 - TAIL) * math.exp(-FADES * (at - HOLDS) / (1 - HOLDS))


def _mean(shape: Shape) -> float:
    if shape is Shape.STEADY:
        return 1.0
    return HOLDS + (1 - HOLDS) * (TAIL + (1 - TAIL) * (1 - math.exp(-FADES)) / FADES)


def arrivals(phase: Phase, dice: random.Random, habits: Habits = HABITS) -> Iterator[float]:
    """Yields the times, in seconds after the phase's beginning, at which visitors come: at random, like people who do
    not know each other."""
    visits_per_s = phase.rate / habits.presses_per_visit
    at_s = 0.0
    while True:
        at_s += dice.expovariate(visits_per_s)
        if at_s >= phase.seconds:
            return
        if phase.shape is Shape.STEADY or dice.random() < intensity(phase.shape, at_s / phase.seconds):
            yield at_s
