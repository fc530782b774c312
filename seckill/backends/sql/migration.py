"""Bringing a database to the shape of `tables.py`."""

from functools import partial

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert

from seckill.backends.sql.database import Database
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.schema import MIGRATIONS, Schema, schema, stamp
from seckill.backends.sql.tables import ENTRY_FORM, meta
from seckill.backends.sql.transactions import READ_WITHIN_S, edge, until_not_collided
from seckill.errors import StartError
from seckill.ports.queue_entry import TOGETHER

# Generous: a migration may have to wait for another process that is migrating, or rewrite a large table.
MIGRATE_WITHIN_S = 600.0


async def migrate(url: str) -> None:
    """Migrates the database. Harmless to repeat. When several processes try at once, one does it and the others wait.

    A database in use is migrated step by step, each in a transaction of its own. A single transaction would hold the
    locks of the first step while it waits for those of the last, and could deadlock with one that takes them the other
    way round. A step that needs several tables may still do so: whoever loses then begins again.
    """
    database = open_database(url)
    try:
        async with edge(database, READ_WITHIN_S), database.writers.connect():
            pass  # a server that accepts a connection but does not answer gets less time than a migration
        async with edge(database, MIGRATE_WITHIN_S):
            while not await until_not_collided(partial(_step, database)):
                pass
    finally:
        await database.close()


async def _step(database: Database) -> bool:
    """Returns whether it was the last."""
    async with edge(database, MIGRATE_WITHIN_S), database.writers.begin() as connection:
        await database.lock_for_migration(connection)
        return await connection.run_sync(_upgrade)


def _upgrade(connection: Connection) -> bool:
    """Makes everything that a new database needs, or takes the next step for one in use. Returns whether that was the
    last."""
    if schema(connection) is Schema.AHEAD:
        raise StartError("The database was set up by a newer version of seckill: install that version or a later one.")
    is_new = not connection.dialect.has_table(connection, "alembic_version")
    config = migrations()
    config.attributes["connection"] = connection
    steps = _steps(connection, config)
    if steps:
        command.upgrade(config, steps[-1] if is_new else steps[0])
    if len(steps) > 1 and not is_new:
        return False
    stamp(connection)
    if is_new:  # no version that could not read them has ever worked on it
        connection.execute(insert(meta).values(name=ENTRY_FORM, value=str(TOGETHER)))
    return True


def _steps(connection: Connection, config: Config) -> list[str]:
    """Returns the revisions that are still to come, the next one first."""
    now = MigrationContext.configure(connection).get_current_revision()
    scripts = ScriptDirectory.from_config(config)
    return [script.revision for script in scripts.iterate_revisions("head", now or "base")][::-1]


def migrations() -> Config:
    config = Config()
    # In Alembic's options a percent sign begins a reference to another option.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
