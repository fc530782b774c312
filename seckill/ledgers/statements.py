"""What several of the databases have in common."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import Executable, Text, TypeDecorator
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.ledgers.database import AnyRow


class Returning:
    """Implements `seckill.ledgers.database.Statement` for one that has RETURNING."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement

    async def run(self, connection: AsyncConnection, parameters: Mapping[str, object]) -> Sequence[AnyRow]:
        return (await connection.execute(self._statement, parameters)).all()


def first_line(error: Exception) -> str:
    # SQLAlchemy's own text goes on with the statement and its parameters.
    told = error.orig if isinstance(error, DBAPIError) else error
    return (str(told) or type(told).__name__).splitlines()[0]


class JsonList(TypeDecorator[object]):
    """Lists travel as JSON to a database that has no arrays."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: object) -> str:
        return msgspec.json.encode(value).decode()
