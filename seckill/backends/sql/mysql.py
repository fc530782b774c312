"""What is particular to MySQL and MariaDB.

Both get the same SQL: features of only one of them (RETURNING in MariaDB) are not used. So what is tested on one holds
for the other, as far as that can be known without testing.
"""

import re
import ssl
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import aiomysql
import pymysql
from pymysql.constants import CLIENT
from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    FromClause,
    Index,
    Insert,
    Integer,
    String,
    Table,
    Text,
    and_,
    bindparam,
    event,
    exists,
    insert,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError, StatementError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateTable
from sqlalchemy.types import TypeEngine

from seckill.backends.sql.database import AnyRow, AnySelect, ErrorMeaning, NewOrderEntries, Rows
from seckill.backends.sql.mysql_errors import DUPLICATE, meaning
from seckill.backends.sql.statements import InsertOrders, JsonList, first_line
from seckill.errors import LedgerUnavailable, LedgerUnsuitable, StartError

T = TypeVar("T")

WRITERS = 5
READERS = 5
CONNECT_WITHIN_S = 5
# Idle connections are replaced before the server closes them.
IDLE_S = 60
RECYCLE_S = 45

MARIADB_MIN = (10, 6)  # SKIP LOCKED, JSON_TABLE
MYSQL_MIN = (8, 0, 17)  # the same, CHECK, and a collation that does not pad

# Text is compared exactly: case, accents, and trailing spaces count.
COLLATION = {"mariadb": "utf8mb4_nopad_bin", "mysql": "utf8mb4_0900_bin"}

_SESSION = {
    # A value that does not fit is an error and is never cut; so is a missing engine.
    "sql_mode": "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    "time_zone": "'+00:00'",  # in other zones one hour of the year comes twice, and `now_ms` would be ambiguous
    "innodb_lock_wait_timeout": "10",
    "wait_timeout": str(IDLE_S),  # a worker that was stopped in a transaction must not hold up the others for ever
}
_SESSION_OF = {
    "mariadb": {"max_statement_time": "30", "idle_transaction_timeout": "10"},
    "mysql": {"max_execution_time": "30000"},
}

_DUPLICATE_KEY = re.compile(r"for key '(?:[^'.]*\.)?([^'.]*)'$")
_DATA = re.compile(r"'.*'(?= for (?:key|column) )|(?<=value: )'.*'", re.DOTALL)
_ATTEMPTS_MAX = 5


class _JsonTable:
    def __init__(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> None:
        self._name = name
        # A value that does not fit into its column is an error. Without these words it would become NULL.
        of_row = ", ".join(
            f"{column} {_type_name(type_)} PATH '$[{position}]' ERROR ON ERROR"
            for position, (column, type_) in enumerate(columns.items())
        )
        unpacked = f"JSON_TABLE(:{name}, '$[*]' COLUMNS ({of_row})) AS {name}_rows"
        self.table = (
            text(f"SELECT {', '.join(columns)} FROM {unpacked}")  # noqa: S608 (all of it is written by us)
            .bindparams(bindparam(name, type_=JsonList))
            .columns(**columns)
            .subquery(name)
        )

    def bind(self, rows: Sequence[Sequence[object]]) -> dict[str, object]:
        return {self._name: [tuple(row) for row in rows]}


def _type_name(type_: TypeEngine[Any]) -> str:
    if isinstance(type_, Text):
        return "LONGTEXT CHARACTER SET utf8mb4"
    if isinstance(type_, String):
        return f"VARCHAR({type_.length or 255}) CHARACTER SET utf8mb4"
    return "INT" if isinstance(type_, Integer) and not isinstance(type_, BigInteger) else "BIGINT"


class _Missing:
    """MySQL has no "insert, but skip only this key": IGNORE skips every error, and ON DUPLICATE KEY every unique key.
    So all rows are inserted, and if a key exists already, the database undoes this one statement. Then we look up the
    existing rows and insert the rest. Another transaction may add more in between, and so on, but not for ever: each
    one that made us wait has committed."""

    def __init__(
        self, rows_: Rows, table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]
    ) -> None:
        self._key = _name_of(table, key)
        self._known = rows_
        wanted = source.order_by(None).subquery("wanted")
        same = and_(*[table.c[name] == wanted.c[name] for name in key])
        is_known = exists().where(*[self._known.table.c[name] == wanted.c[name] for name in key])
        names = source.selected_columns.keys()
        told = [table.c[name] for name in returning]
        self._insert = insert(table).from_select(names, source)
        self._written = select(*told).join(wanted, same)
        rest = select(*[wanted.c[name] for name in names]).where(~is_known)
        self._insert_rest = insert(table).from_select(names, rest.order_by(*[wanted.c[name] for name in key]))
        self._rest_written = self._written.where(~is_known)
        self._present = select(*[table.c[name] for name in key]).join(wanted, same)

    async def run(self, connection: AsyncConnection, parameters: Mapping[str, object]) -> Sequence[AnyRow]:
        # After a success, only this statement can have inserted the rows.
        statement, tell, all_ = self._insert, self._written, dict(parameters)
        for _ in range(_ATTEMPTS_MAX):
            try:
                inserted = await connection.execute(statement, all_)
            except DBAPIError as error:
                if not self._is_about_key(error):
                    raise
            else:
                return (await connection.execute(tell, all_)).all() if inserted.rowcount else []
            present = (await connection.execute(self._present, parameters)).all()
            statement, tell = self._insert_rest, self._rest_written
            all_ = dict(parameters) | self._known.bind(present)
        raise LedgerUnavailable("Others are writing the same rows to the database again and again, try again.")

    def _is_about_key(self, error: DBAPIError) -> bool:
        number, said = _told(error)
        found = _DUPLICATE_KEY.search(said) if number == DUPLICATE else None
        return found is not None and found[1] == self._key


def _name_of(table: Table, key: Sequence[str]) -> str:
    if [column.name for column in table.primary_key] == list(key):
        return "PRIMARY"
    return next(
        str(each.name) for each in table.constraints if [c.name for c in getattr(each, "columns", ())] == list(key)
    )


class _Changed:
    """Locks the rows, changes them and reads them, because MySQL's UPDATE cannot return anything."""

    def __init__(
        self,
        database: "MysqlDatabase",
        table: Table,
        where: ColumnElement[bool],
        values: Mapping[str, Any],
        returning: Sequence[str],
    ) -> None:
        these = database.among(table.c.id, "locked")
        self._lock = select(table.c.id).where(where).order_by(table.c.id).with_for_update()
        self._update = update(table).where(these).values(values)
        self._read = select(*[table.c[name] for name in returning]).where(these)

    async def run(self, connection: AsyncConnection, parameters: Mapping[str, object]) -> Sequence[AnyRow]:
        locked = {"locked": list(await connection.scalars(self._lock, parameters))}
        if not locked["locked"]:
            return []
        await connection.execute(self._update, locked)
        return (await connection.execute(self._read, locked)).all()


class MysqlDatabase:
    now_ms = literal_column("CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)", BigInteger)
    folder = None

    def __init__(self, url: URL) -> None:
        # READ COMMITTED, because every statement has to see what was committed before it, and because the default,
        # REPEATABLE READ, also locks the gaps between rows: workers that insert side by side would wait and collide.
        # Correctness depends on neither, but on conditions and constraints.
        self.writers = _engine(url, WRITERS, autocommit=False)
        self.readers = _engine(url, READERS, autocommit=True)

    def rows(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> _JsonTable:
        return _JsonTable(name, columns)

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        return column.in_(bindparam(name, type_=column.type, expanding=True))

    def from_the_end(
        self, found: AnySelect, index: Index, value: str, least: ColumnElement[int], below: ColumnElement[int]
    ) -> AnySelect:
        *_, column, key = index.columns
        named = found.with_hint(column.table, f"FORCE INDEX ({index.name})")
        return named.where(column == value, key >= least, key < below).order_by(key.desc())

    def insert_missing(self, table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]) -> _Missing:
        known = self.rows("known", {name: table.c[name].type for name in key})
        return _Missing(known, table, key, source, returning)

    def insert_orders(
        self, source: AnySelect, events_of: Callable[[FromClause], Insert], entries: NewOrderEntries
    ) -> InsertOrders:
        listed = (
            text("SELECT value FROM JSON_TABLE(:listed, '$[*]' COLUMNS (value BIGINT PATH '$' ERROR ON ERROR)) AS n")
            .bindparams(bindparam("listed", type_=JsonList))
            .columns(value=BigInteger)
            .subquery("listed")
        )
        return InsertOrders(self, source, events_of, entries, listed)

    def update_returning(
        self, table: Table, where: ColumnElement[bool], values: Mapping[str, Any], returning: Sequence[str]
    ) -> _Changed:
        return _Changed(self, table, where, values, returning)

    async def together(
        self, connection: AsyncConnection, work: Callable[[AsyncConnection], Coroutine[Any, Any, T]]
    ) -> T:
        return await work(connection)

    def verdict(self, error: Exception) -> ErrorMeaning | None:
        if isinstance(error, StatementError) and isinstance(error.orig, UnicodeEncodeError):  # half a character
            return ErrorMeaning.REFUSED
        return meaning(_told(error)[0])

    def words(self, error: Exception) -> str:
        _, said = _told(error)
        return said.splitlines()[0] if said else first_line(error)

    def is_new(self) -> bool:
        return False

    async def lock_for_migration(self, connection: AsyncConnection) -> None:
        """The lock belongs to the connection, not to the transaction, which ends with every CREATE TABLE."""
        server = _server((await connection.get_raw_connection()).driver_connection)
        limit = "max_statement_time" if server == "mariadb" else "max_execution_time"
        await connection.execute(text(f"SET SESSION {limit} = 0, SESSION lock_wait_timeout = 60"))
        await connection.execute(text("SELECT GET_LOCK(CONCAT('seckill ', MD5(DATABASE())), 600)"))

    async def close(self) -> None:
        await self.readers.dispose()
        await self.writers.dispose()


@compiles(CreateTable, "mysql")
def _create_table(element: CreateTable, compiler: Any, **options: Any) -> str:
    """Adds engine and collation, whatever the defaults of server and database are."""
    server = "mariadb" if compiler.dialect.is_mariadb else "mysql"
    statement: str = compiler.visit_create_table(element, **options).rstrip()
    return f"{statement} ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {COLLATION[server]}"


def _told(error: Exception) -> tuple[int, str]:
    told = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(told, pymysql.MySQLError) and len(told.args) > 1:
        return told.args[0], str(told.args[1])
    return 0, ""


def _engine(url: URL, pool_size: int, *, autocommit: bool) -> AsyncEngine:
    options = {
        "host": url.host or "localhost",
        "port": url.port or 3306,
        "user": url.username,
        "password": url.password or "",
        "db": url.database,
        "charset": "utf8mb4",
        "connect_timeout": CONNECT_WITHIN_S,
        "client_flag": CLIENT.FOUND_ROWS,  # an update counts the rows that it found, even if it changed nothing in them
        "autocommit": autocommit,
        **_options(url),
    }

    async def connect() -> Any:
        return await _connect(options)

    engine = create_async_engine(
        # The same for both kinds of server; the server itself says which one it is.
        "mysql+aiomysql://",
        async_creator=connect,
        pool_size=pool_size,
        max_overflow=0,
        pool_recycle=RECYCLE_S,
        hide_parameters=True,
        **({"isolation_level": "AUTOCOMMIT"} if autocommit else {}),
    )
    event.listen(engine.sync_engine, "checkout", _refuse_if_closed)
    event.listen(engine.sync_engine, "handle_error", _hide_data)
    return engine


def _options(url: URL) -> dict[str, Any]:
    if not url.database:
        raise StartError("The database address names no database: write mysql://USER:PASSWORD@HOST/NAME.")
    query = dict(url.query)
    options: dict[str, Any] = {}
    if path := query.pop("unix_socket", None):
        options["unix_socket"] = path
    authority = query.pop("ssl_ca", None)
    if query.pop("ssl", None) == "true" or authority:
        try:
            options["ssl"] = ssl.create_default_context(cafile=None if authority is None else str(authority))
        except OSError as error:
            raise StartError(f"The file of ssl_ca in the database address cannot be used: {error}.") from error
    if query:
        raise StartError(
            f"The database address has options that are not known here ({', '.join(sorted(query))}): "
            "there are unix_socket=PATH, ssl=true and ssl_ca=FILE."
        )
    return options


def _server(connection: Any) -> str:
    return "mariadb" if "mariadb" in connection.get_server_info().lower() else "mysql"


async def _connect(options: Mapping[str, Any]) -> Any:
    connection = await aiomysql.connect(**options)
    try:
        server = _server(connection)
        _check_version(server, connection.get_server_info())
        settings = ", ".join(f"SESSION {name} = {value}" for name, value in (_SESSION | _SESSION_OF[server]).items())
        async with connection.cursor() as cursor:
            await cursor.execute(f"SET {settings}")
            await cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            await cursor.execute("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")
            _check_flush((await cursor.fetchone())[0])
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(server: str, told: str) -> None:
    version = told.removeprefix("5.5.5-")  # the prefix that old MariaDBs report
    needed = MARIADB_MIN if server == "mariadb" else MYSQL_MIN
    if tuple(int(part) for part in re.findall(r"\d+", version)[: len(needed)]) < needed:
        raise StartError(
            f"The database is {version}, which cannot do what is needed: use MariaDB 10.6, MySQL 8.0.17 or later."
        )


def _check_flush(flush: int) -> None:
    """Checks a server-wide setting, which no connection can set for itself. It may be changed while the server runs;
    connections are replaced often enough (`RECYCLE_S`) to notice that."""
    if flush != 1:
        raise LedgerUnsuitable(
            f"The database runs with innodb_flush_log_at_trx_commit = {flush}, so it may lose what it has committed "
            "when it is killed: set it to 1."
        )


def _hide_data(context: ExceptionContext) -> None:
    """Hides data in errors: the server's messages repeat the value that does not fit, and errors go to logs."""
    for error in (context.original_exception, context.sqlalchemy_exception):
        if error is not None:
            error.args = tuple(_DATA.sub("…", part) if isinstance(part, str) else part for part in error.args)


def _refuse_if_closed(connection: Any, record: object, proxy: object) -> None:
    """The server may have closed the connection while it was idle. That can be seen without asking the server; the pool
    then takes another connection."""
    driver = connection.driver_connection
    if driver.closed or driver._reader.at_eof():
        raise DisconnectionError
