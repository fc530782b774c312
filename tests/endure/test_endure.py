"""The runner of the long runs goes on where it was left and tells what was done; a rush finds what is lost."""

import json
import subprocess
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tests.endure.__main__ import endure
from tests.endure.legs import SET_UPS, Leg, Result, judged, legs
from tests.endure.rush import judge
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
HOLDS: dict[str, tuple[str, list[str]]] = {"sold": ("holds", [])}


def result_of(leg: Leg, _: Path) -> Result:
    return Result(
        leg=leg, verdict="holds", admissions=100, faults=7, failpoints=3, wrong=[], took_s=60.0, began="2026-01-01"
    )


def test_legs_are_the_same_each_time_and_go_over_every_set_up() -> None:
    many = list(islice(legs(10.0), 40))
    assert many == list(islice(legs(10.0), 40))
    assert len({leg.name for leg in many}) == len({leg.seed for leg in many}) == 40
    for kind in ("chaos", "rush"):
        assert {(leg.ledger, leg.gate) for leg in many if leg.kind == kind} == set(SET_UPS)


def test_it_stops_when_both_are_reached_and_tells_how_much_was_done(tmp_path: Path) -> None:
    results = endure(tmp_path, 1000, 77, 1.0, run_leg=result_of)
    assert len(results) == 11, "admissions are enough after ten legs, faults after eleven"
    found = json.loads((tmp_path / "endure.json").read_text())
    assert (found["verdict"], found["admissions"], found["faults"]) == ("holds", 1100, 77)
    assert sum(each["legs"] for each in found["set_ups"]) == 11
    shown = (tmp_path / "endure.html").read_text()
    assert "Everything held. 1,100 admissions, 77 faults, 33 failpoints, in 11 legs." in shown
    assert "://" not in shown, "nothing from elsewhere"


def test_after_an_interruption_it_goes_on_with_the_leg_that_was_under_way(tmp_path: Path) -> None:
    ran: list[int] = []

    def interrupted(leg: Leg, folder: Path) -> Result:
        ran.append(leg.number)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return result_of(leg, folder)

    with pytest.raises(KeyboardInterrupt):
        endure(tmp_path, 500, 1, 1.0, run_leg=interrupted)
    assert "Everything held so far. 200 admissions" in (tmp_path / "endure.html").read_text()
    endure(tmp_path, 500, 1, 1.0, run_leg=interrupted)
    assert ran == [1, 2, 3, 3, 4, 5]


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        (b"", "unknown"),
        (b'{"verdict": "broken", "checks": [{"name": "lost", "verdict": "broken", "says": "x"}]}', "broken"),
    ],
    ids=["no document", "lost"],
)
def test_a_leg_that_did_not_hold_is_said(tmp_path: Path, output: bytes, verdict: str) -> None:
    def run(leg: Leg, folder: Path) -> Result:
        return judged(leg, output, "", 1.0) if leg.number == 2 else result_of(leg, folder)

    results = endure(tmp_path, 300, 1, 1.0, run_leg=run)
    assert [result.verdict for result in results] == ["holds", verdict, "holds", "holds"]
    assert len(results[1].wrong) == 1
    assert json.loads((tmp_path / "endure.json").read_text())["verdict"] == verdict


def test_a_rush_names_what_is_wrong() -> None:
    told = {"A": "b0", "B": "b1"}

    def wrong(rows: dict[str, str], audit: dict[str, tuple[str, list[str]]] = HOLDS) -> list[str]:
        return [check["name"] for check in judge(told, rows, audit) if check["verdict"] != "holds"]

    assert wrong(told) == []
    assert wrong({"A": "b0"}) == ["lost"]
    assert wrong({"A": "b0", "B": "eve"}) == ["lost"]
    assert wrong(told | {"C": "b1"}) == ["duplicates", "untold"]
    assert wrong(told, {"sold": ("broken", ["too many"])}) == ["audit"]
    assert wrong(told, {}) == ["audit"], "it never came to rest"


def test_a_rush(tmp_path: Path) -> None:
    leg = replace(next(leg for leg in legs(0.3) if leg.kind == "rush"), seed=3)
    done = subprocess.run(leg.command(tmp_path), cwd=ROOT, stdout=subprocess.PIPE, timeout=2 * PATIENCE_S, check=False)
    found = judged(leg, done.stdout, "", 1.0)
    assert (done.returncode, found.verdict, found.wrong) == (0, "holds", [])
    assert found.admissions > 0
    assert found.faults > 0
