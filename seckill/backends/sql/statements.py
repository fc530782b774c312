"""What several of the databases have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Executable, FromClause, Insert, Table, Text, TypeDecorator, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import WRITTEN, AnyRow, AnySelect, Database, NewOrderEntries, NewOrders
from seckill.backends.sql.tables import orders
from seckill.domain.item import NO_ITEM


class Returning:
    """Implements `seckill.backends.sql.database.Statement` for one that has RETURNING."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement

    async def run(self, connection: AsyncConnection, parameters: Mapping[str, object]) -> Sequence[AnyRow]:
        return (await connection.execute(self._statement, parameters)).all()


def update_returning(
    table: Table, where: ColumnElement[bool], values: Mapping[str, Any], returning: Sequence[str]
) -> Returning:
    changed = update(table).where(where).values(values)
    return Returning(changed.returning(*[table.c[name] for name in returning]))


class InsertOrders:
    """Implements `seckill.backends.sql.database.OrdersStatement` where one statement inserts into one table."""

    def __init__(
        self,
        database: Database,
        source: AnySelect,
        events_of: Callable[[FromClause], Insert],
        entries: NewOrderEntries,
    ) -> None:
        self._entries = entries
        self._written = database.rows("written", {name: orders.c[name].type for name in WRITTEN})
        # By item, if there are any: what a batch without them needs is not asked for.
        item = ("item_id",) if "item_id" in source.selected_columns else ()
        counted = ("round_id", "epoch", "quantity", *item)
        self._insert = database.insert_missing(orders, ["id"], source, returning=(*WRITTEN, *counted))
        self._insert_events = events_of(self._written.table)

    async def run(self, connection: AsyncConnection, parameters: Mapping[str, object]) -> Sequence[NewOrders]:
        new = await self._insert.run(connection, parameters)
        if not new:
            return []
        await connection.execute(self._insert_events, self._written.bind([row[: len(WRITTEN)] for row in new]))
        units: dict[tuple[int, int, str, int], list[int]] = {}
        numbers: dict[str, list[int]] = {}
        for number, state, _, round_id, epoch, quantity, *item in new:
            units.setdefault((round_id, epoch, state, item[0] or NO_ITEM if item else NO_ITEM), []).append(quantity)
            numbers.setdefault(state, []).append(number)
        await self._entries.of_new(connection, numbers)
        return [
            NewOrders(round_id, epoch, state, len(each), sum(each), of_item)
            for (round_id, epoch, state, of_item), each in units.items()
        ]


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
