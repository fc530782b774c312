"""Reading a ledger's database: connections that cannot write, and snapshots."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import URL, BigInteger, ColumnElement, Connection, event, literal_column, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from seckill.errors import LedgerUnavailable, StartError

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

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with asyncio.timeout(WITHIN_S), self._engine.begin() as connection:
                yield connection
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
    event.listen(engine.sync_engine, "begin", _begin)
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
