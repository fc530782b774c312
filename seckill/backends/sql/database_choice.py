"""Chooses the database module for an address."""

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from seckill.backends.sql.database import Database
from seckill.backends.sql.history import SqlHistory
from seckill.backends.sql.ledger import SqlLedger
from seckill.errors import StartError
from seckill.extras import explained

_EXAMPLES = "sqlite:///FOLDER/NAME.db, postgresql://USER@HOST/NAME or mysql://USER@HOST/NAME"


# By address, and by database: see `make_ahead`.
_made_ahead: dict[str, SqlLedger] = {}
_histories: dict[Database, SqlHistory] = {}


def open_ledger(url: str) -> SqlLedger:
    """Does not connect yet. Raises StartError for an invalid address."""
    return _made_ahead.pop(url, None) or SqlLedger(open_database(url))


def open_history(database: Database) -> SqlHistory:
    return _histories.pop(database, None) or SqlHistory(database)


def make_ahead(url: str) -> None:
    """Prepares a ledger and its history for processes that will be forked from this one. In each of them, the first
    caller that opens this address gets these, whose hundreds of statements stay in shared memory. Raises StartError."""
    ledger = _made_ahead[url] = SqlLedger(open_database(url))
    _histories[ledger.database] = SqlHistory(ledger.database)


def open_database(url: str) -> Database:
    # The address may hold a password, so no message repeats it.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StartError(f"The database address cannot be read: write {_EXAMPLES}.") from None
    with explained():
        return _chosen(parsed)


def _chosen(url: URL) -> Database:
    """Loads only the chosen module, since each one loads a driver and a dialect."""
    match url.drivername:
        case "sqlite" | "sqlite+aiosqlite":
            from seckill.backends.sql.sqlite import SqliteDatabase

            return SqliteDatabase(url)
        case "postgres" | "postgresql" | "postgresql+asyncpg":
            from seckill.backends.sql.postgres import PostgresDatabase

            return PostgresDatabase(url)
        case "mysql" | "mysql+aiomysql" | "mariadb" | "mariadb+aiomysql":
            from seckill.backends.sql.mysql import MysqlDatabase

            return MysqlDatabase(url)
        case other:
            raise StartError(f"There is no ledger for {other} databases: use {_EXAMPLES}.")
