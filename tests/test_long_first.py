"""The order of the tests: no test is lost, and each process begins with long ones."""

from pathlib import Path

import pytest

from tests.long_first import dealt
from tests.mutants.mutant import defines

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("others", [0, 1, 5, 100])
def test_each_begins_with_long_ones_and_none_is_lost(processes: int, others: int) -> None:
    order = dealt(["a", "b", "c", "d"], [str(number) for number in range(others)], processes)
    assert sorted(order) == sorted(["a", "b", "c", "d", *(str(number) for number in range(others))])
    if others == 100:
        begins, left = 0, len(order)
        for process in range(min(processes, 4)):
            assert order[begins] == "abcd"[process]
            part = left // (processes - process)
            begins, left = begins + part, left - part


def test_the_long_ones_are_there(pytestconfig: pytest.Config) -> None:
    assert [name for name in pytestconfig.getini("longest") if not defines(ROOT, name)] == []
