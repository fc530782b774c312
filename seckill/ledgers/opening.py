"""From an address to a database."""

from collections.abc import Callable, Mapping

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from seckill.errors import StartError
from seckill.ledgers.database import Database
from seckill.ledgers.mysql import MysqlDatabase
from seckill.ledgers.postgres import PostgresDatabase
from seckill.ledgers.sql import SqlLedger
from seckill.ledgers.sqlite import SqliteDatabase

_DATABASES: Mapping[str, Callable[[URL], Database]] = {
    "sqlite": SqliteDatabase,
    "sqlite+aiosqlite": SqliteDatabase,
    "postgres": PostgresDatabase,
    "postgresql": PostgresDatabase,
    "postgresql+asyncpg": PostgresDatabase,
    "mysql": MysqlDatabase,
    "mysql+aiomysql": MysqlDatabase,
    "mariadb": MysqlDatabase,
    "mariadb+aiomysql": MysqlDatabase,
}
_EXAMPLES = "sqlite:///FOLDER/NAME.db, postgresql://USER@HOST/NAME or mysql://USER@HOST/NAME"


def open_ledger(url: str) -> SqlLedger:
    """Connects to nothing yet. Raises StartError for an address that cannot be meant."""
    return SqlLedger(open_database(url))


def open_database(url: str) -> Database:
    # The address may hold a password, so no message repeats it.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StartError(f"The database address cannot be read: write {_EXAMPLES}.") from None
    choose = _DATABASES.get(parsed.drivername)
    if choose is None:
        raise StartError(f"There is no ledger for {parsed.drivername} databases: use {_EXAMPLES}.")
    return choose(parsed)
