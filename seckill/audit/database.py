"""Reading a ledger's database: connections that cannot write, and snapshots."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
from sqlalchemy import (
    ARRAY,
    URL,
    BigInteger,
    ColumnElement,
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

AnyRow: TypeAlias = Row[*tuple[Any, ...]]
AnySelect: TypeAlias = Select[*tuple[Any, ...]]

# A pass over many orders is made of statements that each take much less.
WITHIN_S = 30.0
CONNECTIONS = 2

_SQLITE_NOW_MS = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))"
_POSTGRES_NOW_MS = "CAST(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint)"
_POSTGRES_SETTINGS = {
    "application_name": "seckill audit",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable read",
    "jit": "off",
    "statement_timeout": f"{WITHIN_S:.0f}s",
}


class ReadOnlyDatabase:
    """Whoever reads several statements inside of one `snapshot` sees one instant."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            raise StartError("The database address cannot be read: set SECKILL_DATABASE_URL.") from None
        family = parsed.drivername.partition("+")[0]
        if family == "sqlite":
            self._engine = _sqlite(parsed)
        elif family in ("postgres", "postgresql"):
            self._engine = _postgres(parsed)
        else:
            raise StartError(f"There is no audit of {family} databases.")
        now_ms = _SQLITE_NOW_MS if family == "sqlite" else _POSTGRES_NOW_MS
        self.now_ms: ColumnElement[int] = literal_column(now_ms, BigInteger)
        self._is_sqlite = family == "sqlite"
        # For single statements, which are of one instant by themselves.
        self._plain = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        if self._is_sqlite:
            self._snapshots = self._engine.execution_options()
            event.listen(self._snapshots.sync_engine, "begin", _begin)
        else:
            self._snapshots = self._engine

    def among(self, column: ColumnElement[int], name: str) -> ColumnElement[bool]:
        """True where the column is in the list of integers that `listed` has made of the parameter `name`. The
        statement's text is the same for any number of them."""
        if self._is_sqlite:
            return column.in_(select(func.json_each(bindparam(name, type_=String)).table_valued("value").c.value))
        return column == any_(bindparam(name, type_=ARRAY(BigInteger)))

    def listed(self, numbers: Sequence[int]) -> object:
        return f"[{','.join(map(str, numbers))}]" if self._is_sqlite else list(numbers)

    async def rows(self, statement: AnySelect, parameters: dict[str, object] | None = None) -> list[AnyRow]:
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
        except (DBAPIError, OSError, TimeoutError) as error:
            told = error.orig if isinstance(error, DBAPIError) else error
            said = (str(told) or type(told).__name__).splitlines()[0]
            raise LedgerUnavailable(f"The ledger does not answer ({said}).") from error

    async def close(self) -> None:
        await self._engine.dispose()


def _sqlite(url: URL) -> AsyncEngine:
    path = Path(url.database or "").absolute()
    # Opened as if to write, because a log that nobody has open now has to be set up first; then nothing can be written.
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path.as_uri(), query={"mode": "rw", "uri": "true"}),
        connect_args={"isolation_level": None, "timeout": 5.0},
        pool_size=CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,
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


def _postgres(url: URL) -> AsyncEngine:
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)

    async def connect() -> Any:
        return await asyncpg.connect(address, timeout=5.0, server_settings=_POSTGRES_SETTINGS)

    return create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, pool_size=CONNECTIONS, max_overflow=0, hide_parameters=True
    )
