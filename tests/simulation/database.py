"""SQLite as the ledger has it, with its own SQL, but without a thread: a statement is done at once, when its turn
comes. What happens on the way there and back is for the simulation to say, and so is the time of the database."""

import asyncio
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

from sqlalchemy import Connection, CursorResult, Executable, NullPool, ScalarResult, create_engine

from seckill.backends.memory.store import Way
from seckill.backends.sql.history import SqlHistory
from seckill.backends.sql.ledger import SqlLedger
from seckill.backends.sql.migration import migrate
from seckill.backends.sql.sqlite import LOCK_WAIT_S, SqliteDatabase
from seckill.backends.sql.sqlite_writer_lock import BEGIN, WriterBusy
from tests.simulation.processes import Process, this_process


class Cut(sqlite3.OperationalError):
    sqlite_errorcode = sqlite3.SQLITE_IOERR


class Around(Protocol):
    """The surroundings of the database."""

    def db_now_ms(self) -> int: ...

    async def to_database(self, process: Process, what: str, way: Way) -> None:
        """Raises ConnectionError if the connection breaks."""

    def did(self, process: Process, what: str) -> None:
        """A statement has been executed."""

    def committed(self, process: Process) -> None:
        """A process has written, and others can see it."""


class DatabaseFile:
    """One database, as all processes of a run see it."""

    def __init__(self, folder: Path, around: Around) -> None:
        self.path = folder / "ledger.db"
        self.path.write_bytes(_template())
        self.around = around
        self.writer: Session | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._idle: dict[bool, list[Connection]] = {True: [], False: []}
        self._made: list[Connection | sqlite3.Connection] = []

    def take(self, *, writes: bool) -> Connection:
        if self._idle[writes]:
            return self._idle[writes].pop()
        _FRESH.append(self._open(writes=writes))
        connection = _ENGINE.connect()
        self._made.append(connection)
        return connection

    def put_back(self, connection: Connection, *, writes: bool) -> None:
        self._idle[writes].append(connection)

    def reader(self) -> sqlite3.Connection:
        """Returns a connection for a reader that is not part of the simulation."""
        raw = self._open(writes=False)
        self._made.append(raw)
        return raw

    def _open(self, *, writes: bool) -> "RawConnection":
        raw = sqlite3.connect(self.path, isolation_level=None, factory=RawConnection)
        raw.create_function("strftime", 2, self._strftime)
        raw.execute("PRAGMA foreign_keys = ON" if writes else "PRAGMA query_only = ON")
        raw.execute("PRAGMA synchronous = OFF")  # the machine itself does not fail here
        return raw

    def _strftime(self, form: str, _: str) -> str:
        """Instead of SQLite's own, so that its `now` is ours."""
        now_ms = self.around.db_now_ms()
        return str(now_ms // 1000) if form == "%s" else f"{now_ms // 1000 % 60:02}.{now_ms % 1000:03}"

    async def lock(self, session: "Session") -> None:
        """Like the lock file: one writer at a time over all processes, and no writer waits for ever."""
        deadline_s = asyncio.get_running_loop().time() + LOCK_WAIT_S
        while self.writer is not None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                async with asyncio.timeout_at(deadline_s):
                    await turn
            except TimeoutError:
                raise WriterBusy("somebody else is writing") from None
        self.writer = session

    def unlock(self, session: "Session") -> None:
        if self.writer is session:
            self.writer = None
            waiting, self._waiting = self._waiting, []
            for turn in waiting:
                if not turn.done():
                    turn.set_result(None)

    def close(self) -> None:
        for connection in self._made:
            connection.close()


class Session:
    """Stands for a connection of the ledger's: SQLAlchemy executes its statements, but without its way of waiting."""

    def __init__(self, *, writes: bool) -> None:
        process = this_process()
        assert process is not None, "only processes use the database"
        self._process = process
        self._file = process.file
        self._writes = writes
        self._connection: Connection | None = None
        self._broken = False
        self._changes = 0

    async def __aenter__(self) -> Self:
        self._connection = self._file.take(writes=self._writes)
        self._process.sessions[self] = None
        if self._writes:
            try:
                await self._begin()
            except BaseException:
                self.abandon()
                raise
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and self._writes:
                await self._commit()
        finally:
            self.abandon()

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[*tuple[Any, ...]]:
        await self._cross("statement", Way.THERE)
        found = self._open().execute(statement, parameters)
        self._file.around.did(self._process, found.context.statement or "")
        return found

    async def exec_driver_sql(self, statement: str, parameters: Any = None) -> CursorResult[*tuple[Any, ...]]:
        await self._cross("statement", Way.THERE)
        found = self._open().exec_driver_sql(statement, parameters)
        self._file.around.did(self._process, statement)
        return found

    async def scalar(self, statement: Executable, parameters: Any = None) -> Any:
        return (await self.execute(statement, parameters)).scalar()

    async def scalars(self, statement: Executable, parameters: Any = None) -> ScalarResult[Any]:
        return (await self.execute(statement, parameters)).scalars()

    def _open(self) -> Connection:
        if self._connection is None or self._broken:
            raise Cut("the connection is broken")
        return self._connection

    async def _begin(self) -> None:
        await self._cross(BEGIN, Way.THERE)
        await self._file.lock(self)
        raw = _raw(self._open())
        raw.execute(BEGIN)
        self._changes = raw.total_changes

    async def _commit(self) -> None:
        connection = self._open()
        await self._cross("COMMIT", Way.THERE)
        connection.commit()
        self._file.unlock(self)
        if _raw(connection).total_changes != self._changes:
            self._file.around.committed(self._process)
        await self._cross("COMMIT", Way.BACK)

    async def _cross(self, what: str, way: Way) -> None:
        try:
            await self._file.around.to_database(self._process, what, way)
        except ConnectionError as error:
            self.abandon()
            self._broken = True
            raise Cut(str(error)) from None

    def abandon(self) -> None:
        """Nothing of an open transaction remains."""
        if self._connection is not None:
            self._connection.rollback()
            _raw(self._connection).rollback()  # also one in which nothing was executed yet
            self._file.put_back(self._connection, writes=self._writes)
        self._file.unlock(self)
        self._connection = None
        self._process.sessions.pop(self, None)


class Whole(sqlite3.Cursor):
    """Reads everything at once: what is written before its rows are looked at does not belong to it."""

    def execute(self, sql: str, parameters: Any = ()) -> Self:
        super().execute(sql, parameters)
        self._rows = iter(super().fetchall())
        return self

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


class RawConnection(sqlite3.Connection):
    def cursor(self, factory: Any = Whole) -> Any:
        return super().cursor(factory)


# One engine for all runs: what SQLAlchemy has once worked out, it need not work out again.
_FRESH: list[RawConnection] = []
_ENGINE = create_engine(
    "sqlite+pysqlite:///simulated", poolclass=NullPool, pool_reset_on_return=None, creator=_FRESH.pop
)


def _raw(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


class _Sessions:
    """Stands for an engine, with what the ledger uses of one."""

    def connect(self) -> Session:
        return Session(writes=False)

    def begin(self) -> Session:
        return Session(writes=True)


class SimulatedDatabase(SqliteDatabase):
    writers: Any = _Sessions()
    readers: Any = _Sessions()

    def __init__(self) -> None:
        """The file is that of the process that asks."""

    async def together(self, connection: Any, work: Any) -> Any:
        """There is no thread."""
        return await work(connection)

    async def close(self) -> None:
        """There is nothing to close."""


@cache
def simulated_ledger() -> SqlLedger:
    """One for all runs: it keeps nothing but its statements."""
    return SqlLedger(SimulatedDatabase())


@cache
def simulated_history() -> SqlHistory:
    return SqlHistory(simulated_ledger().database)


@cache
def _template() -> bytes:
    """A database as migrations make it, in WAL mode."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        asyncio.run(migrate(f"sqlite:///{path}"))
        return path.read_bytes()


class _Nothing:
    """No troubles, no time."""

    def db_now_ms(self) -> int:
        return 0

    async def to_database(self, process: Process, what: str, way: Way) -> None:
        pass

    def did(self, process: Process, what: str) -> None:
        pass

    def committed(self, process: Process) -> None:
        pass


@cache
def prepare() -> None:
    """Lets SQLAlchemy ask the questions of its first connection before the first run, so that all runs are alike."""
    with tempfile.TemporaryDirectory() as folder:
        file = DatabaseFile(Path(folder), _Nothing())
        file.take(writes=False)
        file.close()
