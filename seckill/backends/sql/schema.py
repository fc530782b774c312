"""Finds out which shape a database has. This does without Alembic, which is slow to load, because every process asks at
its start."""

from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, text

from seckill import __version__
from seckill.backends.sql.database import Database
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.tables import MIGRATED_BY, NEEDS_REVISION, meta
from seckill.backends.sql.transactions import edge
from seckill.errors import StartError

LOOK_WITHIN_S = 5.0
MIGRATIONS = Path(__file__).parent / "migrations"
# All revisions that this version knows, oldest first: r0001_first.py makes 0001.
REVISIONS = sorted(path.name[1:5] for path in (MIGRATIONS / "versions").glob("r*.py"))
# Versions that know at least this revision can still work on a database of the newest one. It only rises with a
# migration that removes or changes something they use, and never above what the previous release knows:
# docs/upgrades.md.
NEEDS = "0019"


class Schema(StrEnum):
    BEHIND = "behind"  # or not there at all
    CURRENT = "current"
    AHEAD = "ahead"  # a newer version is being rolled out, and this one may go on beside it


async def schema_of(url: str) -> Schema:
    database = open_database(url)
    try:
        return await schema_in(database)
    finally:
        await database.close()


async def must_be_current(database: Database) -> None:
    """Called at the start of every process: on outdated tables, nothing would work."""
    if await schema_in(database) is Schema.BEHIND:
        raise StartError("The database's schema is behind this version: run `seckill migrate` first.")


async def schema_in(database: Database) -> Schema:
    if database.is_new():
        return Schema.BEHIND
    async with edge(database, LOOK_WITHIN_S), database.readers.connect() as connection:
        return await connection.run_sync(schema)


def schema(connection: Connection) -> Schema:
    """Raises StartError if a newer version has changed the database so that this one would not understand it."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return Schema.BEHIND
    present = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if present is not None and present not in REVISIONS:
        _must_know_enough(connection)
        return Schema.AHEAD
    return Schema.CURRENT if present == REVISIONS[-1] else Schema.BEHIND


def stamp(connection: Connection) -> None:
    """Leaves a note for every version that starts on this database later."""
    for name, value in ((NEEDS_REVISION, NEEDS), (MIGRATED_BY, __version__)):
        connection.execute(delete(meta).where(meta.c.name == name))
        connection.execute(insert(meta).values(name=name, value=value))


def _must_know_enough(connection: Connection) -> None:
    found = connection.execute(select(meta.c.name, meta.c.value).where(meta.c.name.in_((NEEDS_REVISION, MIGRATED_BY))))
    stamps = dict(map(tuple, found))
    if stamps.get(NEEDS_REVISION, "") > REVISIONS[-1]:
        other = stamps.get(MIGRATED_BY, "a newer version")
        raise StartError(
            f"The database was migrated by seckill {other}, and this version, {__version__}, cannot work with it: "
            f"install {other} or a later one, or restore the backup from before its `seckill migrate`."
        )
