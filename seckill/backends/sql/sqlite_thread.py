"""SQLite connections whose statements go to the connection's thread and back only once.

SQLite waits for the disk, so each connection has a thread. The driver goes there four times for each statement: to open
a cursor, to execute, to fetch and to close. Each of these trips costs more than most statements. Here a statement takes
one trip, and statements that are run in the thread together share one.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import aiosqlite
from sqlalchemy import Connection
from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
    AsyncAdapt_aiosqlite_dbapi,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.util import await_only

T = TypeVar("T")


class _Cursor(AsyncAdapt_aiosqlite_cursor):
    """A cursor that has all rows of a statement as soon as the statement was executed."""

    __slots__ = ("_description", "_lastrowid", "_rowcount", "arraysize")

    _adapt_connection: "ThreadConnection"

    def __init__(self, adapt_connection: "ThreadConnection") -> None:
        self._adapt_connection = adapt_connection
        self._rows = deque()
        self._description: Any = None
        self._rowcount = -1
        self._lastrowid: Any = None
        self.arraysize = 1

    @property
    def description(self) -> Any:
        return self._description

    @property
    def rowcount(self) -> int:
        return self._rowcount

    @property
    def lastrowid(self) -> Any:
        return self._lastrowid

    def execute(self, operation: Any, parameters: Any = None) -> None:
        self._run("execute", operation, () if parameters is None else parameters)

    def executemany(self, operation: Any, seq_of_parameters: Any) -> None:
        self._run("executemany", operation, seq_of_parameters)

    def _run(self, way: str, operation: Any, parameters: Any) -> None:
        told = self._adapt_connection.call(partial(_executed, way, operation, parameters))
        self._description, self._rowcount, self._lastrowid, rows = told
        self._rows = deque(rows)

    async def _async_soft_close(self) -> None:
        """Does nothing: no cursor is open."""

    def close(self) -> None:
        self._rows.clear()


def _executed(
    way: str, operation: Any, parameters: Any, connection: sqlite3.Connection
) -> tuple[Any, int, Any, Sequence[Any]]:
    cursor = connection.cursor()
    try:
        getattr(cursor, way)(operation, parameters)
        rows = cursor.fetchall() if cursor.description else ()
        return cursor.description, cursor.rowcount, cursor.lastrowid, rows
    finally:
        cursor.close()


class ThreadConnection(AsyncAdapt_aiosqlite_connection):
    __slots__ = ("_over", "_thread")

    _cursor_cls: Any = _Cursor  # the library's own class here has slots that this one does not fill
    _connection: Any  # aiosqlite's connection

    def __init__(self, dbapi: Any, connection: Any) -> None:
        super().__init__(dbapi, connection)
        self._thread = 0  # the thread that is running several statements together; 0 at other times
        self._over = False  # whether nothing was done since the last commit

    def commit(self) -> None:
        super().commit()
        self._over = True

    def rollback(self) -> None:
        """Does nothing after a commit. Every use of a connection ends with a rollback, which would then go to the
        thread for nothing."""
        if not self._over:
            super().rollback()

    def call(self, use: Callable[[sqlite3.Connection], T]) -> T:
        self._over = False
        if threading.get_ident() == self._thread:
            return use(self._connection._conn)
        try:
            return cast(T, await_only(self._connection._execute(self._use, use)))
        except Exception as error:
            self._handle_exception(error)

    def _use(self, use: Callable[[sqlite3.Connection], T]) -> T:
        return use(self._connection._conn)

    async def together(self, work: Callable[[], T]) -> T:
        """Runs `work` in the connection's thread. A caller who is cancelled meanwhile still waits for its end:
        otherwise two threads would use the connection when the transaction ends."""
        self._over = False
        running = asyncio.ensure_future(self._connection._execute(self._run, work))
        try:
            return cast(T, await asyncio.shield(running))
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # marks the error as seen: no caller is left
            raise

    def _run(self, work: Callable[[], T]) -> T:
        self._thread = threading.get_ident()
        try:
            return work()
        finally:
            self._thread = 0


class _Driver(AsyncAdapt_aiosqlite_dbapi):
    def connect(self, *arguments: Any, **named: Any) -> ThreadConnection:
        made = super().connect(*arguments, **named)
        return ThreadConnection(self, made._connection)


def driver() -> AsyncAdapt_aiosqlite_dbapi:
    """For `create_async_engine(…, module=driver())`."""
    return _Driver(aiosqlite, sqlite3)


class _Here:
    """The part of an `AsyncConnection` that statements need, for use in the connection's own thread, where nothing has
    to be awaited."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, *statement: Any) -> Any:
        return self._connection.execute(*statement)

    async def scalars(self, *statement: Any) -> Any:
        return self._connection.scalars(*statement)

    async def exec_driver_sql(self, *statement: Any) -> Any:
        return self._connection.exec_driver_sql(*statement)


async def in_thread(connection: AsyncConnection, work: Callable[[AsyncConnection], Coroutine[Any, Any, T]]) -> T:
    """Runs all statements of `work`, which awaits nothing else, in one trip to the connection's thread and back."""
    pooled = await connection.get_raw_connection()
    here = cast(AsyncConnection, _Here(cast(Connection, connection.sync_connection)))
    in_it = cast(ThreadConnection, pooled.dbapi_connection)
    return await in_it.together(lambda: _to_the_end(work(here)))


def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as over:
        return cast(T, over.value)
    work.close()
    raise RuntimeError("Something else than the database was awaited in the database's thread.")
