"""The report says who got a unit: each figure is compared with a crowd of which it is known."""

from seckill.lab.compare.bot_crowd import BotCrowd, Guest, bot_crowd
from seckill.lab.compare.fairness import fairness

PEOPLE = [Guest(f"p{number}", is_bot=False, comes_s=number, presses_s=10) for number in range(4)]
BOT = [Guest(f"b{number}", is_bot=True, comes_s=-1, presses_s=0) for number in range(2)]


def test_the_earlier_and_the_faster() -> None:
    """Buyers who came later pressed faster: all of them pressed 10 s after the start."""
    crowd = BotCrowd(PEOPLE, BOT)
    early = fairness(crowd, ["p0", "p1", "b0"])
    assert (early.earlier_first, early.faster_first) == (1.0, 0.0)
    late = fairness(crowd, ["p3", "p2"])
    assert (late.earlier_first, late.faster_first) == (0.0, 1.0)
    mixed = fairness(crowd, ["p0", "p3"])
    assert (mixed.earlier_first, mixed.faster_first) == (0.5, 0.5)
    assert (early.bot_units, early.people_units, early.bot_chance, early.person_chance) == (1, 2, 0.5, 0.5)


def test_where_all_or_none_got_one_nothing_decided() -> None:
    crowd = BotCrowd(PEOPLE, BOT)
    assert fairness(crowd, ["b0", "b1"]).earlier_first is None
    assert fairness(crowd, [guest.name for guest in PEOPLE]).faster_first is None


def test_a_crowd_is_the_same_for_the_same_seed_and_late_only_where_one_can_be() -> None:
    crowd = bot_crowd(stock=40, people=200, seed=3)
    assert crowd == bot_crowd(stock=40, people=200, seed=3) != bot_crowd(stock=40, people=200, seed=4)
    assert len(crowd.bot) == 50
    assert 0 < sum(guest.comes_s > 0 for guest in crowd.people) < 200
    assert all(guest.presses_s > max(0, guest.comes_s) for guest in crowd.people)
    in_time = bot_crowd(stock=40, people=200, seed=3, comes_in_time=True)
    assert not any(guest.comes_s > 0 for guest in in_time.people)
