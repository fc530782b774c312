"""What several of the database modules have in common."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Executable,
    FromClause,
    Insert,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import (
    WRITTEN,
    AnyRow,
    AnySelect,
    Database,
    NewOrderEntries,
    NewOrders,
    OrderRow,
    kind_of,
)
from seckill.backends.sql.tables import orders
from seckill.domain.item import NO_ITEM


class Returning:
    """Implements `seckill.backends.sql.database.Statement` for databases with RETURNING."""

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
    """Implements `seckill.backends.sql.database.OrdersStatement` where one statement inserts into one table. `listed`
    has the integers that the parameter of the same name brings in its column `value`."""

    def __init__(
        self,
        database: Database,
        source: AnySelect,
        events_of: Callable[[FromClause], Insert],
        entries: NewOrderEntries,
        listed: FromClause,
    ) -> None:
        self._entries = entries
        # Counted by item only if there are any, so that a batch without items does not pay for it.
        item = ("item_id",) if "item_id" in source.selected_columns else ()
        self._insert = insert(orders).from_select(source.selected_columns.keys(), source)
        self._insert_missing = database.insert_missing(orders, ["id"], source, returning=("id",))
        self._read = select(*[orders.c[name] for name in ("round_id", "epoch", *WRITTEN[1:], *item)]).where(
            database.among(orders.c.id, "listed")
        )
        alike = select(
            listed.c.value.label("id"), *[bindparam(n, type_=orders.c[n].type).label(n) for n in WRITTEN[1:]]
        )
        self._insert_events = events_of(alike.subquery("written"))

    async def run(
        self, connection: AsyncConnection, parameters: Mapping[str, object], rows: Sequence[OrderRow]
    ) -> Sequence[NewOrders]:
        alike: dict[tuple[int, int, int], list[OrderRow]] = {}
        for (round_id, epoch, *of_item), group in groupby(await self._new(connection, parameters, rows), kind_of(rows)):
            alike.setdefault((round_id, epoch, of_item[0] if of_item else NO_ITEM), []).extend(group)
        if not alike:
            return []
        # The new orders of one round, epoch and item all have the same state and time, so it is enough to read one of
        # each.
        found = await connection.execute(self._read, {"listed": [new[0][0] for new in alike.values()]})
        states: dict[tuple[int, int, int], str] = {}
        for round_id, epoch, state, at_ms, *of_item in found:
            states[round_id, epoch, of_item[0] or NO_ITEM if of_item else NO_ITEM] = state
            recorded_ms = at_ms
        counted: list[NewOrders] = []
        numbers: dict[str, list[int]] = {}
        for (round_id, epoch, item), new in alike.items():
            state = states[round_id, epoch, item]
            numbers.setdefault(state, []).extend([row[0] for row in new])
            counted.append(NewOrders(round_id, epoch, state, len(new), sum([row[3] for row in new]), item))
        for state, of_state in numbers.items():
            happened = {"listed": of_state, "state": state, "recorded_ms": recorded_ms}
            await connection.execute(self._insert_events, happened)
        await self._entries.of_new(connection, numbers)
        return counted

    async def _new(
        self, connection: AsyncConnection, parameters: Mapping[str, object], rows: Sequence[OrderRow]
    ) -> Sequence[OrderRow]:
        """Inserts the rows and returns those that are new. Usually all are, and then nothing has to be read."""
        try:
            inserted = await connection.execute(self._insert, parameters)
        # the database has undone this statement: some rows exist already, or the error below tells why
        except IntegrityError:
            written = {row.id for row in await self._insert_missing.run(connection, parameters)}
            return [row for row in rows if row[0] in written]
        if inserted.rowcount == len(rows):
            return rows
        # Some orders have no round or item to join with.
        present = set(await connection.scalars(_ids(self._read), {"listed": [row[0] for row in rows]}))
        return [row for row in rows if row[0] in present]


def _ids(read: AnySelect) -> AnySelect:
    return read.with_only_columns(orders.c.id)


def first_line(error: Exception) -> str:
    # SQLAlchemy's own message also contains the statement and its parameters.
    told = error.orig if isinstance(error, DBAPIError) else error
    return (str(told) or type(told).__name__).splitlines()[0]


class JsonList(TypeDecorator[object]):
    """Lists travel as JSON to a database that has no arrays."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: object) -> str:
        return msgspec.json.encode(value).decode()
