"""Ledgers of tests share statements (tests/fixtures/statements.py), and nothing by which one could tell of another."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.sql.visitors import Visitable

from seckill.audit.ledger import LedgerReader
from seckill.backends.sql import SqlLedger, open_ledger
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.history import SqlHistory
from tests.fixtures import statements

MAKERS = {
    SqlLedger: open_ledger,
    SqlHistory: lambda url: SqlHistory(open_database(url)),
    LedgerReader: LedgerReader,
}


def parts(of: Any, seen: set[int]) -> Iterator[Any]:
    """Everything of ours that can be reached, and the containers between."""
    if id(of) in seen or isinstance(of, Visitable | type | str):
        return
    seen.add(id(of))
    if isinstance(of, dict):
        inner = list(of.values())
    elif isinstance(of, list | tuple | set):
        inner = list(of)
    elif type(of).__module__.startswith("seckill."):
        inner = list(getattr(of, "__dict__", {}).values())
        inner += [getattr(of, name) for kind in type(of).__mro__ for name in getattr(kind, "__slots__", ())]
    else:
        return
    if inner or isinstance(of, set):
        yield of
    for each in inner:
        yield from parts(each, seen)


@pytest.mark.parametrize("kind", MAKERS)
def test_they_have_nothing_else_in_common(kind: Any, sqlite_database: str, tmp_path: Path) -> None:
    made = [MAKERS[kind](url) for url in (sqlite_database, f"sqlite:///{tmp_path}/other.db")]
    one, other = ({id(part): part for part in parts(each, set())} for each in made)
    assert len(one) == len(other) > 1
    shared = [one[same] for same in one.keys() & other.keys()]
    assert not [part for part in shared if not isinstance(part, tuple)], "a tuple cannot be changed"
    databases = [{id(part) for part in found.values() if hasattr(part, "among")} for found in (one, other)]
    assert [len(found) for found in databases] == [1, 1], "each knows one database only"
    assert databases[0] != databases[1]


def test_a_copied_statement_is_what_would_have_been_made(sqlite_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has every attribute of one that was made without a pattern."""
    copied = open_ledger(sqlite_database)
    monkeypatch.setattr(statements, "_patterns", {})
    fresh = open_ledger(sqlite_database)
    assert copied._select_orders is not fresh._select_orders, "that one was not copied"
    assert [type(part) for part in parts(copied, set())] == [type(part) for part in parts(fresh, set())]
    assert str(copied._select_orders) == str(fresh._select_orders)
    assert copied.__dict__.keys() == fresh.__dict__.keys()
