"""`make test-quick` leaves out what it says, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import quick
from tests.fixtures.backends import BACKENDS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def collected() -> dict[bool, set[str]]:
    """All tests, and those of the quick run."""
    found = {}
    for quickly in (False, True):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *["--quick"][: int(quickly)]], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
        found[quickly] = {line for line in done.stdout.splitlines() if "::" in line}
    return found


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


def test_the_fixtures_that_it_avoids_exist(request: pytest.FixtureRequest) -> None:
    for name in quick.OTHER_SERVERS - {"own_server"}:  # which some modules have
        assert request._fixturemanager.getfixturedefs(name, request.node), name
