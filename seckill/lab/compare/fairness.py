"""Who got a unit of a crowd with a bot in it, and what it depended on. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from seckill.lab.compare.bot_crowd import BotCrowd, Guest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """Chances are shares of those who wanted a unit. Of two people of whom one got a unit: how often the earlier, or
    the faster, was the one. 1 is always, 0.5 is as often as not: then it decided nothing."""

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
    """The share of pairs of one who got a unit and one who did not in which the former has the lesser key. None: there
    are no such pairs."""
    got = [key(guest) for guest in people if guest.name in winners]
    missed = sorted(key(guest) for guest in people if guest.name not in winners)
    if not got or not missed:
        return None
    before = sum(len(missed) - (bisect_left(missed, one) + bisect_right(missed, one)) / 2 for one in got)
    return round(before / (len(got) * len(missed)), 3)
