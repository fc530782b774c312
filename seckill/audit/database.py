"""Reads a ledger's database through connections that cannot write, and in snapshots."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import (
    ARRAY,
    URL,
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Row,
    Select,
    String,
    any_,
    bindparam,
    event,
    func,
    literal_column,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from seckill.errors import LedgerUnavailable, StartError
from seckill.extras import explained

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
AnySelect: TypeAlias = Select[*tuple[Any, ...]]
AnyUnion: TypeAlias = CompoundSelect[*tuple[Any, ...]]

# Generous: even a pass over many orders consists of statements that each take much less.
WITHIN_S = 30.0
CONNECTIONS = 2

_SQLITE_NOW_MS = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))"
_POSTGRES_NOW_MS = "CAST(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint)"
_MYSQL_NOW_MS = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
_AWAY = (DBAPIError, OSError, TimeoutError)
_NOW_MS = {"sqlite": _SQLITE_NOW_MS, "postgresql": _POSTGRES_NOW_MS, "mysql": _MYSQL_NOW_MS}
_FAMILIES = {"postgres": "postgresql", "mariadb": "mysql"}  # other names of the same

_POSTGRES_SETTINGS = {
    "application_name": "seckill audit",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "jit": "off",
    "statement_timeout": f"{WITHIN_S:.0f}s",
}


class ReadOnlyDatabase:
    """Several statements inside one `snapshot` see the same instant."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            raise StartError("The database address cannot be read: set SECKILL_DATABASE_URL.") from None
        family = parsed.drivername.partition("+")[0]
        self._family = family = _FAMILIES.get(family, family)
        self._away: tuple[type[Exception], ...] = _AWAY
        # `plain` is for single statements, each of which sees one instant anyway.
        if family == "sqlite":
            # Without a transaction there is none to roll back; trying would cost a switch to the thread each time.
            self._plain = _sqlite(parsed, skip_autocommit_rollback=True)
            self._snapshots = _sqlite(parsed)
            event.listen(self._snapshots.sync_engine, "begin", _begin)
        elif family in _OPEN:
            with explained():
                self._snapshots = _OPEN[family](parsed)
            self._plain = self._snapshots.execution_options(isolation_level="AUTOCOMMIT")
        else:
            raise StartError(f"There is no audit of {family} databases.")
        if family == "mysql":
            import pymysql  # noqa: PLC0415 (drivers are slow to load, and one is enough)

            # The driver's own errors appear when a connection is given back: the library wraps only statements' errors.
            self._away += (pymysql.MySQLError,)
        self.now_ms: ColumnElement[int] = literal_column(_NOW_MS[family], BigInteger)

    def among(self, column: ColumnElement[int], name: str) -> ColumnElement[bool]:
        """True where the column's value is in the list of integers that `listed` has made of the parameter `name`. The
        statement's text is the same for any number of them."""
        if self._family == "mysql":
            return column.in_(bindparam(name, type_=BigInteger, expanding=True))
        if self._family == "sqlite":
            return column.in_(select(func.json_each(bindparam(name, type_=String)).table_valued("value").c.value))
        return column == any_(bindparam(name, type_=ARRAY(BigInteger)))

    def listed(self, numbers: Sequence[int]) -> object:
        return f"[{','.join(map(str, numbers))}]" if self._family == "sqlite" else list(numbers)

    async def rows(self, statement: AnySelect | AnyUnion, parameters: dict[str, object] | None = None) -> list[AnyRow]:
        async with self._translated(), self._plain.connect() as connection:
            return list(await connection.execute(statement, parameters or {}))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        async with self._translated(), self._snapshots.begin() as connection:
            yield connection

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(WITHIN_S):
                yield
        except self._away as error:
            told = error.orig if isinstance(error, DBAPIError) else error
            said = (str(told) or type(told).__name__).splitlines()[0]
            raise LedgerUnavailable(f"The ledger does not answer ({said}).") from error

    async def close(self) -> None:
        await self._plain.dispose()
        await self._snapshots.dispose()


def _sqlite(url: URL, **options: Any) -> AsyncEngine:
    path = Path(url.database or "").absolute()
    # Opened for writing, because a log that no process has open must be set up first; after that nothing can be
    # written.
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path.as_uri(), query={"mode": "rw", "uri": "true"}),
        connect_args={"isolation_level": None, "timeout": 5.0},
        pool_size=1,
        max_overflow=0,
        hide_parameters=True,
        **options,
    )
    event.listen(engine.sync_engine, "connect", _only_read)
    return engine


def _only_read(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only = ON")
    cursor.execute("PRAGMA wal_autocheckpoint = 0")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _mysql(url: URL) -> AsyncEngine:
    options: dict[str, Any] = {"connect_timeout": 5, "charset": "utf8mb4"}
    if path := url.query.get("unix_socket"):
        options["unix_socket"] = path
    authority = url.query.get("ssl_ca")
    if url.query.get("ssl") == "true" or authority:
        options["ssl"] = ssl.create_default_context(cafile=None if authority is None else str(authority))
    engine = create_async_engine(
        URL.create("mysql+aiomysql", url.username, url.password, url.host, url.port, url.database),
        connect_args=options,
        isolation_level="REPEATABLE READ",  # whose transactions see the instant of their first statement
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "connect", _only_read_mysql)
    return engine


def _only_read_mysql(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("SET SESSION time_zone = '+00:00'")
    cursor.execute("SET SESSION TRANSACTION READ ONLY")
    cursor.close()


def _postgres(url: URL) -> AsyncEngine:
    import asyncpg  # noqa: PLC0415 (as above)

    address = url.set(drivername="postgresql").render_as_string(hide_password=False)

    async def connect() -> Any:
        return await asyncpg.connect(address, timeout=5.0, server_settings=_POSTGRES_SETTINGS)

    return create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, pool_size=CONNECTIONS, max_overflow=0, hide_parameters=True
    )


_OPEN = {"postgresql": _postgres, "mysql": _mysql}
