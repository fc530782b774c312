"""Bringing a database to the shape of `tables.py`."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from seckill.errors import StartError
from seckill.ledgers.edge import edge
from seckill.ledgers.opening import open_database

# Generous: a migration may have to wait for another process that is migrating, or rewrite a large table.
MIGRATE_WITHIN_S = 600.0
LOOK_WITHIN_S = 5.0


async def migrate(url: str) -> None:
    """Harmless to repeat. When several processes do it at once, one does it and the others wait."""
    database = open_database(url)
    try:
        async with edge(database, MIGRATE_WITHIN_S), database.writers.begin() as connection:
            await database.lock_for_migration(connection)
            await connection.run_sync(_upgrade)
    finally:
        await database.close()


async def pending(url: str) -> bool:
    """Whether the database is behind. One that is ahead (a newer version is being rolled out) is not."""
    database = open_database(url)
    try:
        if database.is_new():
            return True
        async with edge(database, LOOK_WITHIN_S), database.readers.connect() as connection:
            present = await connection.run_sync(_present)
    finally:
        await database.close()
    return _is_known(present) and present != _revisions()[0]


def _upgrade(connection: Connection) -> None:
    config = _config()
    if not _is_known(_present(connection)):
        raise StartError("The database was set up by a newer version of seckill: install that version or a later one.")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _present(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _is_known(revision: str | None) -> bool:
    return revision is None or revision in _revisions()


@cache
def _revisions() -> tuple[str, ...]:
    """All that this version knows, the newest first. Reading them means loading a file for each."""
    return tuple(known.revision for known in ScriptDirectory.from_config(_config()).walk_revisions())


def _config() -> Config:
    config = Config()
    # Alembic takes a percent sign in its options for the beginning of a reference to another one.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
