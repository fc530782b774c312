"""The same seed, the same schedule; every kind before any comes again; nothing during a drill."""

from itertools import pairwise

from seckill.failpoints import STEPS
from seckill.lab.chaos import failpoint_plan, schedule
from seckill.lab.chaos.failpoint_plan import WINDOWS, armed, deck, possible, required
from seckill.lab.chaos.schedule import DRILLS, KINDS, plan, storm_begins_s

OPTIONS = [
    ("takeover", "worker-1"),
    ("comeback", "gate"),
    *[("kill", f"{role}-{number}") for role in schedule.ROLES for number in (1, 2)],
    ("pause", "gate"),
    ("restart", "gate"),
    ("flush", "gate"),
    ("cut", "api→gate"),
    ("slow", "worker→ledger"),
    ("hole", "keeper→gate"),
]


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert plan(7, 600, OPTIONS) == plan(7, 600, OPTIONS)
    assert plan(7, 600, OPTIONS) != plan(8, 600, OPTIONS)


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    short = plan(7, 120, OPTIONS)
    assert plan(7, 600, OPTIONS)[: len(short)] == short


def test_every_kind_comes_before_any_comes_again() -> None:
    for seed in range(50):
        storm = [fault.kind for fault in plan(seed, 600, OPTIONS) if fault.kind not in DRILLS]
        kinds = {kind for kind, _ in OPTIONS} - set(DRILLS)
        # A pair may leave a card out, so that a round of the deck is short of a few.
        assert len(set(storm[: len(kinds) + 3])) >= len(kinds) - 3
        assert set(storm) == kinds


def test_drills_come_first_and_nothing_disturbs_what_is_measured() -> None:
    for seed in range(50):
        faults = plan(seed, 300, OPTIONS)
        assert [fault.kind for fault in faults[:2]] == list(DRILLS)
        for before, after in pairwise(faults):
            if calm_s := KINDS[before.kind].calm_s:
                assert after.at_s >= before.at_s + calm_s
        assert all(fault.at_s >= storm_begins_s(faults) for fault in faults[2:])


def test_two_at_once_and_never_twice_on_one_server() -> None:
    at_once = [
        (first, second)
        for seed in range(50)
        for first, second in pairwise(plan(seed, 300, OPTIONS))
        if second.at_s < first.at_s + first.lasts_s
    ]
    assert at_once
    assert all(first.target != second.target for first, second in at_once)


def test_a_run_has_room_for_its_end() -> None:
    assert all(fault.at_s + fault.lasts_s < 60 for fault in plan(3, 60, OPTIONS))
    assert plan(3, 10, OPTIONS) == plan(3, 10, OPTIONS[:2]), "too short for more than the drills"


def test_windows_are_places_that_exist() -> None:
    from seckill.bootstrap.boundary_failpoints import NAMES  # noqa: PLC0415 (loaded only where one is armed)

    assert {window.point for window in WINDOWS} <= STEPS | NAMES
    assert {window.role for window in WINDOWS} == set(schedule.ROLES)


def test_members_go_through_the_windows_life_by_life() -> None:
    windows = possible({"broker", "empty"})
    for role in schedule.ROLES:
        deadly = {window.point for window in deck(windows, 5, role)}
        hit = set()
        for life in range(len(deadly)):
            for number in (1, 2):
                spec = armed(windows, 5, role, number, life)
                assert spec == armed(windows, 5, role, number, life)
                kills = [item for item in spec.split(",") if "=kill" in item]
                assert len(kills) == 1
                hit.add(kills[0].partition("=")[0])
                points = [item.partition("=")[0] for item in spec.split(",")]
                assert len(points) == len(set(points)), "one action for a place"
        assert hit == deadly


def test_what_is_not_there_is_neither_armed_nor_asked_for() -> None:
    windows = possible(set())
    assert not any(window.point.startswith("relay.") for window in windows)
    assert not any("relay." in armed(windows, 1, "worker", 1, life) for life in range(10))


def test_a_longer_storm_has_to_hit_more() -> None:
    windows = possible({"broker", "empty"})
    counts = [len(required(windows, 1, storm_s)) for storm_s in (0, failpoint_plan.WINDOW_S, 60, 600)]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert set(required(windows, 1, 600)) == {window.name for window in windows if window.needs != "empty"}
    assert required(windows, 1, 60) == required(windows, 1, 60)
