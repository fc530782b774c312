"""Finds the rows of a table whose time has come, by the column that holds the time."""

from sqlalchemy import ColumnElement, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import Database
from seckill.backends.sql.transactions import reading


class DueRows:
    def __init__(self, id_: ColumnElement[int], next_ms: ColumnElement[int], database: Database) -> None:
        self._database = database
        due = select(id_).where(next_ms <= database.now_ms).order_by(next_ms)
        self._one = due.limit(1)
        self._some = due.limit(bindparam("count")).with_for_update(skip_locked=True)

    async def is_any(self) -> bool:
        """Looks without the writers' lock, since there is usually nothing to do."""
        async with reading(self._database) as connection:
            return (await connection.execute(self._one)).first() is not None

    async def take(self, connection: AsyncConnection, count: int) -> list[int]:
        return list(await connection.scalars(self._some, {"count": count}))
