"""A crowd with a bot in it: when each guest comes and presses. The same seed gives the same crowd for every way of
selling."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

# As in the attack in docs/door.md: 2,500 names for 2,000 units.
BOT_NAMES_PER_UNIT = 1.25
# Up to this long before the start, people open the page and wait; others come after it.
WAIT_S = 600.0
LATE_SHARE = 0.3
LATE_S = 60.0
# Seconds from the start, or from a later arrival, to the press: least, most, most likely.
REACTION_S = (0.3, 6.0, 1.0)


@dataclass(frozen=True, slots=True)
class Guest:
    """Times are in seconds from the start of the sale."""

    name: str
    is_bot: bool
    comes_s: float
    presses_s: float


@dataclass(frozen=True, slots=True)
class BotCrowd:
    people: Sequence[Guest]
    bot: Sequence[Guest]

    @property
    def all(self) -> list[Guest]:
        return [*self.people, *self.bot]


def bot_crowd(*, stock: int, people: int, seed: int, comes_in_time: bool = False) -> BotCrowd:
    """`comes_in_time`: no one is late, as with a draw that is open for a day."""
    chance = random.Random(seed)  # noqa: S311 (a crowd, not a secret)
    found = []
    for number in range(people):
        is_late = chance.random() < LATE_SHARE
        comes_s = chance.uniform(0, LATE_S) if is_late and not comes_in_time else chance.uniform(-WAIT_S, 0)
        presses_s = max(comes_s, 0.0) + chance.triangular(*REACTION_S)
        found.append(Guest(f"person-{number}", is_bot=False, comes_s=comes_s, presses_s=presses_s))
    # A program comes in time and presses without delay.
    names = round(stock * BOT_NAMES_PER_UNIT)
    bot = [Guest(f"bot-{number}", is_bot=True, comes_s=-WAIT_S, presses_s=0.0) for number in range(names)]
    return BotCrowd(found, bot)
