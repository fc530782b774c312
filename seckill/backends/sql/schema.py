"""Which shape a database is in. It needs no Alembic, which is slow to load: every process asks at its start."""

from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, text

from seckill.backends.sql.errors import edge
from seckill.backends.sql.opening import open_database

LOOK_WITHIN_S = 5.0
MIGRATIONS = Path(__file__).parent / "migrations"
# All that this version knows, the oldest first: r0001_first.py makes 0001.
REVISIONS = sorted(path.name[1:5] for path in (MIGRATIONS / "versions").glob("r*.py"))


class Schema(StrEnum):
    BEHIND = "behind"  # or not there at all
    CURRENT = "current"
    AHEAD = "ahead"  # a newer version is being rolled out


async def schema_of(url: str) -> Schema:
    database = open_database(url)
    try:
        if database.is_new():
            return Schema.BEHIND
        async with edge(database, LOOK_WITHIN_S), database.readers.connect() as connection:
            return await connection.run_sync(schema)
    finally:
        await database.close()


def schema(connection: Connection) -> Schema:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return Schema.BEHIND
    present = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if present is not None and present not in REVISIONS:
        return Schema.AHEAD
    return Schema.CURRENT if present == REVISIONS[-1] else Schema.BEHIND
