import asyncio
import contextlib
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, text

from seckill import __version__
from seckill.backends.sql import migration
from seckill.backends.sql.access_tables import ACCESS
from seckill.backends.sql.database import Database
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.migration import migrate, migrations
from seckill.backends.sql.schema import NEEDS, REVISIONS, Schema, schema_of
from seckill.backends.sql.tables import CATALOGUE, ENTRY_FORM, FEED, MIGRATED_BY, NEEDS_REVISION, OF_ALL, metadata
from seckill.errors import LedgerUnavailable, StartError
from seckill.ports.queue_entry import TOGETHER
from tests.backends.sql.looking import names
from tests.fixtures.mariadb import empty_mariadb_database
from tests.fixtures.postgres import PostgresServer, fresh_database
from tests.patience import PATIENCE_S

WAITING = text("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
META = {(ACCESS, "0"), (CATALOGUE, "0"), (FEED, "0"), (NEEDS_REVISION, NEEDS), (MIGRATED_BY, __version__)}
# Everything that is not in `metadata` but in the database, as the database itself writes it down.
SHAPE = {
    "sqlite": "SELECT type || ' ' || name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'",
    "postgresql": """
        SELECT 'column ' || table_name || '.' || column_name,
               concat_ws(' ', data_type, character_maximum_length, is_nullable, column_default)
          FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL
        SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL
        SELECT 'constraint ' || conname, pg_get_constraintdef(oid)
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "mysql": """
        SELECT concat('column ', table_name, '.', column_name),
               concat_ws(' ', column_type, collation_name, is_nullable, column_default, extra)
          FROM information_schema.columns WHERE table_schema = DATABASE()
        UNION ALL
        SELECT concat('index ', table_name, '.', index_name),
               concat(min(non_unique), ' ', group_concat(column_name ORDER BY seq_in_index))
          FROM information_schema.statistics WHERE table_schema = DATABASE() GROUP BY table_name, index_name
        UNION ALL
        SELECT concat('check ', constraint_name), check_clause
          FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()
        UNION ALL
        SELECT concat('reference ', constraint_name), concat(table_name, ' ', referenced_table_name)
          FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()
        UNION ALL
        SELECT concat('table ', table_name), concat(engine, ' ', table_collation)
          FROM information_schema.tables WHERE table_schema = DATABASE()
    """,
}


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
    elif request.param == "mariadb":
        with empty_mariadb_database(request.getfixturevalue("mariadb_server")) as url:
            yield url
    else:
        with fresh_database(request.getfixturevalue("postgres_server"), template="template0") as url:
            yield url


@pytest.fixture
async def database(empty_url: str) -> AsyncIterator[Database]:
    opened = open_database(empty_url)
    yield opened
    await opened.close()


async def sync(database: Database, work: Callable[[Connection], Any]) -> Any:
    async with database.writers.begin() as connection:
        return await connection.run_sync(work)


def differences(connection: Connection) -> list[Any]:
    partial = {
        index.name.removesuffix(OF_ALL)
        for table in metadata.sorted_tables
        for index in table.indexes
        if index.name and index.name.endswith(OF_ALL)
    }
    otherwise = partial | {f"{name}{OF_ALL}" for name in partial}

    def is_compared(_: object, name: str | None, kind: str, *__: object) -> bool:
        """Passes over what another database has in its place, because Alembic would miss it."""
        if name == "fk_orders_round_id":
            return connection.dialect.name == "sqlite"
        if name is None or name not in otherwise:
            return True
        return name.endswith(OF_ALL) == (connection.dialect.name == "mysql")

    options = {"compare_type": True, "compare_server_default": True, "include_object": is_compared}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, metadata))


def shape(connection: Connection) -> dict[str, str]:
    found = connection.execute(text(SHAPE[connection.dialect.name]))
    return {name: " ".join(definition.split()) for name, definition in found if "alembic_version" not in name}


async def test_a_fresh_database_is_behind_until_it_is_migrated(empty_url: str) -> None:
    assert await schema_of(empty_url) is Schema.BEHIND
    await migrate(empty_url)
    assert await schema_of(empty_url) is Schema.CURRENT
    await migrate(empty_url)
    assert await schema_of(empty_url) is Schema.CURRENT


def test_the_newest_migration_is_known_without_alembic() -> None:
    known = [each.revision for each in ScriptDirectory.from_config(migrations()).walk_revisions()]
    assert known == REVISIONS[::-1]


@pytest.mark.parametrize("empty_url", ["sqlite"], indirect=True)
async def test_every_earlier_version_is_behind(empty_url: str, database: Database) -> None:
    await migrate(empty_url)
    for earlier in REVISIONS[:-1]:
        told = text(f"UPDATE alembic_version SET version_num = '{earlier}'")
        async with database.writers.begin() as connection:
            await connection.execute(told)
        assert await schema_of(empty_url) is Schema.BEHIND


async def test_asking_does_not_create_the_database(tmp_path: Path) -> None:
    assert await schema_of(f"sqlite:///{tmp_path}/not-there.db") is Schema.BEHIND
    assert names(tmp_path) == set()


async def test_migrations_lead_to_the_tables(empty_url: str, database: Database) -> None:
    await migrate(empty_url)
    assert await sync(database, differences) == []


async def test_the_comparison_would_notice(empty_url: str, database: Database) -> None:
    await migrate(empty_url)
    await sync(database, lambda connection: connection.execute(text("ALTER TABLE sales DROP COLUMN title")))
    drop = "DROP INDEX ix_orders_user_id_id" + (" ON orders" if database.writers.dialect.name == "mysql" else "")
    await sync(database, lambda connection: connection.execute(text(drop)))
    assert {difference[0] for difference in await sync(database, differences)} == {"add_column", "add_index"}


async def test_migrations_lead_to_the_same_checks_defaults_and_partial_indexes(
    empty_url: str, database: Database
) -> None:
    """Alembic's comparison passes over these, so the databases' own descriptions are compared."""
    await migrate(empty_url)
    migrated = await sync(database, shape)
    await sync(database, lambda connection: connection.execute(text("DROP TABLE alembic_version")))
    await sync(database, metadata.drop_all)
    assert await sync(database, shape) == {}
    await sync(database, metadata.create_all)
    assert migrated == await sync(database, shape)


async def test_several_processes_migrate_at_once(empty_url: str, database: Database) -> None:
    await asyncio.gather(*[migrate(empty_url) for _ in range(6)])
    assert await sync(database, differences) == []
    async with database.readers.connect() as connection:
        found = await connection.execute(text("SELECT name, value FROM meta"))
        assert {tuple(row) for row in found} == META | {(ENTRY_FORM, str(TOGETHER))}, "no older version was ever here"


@pytest.mark.parametrize("empty_url", ["sqlite", "postgres"], indirect=True)
async def test_a_migration_that_fails_leaves_nothing(empty_url: str, database: Database) -> None:
    await sync(database, lambda connection: connection.execute(text("CREATE TABLE payments (id INTEGER)")))
    with pytest.raises(Exception, match="payments"):
        await migrate(empty_url)
    assert {name for name in await sync(database, shape) if "sales" in name} == set()
    assert await schema_of(empty_url) is Schema.BEHIND


@pytest.mark.parametrize("empty_url", ["mariadb"], indirect=True)
async def test_a_migration_that_was_broken_off_is_taken_up_again(empty_url: str, database: Database) -> None:
    """MySQL cannot take back a CREATE TABLE, so the next attempt goes on, wherever the last one ended."""

    broken_off = 0
    while await schema_of(empty_url) is Schema.BEHIND:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("seckill.backends.sql.migration.open_database", partial(breaking, after=3 * (broken_off + 1)))
            try:
                await migrate(empty_url)
            except LedgerUnavailable:
                broken_off += 1
    assert broken_off > 3
    assert await sync(database, differences) == []
    async with database.readers.connect() as connection:
        found = await connection.execute(text("SELECT name, value FROM meta"))
        assert {tuple(row) for row in found} == META


def breaking(url: str, after: int) -> Database:
    """A database whose connection breaks after that many statements that change something."""
    opened = open_database(url)
    left = iter(range(after))

    def execute(_: object, __: object, statement: str, *___: object) -> None:
        if statement.lstrip().startswith(("CREATE", "INSERT")) and next(left, None) is None:
            raise ConnectionAbortedError

    event.listen(opened.writers.sync_engine, "before_cursor_execute", execute)
    return opened


@pytest.mark.parametrize("empty_url", ["postgres"], indirect=True)
async def test_a_migration_that_collides_with_those_who_work_begins_again(empty_url: str, database: Database) -> None:
    """Somebody has looked at rounds and goes on to orders, while the migration has orders and waits for rounds."""
    await sync(database, partial(upgrade, revision="0024"))
    somebody = await asyncpg.connect(empty_url)
    # Somebody is patient, so the server breaks off the migration. Should it have looked before there was anything to
    # find, somebody gives way after all, and nothing was tried.
    await somebody.execute("SET deadlock_timeout = '1h'; SET lock_timeout = '20s'; BEGIN; SELECT FROM rounds")
    migrating = asyncio.create_task(migrate(empty_url))
    while not await sync(database, lambda connection: connection.execute(WAITING).all()):
        await asyncio.sleep(0.01)
    with contextlib.suppress(asyncpg.LockNotAvailableError):
        await somebody.execute("SELECT FROM orders")
    await somebody.close()
    await migrating
    assert await schema_of(empty_url) is Schema.CURRENT


def upgrade(connection: Connection, revision: str) -> None:
    config = migrations()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


async def test_a_database_of_a_newer_version(empty_url: str, database: Database) -> None:
    """Nodes of the old version go on beside the new one, but must not try to migrate."""
    await migrate(empty_url)
    newer = text("UPDATE alembic_version SET version_num = '9999'")
    await sync(database, lambda connection: connection.execute(newer))
    assert await schema_of(empty_url) is Schema.AHEAD
    with pytest.raises(StartError, match="newer version"):
        await migrate(empty_url)


async def test_a_database_that_this_version_would_misread(empty_url: str, database: Database) -> None:
    """Beyond what is promised: this version refuses it, in a sentence that names the version to install."""
    await migrate(empty_url)
    for told in (
        "UPDATE alembic_version SET version_num = '9999'",
        "UPDATE meta SET value = '9998' WHERE name = 'needs_revision'",
        "UPDATE meta SET value = '7.3.0' WHERE name = 'migrated_by'",
    ):
        async with database.writers.begin() as connection:
            await connection.execute(text(told))
    for attempt in (migrate, schema_of):
        with pytest.raises(StartError, match=r"migrated by seckill 7\.3\.0, and this version, .* install 7\.3\.0"):
            await attempt(empty_url)


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "poem.db"
    path.write_text("Shall I compare thee to a summer's day?\n" * 100)
    for attempt in (migrate, schema_of):
        with pytest.raises(StartError, match="not a database"):
            await attempt(f"sqlite:///{path}")


async def test_a_server_that_is_not_there() -> None:
    for attempt in (migrate, schema_of):
        with pytest.raises(LedgerUnavailable):
            await attempt("postgresql://nobody:secret@127.0.0.1:1/nothing")


async def test_a_server_that_accepts_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "READ_WITHIN_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(LedgerUnavailable, match=r"did not answer within 0\.3 s"):
                await migrate(f"mysql://seckill@127.0.0.1:{port}/seckill")


async def test_logins_and_names_that_are_wrong(postgres_server: PostgresServer) -> None:
    right = postgres_server.url("postgres")
    for wrong in (right.replace("seckill:", "seckill:x"), right.replace("seckill:", "mallory:"), f"{right}x"):
        with pytest.raises(StartError, match="check its address and rights") as refused:
            await schema_of(wrong)
        assert wrong not in str(refused.value)


async def test_sqlite_is_set_up_to_keep_what_it_committed(tmp_path: Path) -> None:
    await migrate(f"sqlite:///{tmp_path}/x.db")
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
