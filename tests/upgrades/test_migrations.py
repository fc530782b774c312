"""`seckill migrate` while the version before is serving: what it knows stays as it is."""

import shutil
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from seckill.backends.sql.migration import migrate, migrations
from seckill.backends.sql.schema import NEEDS, REVISIONS
from tests.upgrades.keep_version import STREAMS
from tests.upgrades.test_kept_versions import EACH, put_back_ledger

# After these, a version that does not know them does not work. docs/upgrades.md names them; none comes after `NEEDS`.
NOT_ADDITIVE = {"0009"}


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("revisions") / "ledger.db"


@pytest.fixture(scope="module")
def shapes(newest: Path) -> dict[str, dict[str, Any]]:
    """The shape of the database after each revision."""
    engine = create_engine(f"sqlite:///{newest}")
    found = {revision: shape_after(engine, revision) for revision in REVISIONS}
    engine.dispose()
    return found


def shape_after(engine: Engine, revision: str) -> dict[str, Any]:
    with engine.begin() as connection:
        config = migrations()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    with engine.connect() as connection:
        return shape(connection)


def shape(connection: Connection) -> dict[str, Any]:
    looking = inspect(connection)
    return {
        table: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], column["default"])
                for column in looking.get_columns(table)
            },
            "rules": {
                *(f"unique {sorted(rule['column_names'])}" for rule in looking.get_unique_constraints(table)),
                *(f"unique {sorted(map(str, i['column_names']))}" for i in looking.get_indexes(table) if i["unique"]),
                *(f"check {rule['sqltext']}" for rule in looking.get_check_constraints(table)),
                *(
                    f"{key['constrained_columns']} in {key['referred_table']}"
                    for key in looking.get_foreign_keys(table)
                ),
                f"key {looking.get_pk_constraint(table)['constrained_columns']}",
            },
        }
        for table in looking.get_table_names()
    }


def breaks(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yields the changes over which a version that knows only `before` would stumble."""
    for table, old in before.items():
        if table not in after:
            yield f"{table} is gone"
            continue
        new = after[table]
        for name, facts in old["columns"].items():
            if new["columns"].get(name) != facts:
                yield f"{table}.{name} was {facts} and is {new['columns'].get(name)}"
        for name in new["columns"].keys() - old["columns"].keys():
            _, nullable, default = new["columns"][name]
            if not nullable and default is None:
                yield f"{table}.{name} must be given"
        for rule in old["rules"] ^ new["rules"]:
            yield f"{table}: {rule}"


def test_since_the_promise_every_migration_only_adds(shapes: dict[str, dict[str, Any]]) -> None:
    steps = pairwise(REVISIONS)
    broken = {after: found for before, after in steps if (found := sorted(breaks(shapes[before], shapes[after])))}
    assert broken.keys() == NOT_ADDITIVE, broken
    assert all(revision <= NEEDS for revision in broken), "a version must know it: raise NEEDS, a release later"


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders DROP COLUMN metadata",
        "ALTER TABLE orders RENAME COLUMN metadata TO notes",
        "ALTER TABLE meta ADD COLUMN kind TEXT NOT NULL DEFAULT 'x'; DROP TABLE pictures",
        "CREATE UNIQUE INDEX one_order_each ON orders (user_id)",
    ],
)
def test_the_comparison_would_notice(
    shapes: dict[str, dict[str, Any]], newest: Path, tmp_path: Path, change: str
) -> None:
    copy = shutil.copy(newest, tmp_path / "ledger.db")
    engine = create_engine(f"sqlite:///{copy}")
    with engine.begin() as connection:
        for statement in change.split(";"):
            connection.execute(text(statement))
    with engine.connect() as connection:
        assert list(breaks(shapes[REVISIONS[-1]], shape(connection)))
    engine.dispose()


@EACH
async def test_a_version_that_still_runs_writes_on(version: str, tmp_path: Path) -> None:
    """Every row that it has written is written once more, with no column but those that it knows."""
    path = tmp_path / "ledger.db"
    url = put_back_ledger(version, STREAMS, path)
    with sqlite3.connect(path) as ledger:
        ledger.row_factory = sqlite3.Row
        tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {table: list(map(dict, ledger.execute(f"SELECT * FROM {table}"))) for table in tables}
        await migrate(url)
        written = 0
        for table in {"orders", "order_events", "payments", "feed", "outbox", "line_entries", "vouchers", "sales"}:
            assert rows[table], table
            ledger.execute(f"DELETE FROM {table}")
            for row in rows[table]:
                marks = ", ".join("?" * len(row))
                ledger.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
                written += 1
        assert written > 50
    ledger.close()
