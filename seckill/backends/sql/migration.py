"""Bringing a database to the shape of `tables.py`."""

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from seckill.backends.sql.errors import READ_WITHIN_S, edge
from seckill.backends.sql.opening import open_database
from seckill.backends.sql.schema import MIGRATIONS, Schema, schema, stamp
from seckill.errors import StartError

# Generous: a migration may have to wait for another process that is migrating, or rewrite a large table.
MIGRATE_WITHIN_S = 600.0


async def migrate(url: str) -> None:
    """Harmless to repeat. When several processes try at once, one does it and the others wait."""
    database = open_database(url)
    try:
        async with edge(database, READ_WITHIN_S), database.writers.connect():
            pass  # a server that accepts a connection and says nothing does not get as long as a migration
        async with edge(database, MIGRATE_WITHIN_S), database.writers.begin() as connection:
            await database.lock_for_migration(connection)
            await connection.run_sync(_upgrade)
    finally:
        await database.close()


def _upgrade(connection: Connection) -> None:
    if schema(connection) is Schema.AHEAD:
        raise StartError("The database was set up by a newer version of seckill: install that version or a later one.")
    config = migrations()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    stamp(connection)


def migrations() -> Config:
    config = Config()
    # Alembic takes a percent sign in its options for the beginning of a reference to another one.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
