"""`pytest --quick` (`make test-quick`): what a change breaks most often, within three minutes.

One store of each kind, Valkey and SQLite, and no other server; no crowd, no browser, nothing that is killed. Of a test
with many cases on a store, a few of them. Whatever it leaves out is for `make test`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

TESTS = Path(__file__).parent
# Folders whose tests start processes that are killed, browsers, crowds or servers of their own.
LEFT_OUT = ("backends/rabbitmq", "browser", "cluster", "deploy", "e2e", "examples", "lab", "local", "operations/doctor")
# Stores beside the one of each kind, as the fixtures' parameters name them, and the fixtures that start servers.
OTHER_STORES = {"cluster", "mariadb", "postgres", "redis7"}
OTHER_SERVERS = {
    "cluster_url",
    "mariadb_server",
    "mortal_cluster",
    "mortal_rabbit",
    "own_server",
    "postgres_server",
    "rabbit",
    "redis7_url",
    "sentinel",
}
# A case costs what a store and a node cost: of a test with more than so many, these fixtures have a few.
STORES = {"backend_url", "ledger_url", "redis_backend_url", "redis_url", "sqlite_database"}
CASES = 4

T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="one store of each kind, and nothing that takes long")
    parser.addini("quick_leaves_out", "tests that take long by themselves", type="linelist")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignored files are not even imported, which each of the processes that share the tests would do."""
    return True if config.getoption("quick") and is_left_out(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("quick"):
        return
    long = set(config.getini("quick_leaves_out"))
    quick = [item for item in items if is_quick(item) and item.nodeid.partition("[")[0] not in long]
    cases: dict[str, list[pytest.Item]] = {}
    for item in quick:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = {item for same in cases.values() for item in (a_few(same) if on_a_store(same[0]) else same)}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def on_a_store(item: pytest.Item) -> bool:
    return bool(STORES & set(getattr(item, "fixturenames", ())))


def a_few(cases: Sequence[T]) -> Sequence[T]:
    """Takes a few from everywhere among the cases, the first and the last too."""
    if len(cases) <= CASES:
        return cases
    return [cases[place * (len(cases) - 1) // (CASES - 1)] for place in range(CASES)]


def is_left_out(path: Path) -> bool:
    return any(path.is_relative_to(TESTS / folder) for folder in LEFT_OUT)


def is_quick(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    stores = {value for value in parameters.values() if isinstance(value, str)}
    return not stores & OTHER_STORES and not set(getattr(item, "fixturenames", ())) & OTHER_SERVERS
