"""What is particular to PostgreSQL."""

import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import asyncpg
import msgspec
from sqlalchemy import (
    ARRAY,
    CTE,
    URL,
    BigInteger,
    ColumnElement,
    FromClause,
    Index,
    Insert,
    String,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    column,
    event,
    func,
    literal,
    literal_column,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.types import TypeEngine

from seckill.backends.sql.database import WRITTEN, AnySelect, ErrorMeaning, NewOrderEntries, NewOrders, OrderRow
from seckill.backends.sql.statements import Returning, first_line, update_returning
from seckill.backends.sql.tables import PARTIAL, orders
from seckill.domain.item import NO_ITEM
from seckill.errors import LedgerUnsuitable, StartError

T = TypeVar("T")

for _index in PARTIAL:
    _index.dialect_options["postgresql"]["where"] = _index.dialect_options["sqlite"]["where"]

POOL_SIZE = 5
CONNECT_WITHIN_S = 5.0
CLOSE_WITHIN_S = 1.0

_SERVER_SETTINGS = {
    "application_name": "seckill",
    "jit": "off",  # compiling costs more than any of our statements
    # Every statement has to see what was committed before it, even one that has waited for a lock. Other levels, which
    # may be the default of a server, a database or a user, would show it an older state.
    "default_transaction_isolation": "read committed",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    # A worker that was stopped in the middle of a transaction must not hold up the others for ever.
    "idle_in_transaction_session_timeout": "10s",
}

# Any number that nothing else uses for an advisory lock in this database.
_MIGRATION_LOCK = 0x5EC_1C11

# Classes and codes of SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html
_UNAVAILABLE = (
    "08",  # connection
    "25006",  # read only: a standby, or a primary that became one
    "25P03",  # idle in transaction for too long
    "53",  # disk full, out of memory, too many connections
    "55006",  # object in use
    "55P03",  # lock not available in time
    "57",  # statement timeout, shutting down, starting up
    "58",  # input/output error
)
_COLLIDED = ("40",)  # deadlock, serialization failure
_REFUSED = ("22", "23")
_UNSUITABLE = ("28", "3D000", "42501")  # login, no such database, no rights
# Encodings that can hold every text of ours. The second one stores the bytes as they are.
_ENCODINGS = ("UTF8", "SQL_ASCII")


class _ArrayRows:
    """Rows as one array for each column, passed as text: for a list, the driver checks whether each element is a list
    itself, which takes longer than all the rest."""

    def __init__(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> None:
        self._names = [f"{name}_{column}" for column in columns]
        self._write = [_text_array if isinstance(type_, String) else _array for type_ in columns.values()]
        arrays = [
            cast(bindparam(array, type_=Text), ARRAY(type_))
            for array, type_ in zip(self._names, columns.values(), strict=True)
        ]
        self.table = (
            func.unnest(*arrays)
            .table_valued(*[column(column_name, type_) for column_name, type_ in columns.items()])
            .render_derived(name=name)
        )

    def bind(self, rows: Sequence[Sequence[object]]) -> dict[str, object]:
        columns = zip(*rows, strict=True) if rows else [()] * len(self._names)
        return {name: write(values) for name, write, values in zip(self._names, self._write, columns, strict=True)}


def _array(numbers: Sequence[Any]) -> str:
    return f"{{{msgspec.json.encode(numbers)[1:-1].decode()}}}"


def _text_array(texts: Sequence[Any]) -> str:
    if not texts:
        return "{}"
    joined = '","'.join(texts)
    if "\\" in joined or joined.count('"') > 2 * (len(texts) - 1):
        joined = '","'.join([text.replace("\\", "\\\\").replace('"', '\\"') for text in texts])
    return f'{{"{joined}"}}'


class _InsertOrders:
    """Inserts orders, events and feed entries in one statement, so that new rows need not travel here and back."""

    def __init__(self, new: CTE, events: Insert, entries: Insert) -> None:
        group = (new.c.round_id, new.c.epoch, new.c.state)
        item = (new.c.item_id,) if "item_id" in new.c else ()
        told = [func.coalesce(each, NO_ITEM) for each in item]
        counted = select(*group, func.count(), func.sum(new.c.quantity), *told).group_by(*group, *item)
        self._statement = counted.add_cte(events.cte("events"), entries.cte("entries"))

    async def run(
        self, connection: AsyncConnection, parameters: Mapping[str, object], rows: Sequence[OrderRow]
    ) -> Sequence[NewOrders]:
        return [NewOrders(*row) for row in await connection.execute(self._statement, parameters)]


class PostgresDatabase:
    now_ms = literal_column("CAST(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint)", BigInteger)
    folder = None

    def __init__(self, url: URL) -> None:
        # Given to asyncpg unchanged, so that every address works that works with psql.
        address = url.set(drivername="postgresql").render_as_string(hide_password=False)

        async def connect() -> Any:
            return await _connect(address)

        self.writers = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            pool_size=POOL_SIZE,
            max_overflow=0,
            hide_parameters=True,
        )
        event.listen(self.writers.sync_engine, "checkout", _refuse_if_closed)
        self.readers = self.writers.execution_options(isolation_level="AUTOCOMMIT")

    def rows(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> _ArrayRows:
        return _ArrayRows(name, columns)

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        return column == any_(bindparam(name, type_=ARRAY(column.type)))

    def from_the_end(
        self, found: AnySelect, index: Index, value: str, least: ColumnElement[int], below: ColumnElement[int]
    ) -> AnySelect:
        # A range with a single value. With an equality, the planner might take the index of the keys instead, and go
        # through the newest rows of all buyers until enough of them fit.
        *_, column, key = index.columns
        pair, fixed = tuple_(column, key), literal(value, String)
        in_range = found.where(pair >= tuple_(fixed, least), pair < tuple_(fixed, below))
        return in_range.order_by(column.desc(), key.desc())

    def insert_missing(
        self, table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]
    ) -> Returning:
        return Returning(_insert_missing(table, key, source, returning))

    def insert_orders(
        self, source: AnySelect, events_of: Callable[[FromClause], Insert], entries: NewOrderEntries
    ) -> _InsertOrders:
        # Counted by item only if there are any, so that a batch without items does not pay for it.
        item = ("item_id",) if "item_id" in source.selected_columns else ()
        new = _insert_missing(orders, ["id"], source, (*WRITTEN, "round_id", "epoch", "quantity", *item)).cte("new")
        listed = cast(func.json_agg(aggregate_order_by(new.c.id, new.c.id)), Text)
        return _InsertOrders(new, events_of(new), entries.insert_of(new, listed))

    def update_returning(
        self, table: Table, where: ColumnElement[bool], values: Mapping[str, Any], returning: Sequence[str]
    ) -> Returning:
        return update_returning(table, where, values, returning)

    async def together(
        self, connection: AsyncConnection, work: Callable[[AsyncConnection], Coroutine[Any, Any, T]]
    ) -> T:
        return await work(connection)

    def verdict(self, error: Exception) -> ErrorMeaning | None:
        told = error.orig if isinstance(error, DBAPIError) else error
        behind = told and told.__cause__
        if isinstance(behind, asyncpg.ClientConfigurationError):
            return ErrorMeaning.UNSUITABLE
        # An operator has changed a table, and the driver has prepared the statement for how it was before.
        if isinstance(behind, asyncpg.InvalidCachedStatementError):
            return ErrorMeaning.COLLIDED
        # The server is ending the connection, and has said so but not hung up yet. On a connection that is being made,
        # SQLAlchemy does not recognise this.
        if isinstance(behind, asyncpg.InternalClientError):
            return ErrorMeaning.UNAVAILABLE
        code = getattr(told, "sqlstate", None) or ""
        if code.startswith(_UNAVAILABLE):
            return ErrorMeaning.UNAVAILABLE
        if code.startswith(_COLLIDED):
            return ErrorMeaning.COLLIDED
        if code.startswith(_REFUSED):
            return ErrorMeaning.REFUSED
        return ErrorMeaning.UNSUITABLE if code.startswith(_UNSUITABLE) else None

    def words(self, error: Exception) -> str:
        return first_line(error)

    def is_new(self) -> bool:
        return False

    async def lock_for_migration(self, connection: AsyncConnection) -> None:
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        await connection.execute(text("SET LOCAL lock_timeout = '60s'"))
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})

    async def close(self) -> None:
        await self.writers.dispose()


def _insert_missing(table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]) -> Any:
    missing = insert(table).from_select(source.selected_columns.keys(), source)
    missing = missing.on_conflict_do_nothing(index_elements=key)
    return missing.returning(*[table.c[name] for name in returning])


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    async def close(self, *, timeout: float = CLOSE_WITHIN_S) -> None:
        """Closes the connection properly or, if the server is frozen and does not answer, cuts it off."""
        with contextlib.suppress(TimeoutError):
            await super().close(timeout=timeout)


async def _connect(address: str) -> Any:
    connection = await asyncpg.connect(
        address, timeout=CONNECT_WITHIN_S, server_settings=_SERVER_SETTINGS, connection_class=_Connection
    )
    try:
        _check_encoding(connection.get_settings().server_encoding)
        _check_sync(await connection.fetchval("SELECT current_setting('fsync')"))
        # Whatever the server's default is, a commit must be on disk when it returns. A stricter default stays.
        await connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    except BaseException:
        connection.terminate()
        raise
    return connection


def _check_encoding(encoding: str) -> None:
    """Checked at the start, because it cannot be changed later, and a buyer's order could never be written if their
    name did not fit."""
    if encoding not in _ENCODINGS:
        raise StartError(
            f"The database keeps texts as {encoding}, in which most names cannot be written: "
            "create it with ENCODING 'UTF8', and move what is in it with `seckill move`."
        )


def _check_sync(sync: str) -> None:
    """Checks a server-wide setting, which no connection can set for itself."""
    if sync != "on":
        raise LedgerUnsuitable(
            "PostgreSQL runs with fsync = off, so a power cut can lose or spoil what it has committed: set it to on."
        )


def _refuse_if_closed(connection: Any, record: object, proxy: object) -> None:
    """The server may have closed the connection while it was idle. That can be seen without asking the server; the pool
    then takes another connection."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError
