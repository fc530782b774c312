"""The counts of a run, and what the report says of them."""

import re

from seckill.lab.compare import result
from seckill.lab.compare.crowd import CrowdTally
from seckill.lab.compare.document import document, verdict
from seckill.lab.compare.ladder import LADDER
from seckill.lab.compare.report import report
from seckill.lab.compare.result import Count, Crash, Speed, StrategyOutcome
from seckill.lab.compare.workload import Workload, waves

WORKLOAD = Workload(stock=10, buyers=40, seed=7)


def counted(accepted: dict[int, int], persisted: list[tuple[int, int]], fallen: set[int] = frozenset()) -> Count:  # type: ignore[assignment]
    return result.count(CrowdTally(accepted), persisted, fallen, offered=99, stock=3, limit_per_buyer=1)


def test_an_exact_sale_counts_no_mistakes() -> None:
    count = counted({1: 11, 2: 12, 3: 13}, [(1, 11), (2, 12), (3, 13)])
    assert (count.oversold, count.undersold, count.duplicates, count.lost) == (0, 0, 0, 0)


def test_oversold_and_twice_to_one_person() -> None:
    count = counted({1: 11, 2: 11, 3: 11, 4: 14}, [(1, 11), (2, 11), (3, 11), (4, 14)])
    assert (count.oversold, count.duplicates, count.lost) == (1, 2, 0)


def test_lost_and_undersold() -> None:
    count = counted({1: 11, 2: 12, 3: 13}, [(1, 11)])
    assert (count.undersold, count.lost) == (2, 2)


def test_what_falls_through_for_its_own_reason_is_not_lost() -> None:
    count = counted({1: 11, 2: 12}, [(1, 11)], {2})
    assert (count.undersold, count.lost) == (2, 0)


def test_an_order_that_nobody_was_told_of_is_sold_all_the_same() -> None:
    """Committed, and the process died before its answer."""
    assert counted({1: 11}, [(1, 11), (2, 12)]).persisted == 2


def test_the_same_seed_gives_the_same_presses() -> None:
    assert WORKLOAD.presses() == WORKLOAD.presses()
    assert WORKLOAD.presses() != Workload(stock=10, buyers=40, seed=8).presses()


def test_half_of_the_people_press_three_times_side_by_side() -> None:
    presses = WORKLOAD.presses()
    assert len(presses) == 20 + 3 * 20
    assert set(presses) == set(range(1, 41))
    for person in set(presses):
        first = presses.index(person)
        assert presses[first : first + presses.count(person)] == [person] * presses.count(person)


def test_waves_leave_nobody_out() -> None:
    presses = WORKLOAD.presses()
    assert [press for wave in waves(presses, 3) for press in wave] == presses


def outcomes() -> list[StrategyOutcome]:
    good = Count(offered=80, accepted=10, persisted=10, oversold=0, undersold=0, duplicates=0, lost=0, failed=0)
    bad = Count(offered=80, accepted=17, persisted=17, oversold=7, undersold=0, duplicates=3, lost=0, failed=0)
    speed = Speed(accepted_per_s=123.4, persisted_per_s=99.9, p50_ms=1.5, p99_ms=20.25, drain_s=0.5)
    crash = Crash(killed="shop", accepted_before=4, persisted_before=3, count=good)
    return [
        StrategyOutcome.of(LADDER["sync-naive"], count=bad, speed=speed, crash=crash),
        StrategyOutcome.of(LADDER["engine"], count=good, speed=speed, crash=crash),
        StrategyOutcome.of(LADDER["async-rabbit"], not_run="there is <none>"),
        StrategyOutcome.of(LADDER["engine-release"], count=good),
    ]


def test_the_verdict_names_those_without_a_flaw() -> None:
    run = document(outcomes(), [], WORKLOAD, pause_ms=5, servers={"database": "SQLite"}, command="seckill compare")
    assert verdict(run) == "2 of 3 designs sold exactly 10 units and lost nothing: engine, engine-release."
    assert run["strategies"][0]["flaws"] == ["7 oversold", "3 sold twice to one person"]


def test_the_report_stands_alone() -> None:
    """One file: no script, nothing loaded, everything escaped, the verdict before all else."""
    made = document(outcomes(), [], WORKLOAD, pause_ms=5, servers={"database": "SQLite"}, command="seckill compare")
    html = report(made)
    assert not re.search(r"<script|<link|src=|url\(|@import|https?:", html)
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html
    assert "not run: there is &lt;none&gt;" in html
    body = html[html.index("<body>") :]
    assert body.startswith(f'<body><h1 class="verdict">{verdict(made)}</h1>')
    assert "Command: <code>seckill compare</code>" in body
    assert "123.4" in body


def test_every_step_says_what_it_cures_and_what_it_breaks() -> None:
    for step in LADDER.values():
        assert step.__doc__ is not None
        assert "Cures" in step.__doc__, step.name
        assert "Breaks" in step.__doc__, step.name
