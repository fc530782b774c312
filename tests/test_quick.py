"""`make test-quick` leaves out what it says, and nothing else."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import quick
from tests.fixtures.backends import BACKENDS

ROOT = Path(__file__).parents[1]
# In one process, which has imported everything by the second time.
COLLECT = """
import pytest

class Told:
    def __init__(self, name):
        self.name = name

    def pytest_collection_finish(self, session):
        for item in session.items:
            print(f"{self.name}: {item.nodeid}")

for name, options in (("all", []), ("quick", ["--quick"])):
    code = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *options], plugins=[Told(name)])
    if code:
        raise SystemExit(code)
"""


@pytest.fixture(scope="module")
def collected() -> dict[bool, set[str]]:
    """All tests, and those of the quick run."""
    done = subprocess.run([sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = [line.partition(": ") for line in done.stdout.splitlines()]
    everything, quickly = ({test for name, _, test in told if name == wanted} for wanted in ("all", "quick"))
    assert quickly < everything
    return {False: everything, True: quickly}


def test_every_folder_is_in_it_or_left_out_on_purpose(collected: dict[bool, set[str]]) -> None:
    folders = {
        quickly: {Path(test.partition("::")[0]).parent.relative_to("tests") for test in tests}
        for quickly, tests in collected.items()
    }
    left_out = {found for found in folders[False] for folder in quick.LEFT_OUT if found.is_relative_to(folder)}
    assert folders[True] == folders[False] - left_out
    for folder in quick.LEFT_OUT:
        assert any(found.is_relative_to(folder) for found in left_out), "what is left out exists"


def test_one_store_of_each_kind_and_no_other_server(collected: dict[bool, set[str]]) -> None:
    chosen = {test.rpartition("[")[2].rstrip("]") for test in collected[True] if "[" in test}
    named = {name for parameters in chosen for name in parameters.split("-")}
    assert not named & quick.OTHER_STORES
    assert {"memory", "valkey", "sqlite"} <= named
    assert set(BACKENDS) - {"memory", "valkey"} <= quick.OTHER_STORES


def test_what_takes_long_is_named_rightly(collected: dict[bool, set[str]], request: pytest.FixtureRequest) -> None:
    names = {test.partition("[")[0] for test in collected[False]}
    long = set(request.config.getini("quick_leaves_out"))
    assert long <= names
    assert not long & {test.partition("[")[0] for test in collected[True]}


def test_every_test_that_is_not_left_out_has_a_case(collected: dict[bool, set[str]]) -> None:
    """Where only a few of many are taken, none is lost altogether."""
    tests = Counter(test.partition("[")[0] for test in collected[True])
    assert tests["tests/audit/test_plantings.py::test_a_planted_flaw_is_named"] == quick.CASES
    assert tests["tests/domain/test_webhook_target.py::test_not_public"] > quick.CASES, "no store: all are taken"


@pytest.mark.parametrize("many", [1, 2, quick.CASES, quick.CASES + 1, 17, 100])
def test_a_few_are_from_everywhere(many: int) -> None:
    few = quick.a_few(range(many))
    assert len(set(few)) == len(few) == min(many, quick.CASES)
    assert (few[0], few[-1]) == (0, many - 1)


def test_the_fixtures_that_it_avoids_exist(request: pytest.FixtureRequest) -> None:
    for name in quick.OTHER_SERVERS - {"own_server"}:  # which some modules have
        assert request._fixturemanager.getfixturedefs(name, request.node), name
