"""SQLite as the ledger has it, with its own SQL, but without a thread: a statement is done at once, when its turn
comes. What happens on the way there and back is for the simulation to say, and so is the time of the database."""

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

from sqlalchemy import NullPool, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from seckill.ledgers.migrating import migrate
from seckill.ledgers.sqlite import LOCK_WAIT_S, SqliteDatabase
from seckill.ledgers.writer_lock import BEGIN, WriterBusy
from seckill.memory_store import Way
from tests.simulation.processes import Process, this_process


class Cut(sqlite3.OperationalError):
    sqlite_errorcode = sqlite3.SQLITE_IOERR


class Around(Protocol):
    """What the database is surrounded by."""

    def db_now_ms(self) -> int: ...

    async def to_database(self, process: Process, what: str, way: Way) -> None:
        """Raises ConnectionError if the connection breaks."""

    def committed(self, process: Process) -> None:
        """Somebody has written, and others can see it."""


class DatabaseFile:
    """One database, as all processes of a run see it."""

    def __init__(self, folder: Path, around: Around) -> None:
        self.path = folder / "ledger.db"
        self.path.write_bytes(_template())
        self.around = around
        self.writer: Session | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._idle: dict[bool, list[sqlite3.Connection]] = {True: [], False: []}
        self._made: list[sqlite3.Connection] = []

    def take(self, *, writes: bool) -> sqlite3.Connection:
        if self._idle[writes]:
            return self._idle[writes].pop()
        raw = sqlite3.connect(self.path, isolation_level=None)
        raw.create_function("strftime", 2, self._strftime)
        raw.execute("PRAGMA foreign_keys = ON" if writes else "PRAGMA query_only = ON")
        raw.execute("PRAGMA synchronous = OFF")  # the machine itself does not fail here
        self._made.append(raw)
        return raw

    def put_back(self, raw: sqlite3.Connection, *, writes: bool) -> None:
        self._idle[writes].append(raw)

    def _strftime(self, form: str, _: str) -> str:
        """Instead of SQLite's own, so that its `now` is ours."""
        now_ms = self.around.db_now_ms()
        return str(now_ms // 1000) if form == "%s" else f"{now_ms // 1000 % 60:02}.{now_ms % 1000:03}"

    async def lock(self, session: "Session") -> None:
        """As the lock file: one writer at a time, over all processes, and nobody waits for ever."""
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
        for raw in self._made:
            raw.close()


class Session:
    """What SQLAlchemy takes for a connection of aiosqlite."""

    def __init__(self, process: Process, file: DatabaseFile, *, writes: bool) -> None:
        self._process = process
        self._file = file
        self._writes = writes
        raw = file.take(writes=writes)
        self._raw: sqlite3.Connection | None = raw
        self._broken = False
        self._changes = raw.total_changes
        process.sessions[self] = None

    @property
    def _connection(self) -> sqlite3.Connection | None:
        return self._raw

    def cursor(self) -> "Cursor":
        return Cursor(self, self._open().cursor())

    def _open(self) -> sqlite3.Connection:
        if self._raw is None or self._broken:
            raise Cut("the connection is broken")
        return self._raw

    async def create_function(self, *_: Any, **__: Any) -> None:
        """SQLAlchemy's own are not used by the ledger."""

    async def run(self, what: str, work: Callable[[], object]) -> None:
        await self._cross(what, Way.THERE)
        if what == BEGIN:
            await self._file.lock(self)
        try:
            self._open()
            work()
        except BaseException:
            if what == BEGIN:
                self._file.unlock(self)
            raise

    async def commit(self) -> None:
        raw = self._open()
        if not raw.in_transaction:
            return
        await self._cross("COMMIT", Way.THERE)
        raw.commit()
        self._file.unlock(self)
        if raw.total_changes != self._changes:
            self._file.around.committed(self._process)
        await self._cross("COMMIT", Way.BACK)

    async def _cross(self, what: str, way: Way) -> None:
        try:
            await self._file.around.to_database(self._process, what, way)
        except ConnectionError as error:
            self._roll_back()
            self._broken = True
            raise Cut(str(error)) from None

    async def rollback(self) -> None:
        self._roll_back()

    def _roll_back(self) -> None:
        if self._raw is not None:
            self._raw.rollback()
        self._file.unlock(self)

    async def close(self) -> None:
        self.abandon()

    def stop(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        """Nothing of an open transaction remains."""
        self._roll_back()
        if self._raw is not None:
            self._file.put_back(self._raw, writes=self._writes)
        self._raw = None
        self._process.sessions.pop(self, None)


class Cursor:
    def __init__(self, session: Session, raw: sqlite3.Cursor) -> None:
        self._session = session
        self._raw = raw

    async def __aenter__(self) -> Self:
        return self

    @property
    def description(self) -> Any:
        return self._raw.description

    @property
    def rowcount(self) -> int:
        return self._raw.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._raw.lastrowid

    async def execute(self, sql: str, parameters: Any = ()) -> None:
        await self._session.run(sql, lambda: self._raw.execute(sql, parameters))

    async def executemany(self, sql: str, parameters: Any) -> None:
        await self._session.run(sql, lambda: self._raw.executemany(sql, parameters))

    async def fetchall(self) -> list[Any]:
        return self._raw.fetchall()

    async def close(self) -> None:
        self._raw.close()


def _engine(*, writes: bool) -> AsyncEngine:
    """One for all runs: what SQLAlchemy has once worked out, it need not work out again."""

    async def connect() -> Session:
        process = this_process()
        assert process is not None, "only processes use the database"
        return Session(process, process.file, writes=writes)

    return create_async_engine("sqlite+aiosqlite:///simulated", poolclass=NullPool, async_creator=connect)


class SimulatedDatabase(SqliteDatabase):
    writers = _engine(writes=True)
    readers = _engine(writes=False)

    def __init__(self) -> None:
        """The file is that of the process that asks."""

    async def close(self) -> None:
        """There is nothing to close."""


event.listen(SimulatedDatabase.writers.sync_engine, "begin", lambda connection: connection.exec_driver_sql(BEGIN))


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

    def committed(self, process: Process) -> None:
        pass


@cache
def prepare() -> None:
    """What SQLAlchemy asks with its first connection must not be part of the first run: all are to be alike."""
    with tempfile.TemporaryDirectory() as folder:
        file = DatabaseFile(Path(folder), _Nothing())
        process = Process("nobody", file)

        async def connect() -> None:
            for engine in (SimulatedDatabase.writers, SimulatedDatabase.readers):
                async with engine.connect():
                    pass

        async def main() -> None:
            await process.start(connect())

        asyncio.run(main())
        file.close()
