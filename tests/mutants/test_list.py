"""The list of flaws fits the code: each can be planted, and the test that must catch it is there. `make mutants` runs it."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import MUTANTS
from tests.mutants.__main__ import Kept, chosen, fingerprint, objection_to
from tests.mutants.mutant import ROOT, Mutant, Stale, defines


def test_every_flaw_can_be_planted_and_has_its_catcher() -> None:
    problems = []
    for mutant in MUTANTS:
        try:
            if mutant.plant(ROOT) == (ROOT / mutant.file).read_text():
                problems.append(f"{mutant.name}: changes nothing")
        except Stale as error:
            problems.append(f"{mutant.name}: {error}")
        problems += [f"{mutant.name}: there is no {test}" for test in mutant.catchers if not defines(ROOT, test)]
    assert problems == []
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []


def test_every_catcher_is_found_with_its_parameters() -> None:
    """Parameters get new names with every fixture that a test takes; a catcher that nobody finds catches nothing."""
    catchers = sorted({test for mutant in MUTANTS for test in mutant.catchers})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *catchers]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, [line for line in found.stderr.splitlines() if line.startswith("ERROR")]


def test_an_interrupted_run_goes_on_and_a_changed_file_is_run_again(tmp_path: Path) -> None:
    first, second = MUTANTS[:2]
    Kept(tmp_path / "new" / "caught").add(first)
    again = Kept(tmp_path / "new" / "caught")
    assert (again.has(first), again.has(second)) == (True, False)
    for file in (first.file, *(test.partition("::")[0] for test in first.catchers)):
        copy = tmp_path / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / file).read_text())
    assert fingerprint(first, tmp_path) == fingerprint(first)
    (tmp_path / first.file).write_text("another")
    assert fingerprint(first, tmp_path) != fingerprint(first)
    Kept(None).add(first)
    assert not Kept(None).has(first), "nothing is kept where nobody asked for it"


def test_a_flaw_is_chosen_by_its_name_or_by_words() -> None:
    first = MUTANTS[0]
    assert " " in first.name
    assert chosen([first.name]) == [first]
    assert chosen([]) == chosen([""]) == list(MUTANTS), "all, if none is asked for"
    files = sorted({mutant.path for mutant in MUTANTS})[:2]
    either = [mutant for mutant in MUTANTS if any(file in mutant.path for file in files)]
    assert chosen([" ".join(files)]) == chosen(files) == either
    assert chosen(["§"]) == []


def test_a_list_that_does_not_fit_the_code_is_noticed() -> None:
    flawed = Mutant(
        name="x", trap="F1", path="domain/order_number.py", edits={"no such text": ""}, caught_by="tests/x.py::test_x"
    )
    with pytest.raises(Stale, match="0 times"):
        flawed.plant(ROOT)
    often = Mutant(
        name="x", trap="F1", path="domain/order_number.py", edits={"return": ""}, caught_by="tests/x.py::test_x"
    )
    with pytest.raises(Stale, match="times, not once"):
        often.plant(ROOT)
    assert not defines(ROOT, "tests/mutants/test_list.py::test_that_is_not_there")
    assert not defines(ROOT, "tests/no_such_file.py::test_x")


@pytest.mark.parametrize(
    ("code", "failures", "others", "objection"),
    [
        (1, ["AssertionError: assert 1 == 2"], [], ""),
        (0, [], [], "nobody noticed"),
        (0, [], ["skipped"], "could not be run"),  # a server that is not there catches nothing
        (1, [], ["fixture failed"], "could not be run"),
        (2, [], [], "could not be run"),  # a module that cannot be imported
        (4, [], [], "could not be run"),  # no such test
        (5, [], [], "could not be run"),
        (None, [], [], "did not end"),
        (1, ["GateUnavailable: The gate does not answer (Timeout connecting to server)."], [], "too busy"),
        (1, ["NameError: name 'x' is not defined"], [], "no program"),
        (1, ["GateUnavailable: The gate refuses: Error compiling script (new function)"], [], "no program"),
    ],
)
def test_what_counts_as_caught(code: int | None, failures: list[str], others: list[str], objection: str) -> None:
    told = objection_to(code, failures, others)
    assert objection in told
    assert bool(told) == bool(objection)
