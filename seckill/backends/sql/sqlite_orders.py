"""Inserts new orders into SQLite as rows of values, with what their round decides as parameters of the whole statement.

Price, state and times are the same for all orders of one round and quantity. Reading each order from a document and
joining it with its round and sale took a third of what inserting it costs. So one order of each kind is joined, and the
others are written like it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import FromClause, Insert, delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnySelect, Database, NewOrderEntries, OrderRow
from seckill.backends.sql.statements import InsertOrders
from seckill.backends.sql.tables import orders

# How many orders a statement has room for. Its text is always the same, so the driver prepares it once.
PORTION = 128
# A batch of more kinds is joined as a whole.
KINDS_MAX = 16

# The columns in which orders of a kind differ, and which of their own values each of them has.
_OWN = {"id": 1, "user_id": 2, "active_slot": 3, "slot": 3, "request_id": 4, "created_ms": 5}
_own = itemgetter(0, 2, 4, 5, 7)
_OWN_VALUES = 5
_kind = itemgetter(1, 3, 6)  # the round, the quantity and the epoch
_kind_with_item = itemgetter(1, 3, 6, 8)


class InsertRows(InsertOrders):
    def __init__(
        self,
        database: Database,
        source: AnySelect,
        events_of: Callable[[FromClause], Insert],
        entries: NewOrderEntries,
        listed: FromClause,
    ) -> None:
        super().__init__(database, source, events_of, entries, listed)
        self._join = source
        self._delete = delete(orders).where(database.among(orders.c.id, "listed"))
        names = source.selected_columns.keys()
        self._alike = itemgetter(*[place for place, name in enumerate(names) if name not in _OWN])
        told = ", ".join(f"column{_OWN[name]}" if name in _OWN else "?" for name in names)
        row = f"({', '.join('?' * _OWN_VALUES)})"
        self._insert_portion = (
            f"INSERT INTO orders ({', '.join(names)}) SELECT {told} "  # noqa: S608 (all of it is written by us)
            f"FROM (VALUES {', '.join([row] * PORTION)}) WHERE column1 IS NOT NULL"
        )

    async def _new(
        self, connection: AsyncConnection, parameters: Mapping[str, object], rows: Sequence[OrderRow]
    ) -> Sequence[OrderRow]:
        kinds = _by_kind(rows)
        if len(kinds) > KINDS_MAX:
            return await super()._new(connection, parameters, rows)
        first = {name: [kind[0] for kind in kinds] for name in parameters}
        # An order of no round, or of another sale's item, has nothing to join with, and neither have those like it.
        joined = (await connection.execute(self._join, first)).all()
        kind_of_first = {kind[0][0]: kind for kind in kinds}
        new: list[OrderRow] = []
        for found in joined:
            alike, kind = self._alike(found), kind_of_first[found.id]
            for begin in range(0, len(kind), PORTION):
                portion = kind[begin : begin + PORTION]
                try:
                    await connection.exec_driver_sql(self._insert_portion, _values(alike, portion))
                # Some exist already, or the error below tells why. SQLite has undone this portion; those before it are
                # undone here, because all orders of a batch are written at the same moment.
                except IntegrityError:
                    await connection.execute(self._delete, {"listed": [row[0] for row in new]})
                    return await super()._new(connection, parameters, rows)
                new += portion
        return new


def _by_kind(rows: Sequence[OrderRow]) -> list[list[OrderRow]]:
    kinds: dict[Any, list[OrderRow]] = {}
    for kind, group in groupby(rows, _kind_with_item if rows and len(rows[0]) > 8 else _kind):
        kinds.setdefault(kind, []).extend(group)
    return list(kinds.values())


def _values(alike: Sequence[object], portion: Sequence[OrderRow]) -> tuple[object, ...]:
    nobody = (None,) * (_OWN_VALUES * (PORTION - len(portion)))
    return *alike, *chain.from_iterable(map(_own, portion)), *nobody
