"""The longest tests are begun first by the processes that share them: one begun last keeps all others waiting."""

from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("longest", "tests that take a minute or more, the longest first", type="linelist")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    longest = config.getini("longest")
    long = [item for name in longest for item in items if item.nodeid.partition("[")[0] == name]
    items[:] = dealt(long, [item for item in items if item not in set(long)], processes)


def dealt(long: Sequence[T], others: Sequence[T], processes: int) -> list[T]:
    """Sorts them so that that many processes take equal parts: each begins with some of the long ones."""
    rest, left, found = list(others), len(long) + len(others), list[T]()
    for process in range(processes):
        first = long[process::processes]
        part = max(left // (processes - process) - len(first), 0)
        left -= part + len(first)
        found += [*first, *rest[:part]]
        del rest[:part]
    return found + rest
