"""Computes who got a unit in a crowd with a bot in it, and what that depended on. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from seckill.lab.compare.bot_crowd import BotCrowd, Guest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """Chances are shares of those who wanted a unit. The other two figures look at pairs of people of whom one got a
    unit, and say how often that was the earlier, or the faster, of the two: 1 is always, and 0.5 means that it made no
    difference."""

    bot_units: int
    people_units: int
    bot_names: int
    people: int
    bot_chance: float
    person_chance: float
    earlier_first: float | None
    faster_first: float | None


def fairness(crowd: BotCrowd, got: Collection[str]) -> Fairness:
    winners = set(got)
    bot_units = sum(guest.name in winners for guest in crowd.bot)
    people_units = sum(guest.name in winners for guest in crowd.people)
    return Fairness(
        bot_units=bot_units,
        people_units=people_units,
        bot_names=len(crowd.bot),
        people=len(crowd.people),
        bot_chance=round(bot_units / len(crowd.bot), 4),
        person_chance=round(people_units / len(crowd.people), 4),
        earlier_first=_first(crowd.people, winners, lambda guest: guest.comes_s),
        faster_first=_first(crowd.people, winners, lambda guest: guest.presses_s - max(0.0, guest.comes_s)),
    )


def _first(people: Sequence[Guest], winners: Collection[str], key: Callable[[Guest], float]) -> float | None:
    """Returns, of all pairs of a winner and a loser, the share in which the winner has the smaller key, or None if
    there are no such pairs."""
    got = [key(guest) for guest in people if guest.name in winners]
    missed = sorted(key(guest) for guest in people if guest.name not in winners)
    if not got or not missed:
        return None
    before = sum(len(missed) - (bisect_left(missed, one) + bisect_right(missed, one)) / 2 for one in got)
    return round(before / (len(got) * len(missed)), 3)
