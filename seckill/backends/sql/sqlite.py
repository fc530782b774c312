"""What is particular to SQLite."""

import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Index,
    Insert,
    Table,
    bindparam,
    event,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.types import TypeEngine

from seckill.backends.sql.database import AnySelect, ErrorMeaning, NewOrderEntries
from seckill.backends.sql.sqlite_orders import InsertRows
from seckill.backends.sql.sqlite_thread import driver, in_thread
from seckill.backends.sql.sqlite_writer_lock import BEGIN, ReadingConnection, WriterLock, WritingConnection
from seckill.backends.sql.statements import JsonList, Returning, first_line, update_returning
from seckill.errors import StartError

T = TypeVar("T")

# Our processes wait for each other at the lock file. SQLite's own waiting only matters for a shell that an operator has
# open.
LOCK_WAIT_S = 10.0
BUSY_WAIT_S = 5.0
READERS = 4

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,  # a race for the log's own locks
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,  # also: no file descriptors left
}
_REFUSED = {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}
_UNSUITABLE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}


class _JsonRows:
    def __init__(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> None:
        self._name = name
        each = func.json_each(bindparam(name, type_=JsonList)).table_valued("value")
        self.table = select(
            *[
                func.json_extract(each.c.value, f"$[{position}]", type_=type_).label(column)
                for position, (column, type_) in enumerate(columns.items())
            ]
        ).subquery(name)

    def bind(self, rows: Sequence[Sequence[object]]) -> dict[str, object]:
        return {self._name: [tuple(row) for row in rows]}


class SqliteDatabase:
    now_ms = literal_column(
        "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))",
        BigInteger,
    )

    def __init__(self, url: URL) -> None:
        self.path = _path(url)
        self.folder = self.path.parent
        lock_path = self.path.with_name(self.path.name + ".writer")
        self.writers = _engine(
            self.path,
            "rwc",
            # Each connection has its own lock: an abandoned one may still be at work when its successor begins.
            lambda *args, **kwargs: WritingConnection(*args, lock=WriterLock(lock_path, LOCK_WAIT_S), **kwargs),
            pool_size=1,
        )
        event.listen(self.writers.sync_engine, "begin", _begin)
        # Readers open no transaction, so there is none to roll back; trying would cost a switch to the thread each
        # time.
        self.readers = _engine(self.path, "rw", ReadingConnection, pool_size=READERS, skip_autocommit_rollback=True)

    def rows(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> _JsonRows:
        return _JsonRows(name, columns)

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        each = func.json_each(bindparam(name, type_=JsonList)).table_valued("value")
        return column.in_(select(each.c.value))

    def from_the_end(
        self, found: AnySelect, index: Index, value: str, least: ColumnElement[int], below: ColumnElement[int]
    ) -> AnySelect:
        *_, column, key = index.columns
        return found.where(column == value, key >= least, key < below).order_by(key.desc())

    def insert_missing(
        self, table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]
    ) -> Returning:
        missing = insert(table).from_select(source.selected_columns.keys(), source)
        missing = missing.on_conflict_do_nothing(index_elements=key)
        return Returning(missing.returning(*[table.c[name] for name in returning]))

    def insert_orders(
        self, source: AnySelect, events_of: Callable[[FromClause], Insert], entries: NewOrderEntries
    ) -> InsertRows:
        listed = func.json_each(bindparam("listed", type_=JsonList)).table_valued("value")
        return InsertRows(self, source, events_of, entries, listed)

    def update_returning(
        self, table: Table, where: ColumnElement[bool], values: Mapping[str, Any], returning: Sequence[str]
    ) -> Returning:
        return update_returning(table, where, values, returning)

    async def together(
        self, connection: AsyncConnection, work: Callable[[AsyncConnection], Coroutine[Any, Any, T]]
    ) -> T:
        return await in_thread(connection, work)

    def verdict(self, error: Exception) -> ErrorMeaning | None:
        told = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(told, "sqlite_errorcode", None)
        if code is None:
            return None
        primary = code & 0xFF  # the rest says in more detail what happened
        if primary in _UNAVAILABLE:
            return ErrorMeaning.UNAVAILABLE
        if primary in _REFUSED:
            return ErrorMeaning.REFUSED
        return ErrorMeaning.UNSUITABLE if primary in _UNSUITABLE else None

    def words(self, error: Exception) -> str:
        return first_line(error)

    def is_new(self) -> bool:
        return not self.path.exists()

    async def lock_for_migration(self, connection: AsyncConnection) -> None:
        """Nothing to do: there is only one writer at a time."""

    async def close(self) -> None:
        await self.readers.dispose()
        await self.writers.dispose()


def _path(url: URL) -> Path:
    name = url.database or ":memory:"
    if name == ":memory:" or name.startswith("file:") or url.query:
        raise StartError(
            "SQLite needs a plain file that several processes can open: write sqlite:///FOLDER/NAME.db "
            "without anything after it."
        )
    path = Path(name).absolute()
    if not path.parent.is_dir():
        raise StartError(f"The folder {path.parent} for the SQLite database does not exist: create it first.")
    return path


def _engine(path: Path, mode: str, factory: Any, **options: Any) -> AsyncEngine:
    return create_async_engine(
        URL.create("sqlite+aiosqlite", database=path.as_uri(), query={"mode": mode, "uri": "true"}),
        module=driver(),
        connect_args={"factory": factory, "isolation_level": None, "timeout": BUSY_WAIT_S},
        max_overflow=0,
        **options,
        hide_parameters=True,  # they are buyers' data, and errors go to logs
    )


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(BEGIN)
