"""SQLite connections of which only one writes at a time, across all processes that have the database open.

Before 3.51.3, SQLite can corrupt a database in WAL mode when two connections write and checkpoint at the same
moment (https://sqlite.org/wal.html#walresetbug), and the standard library often brings an older one. API,
worker and keeper all write. So every writing transaction holds an exclusive lock on a file beside the
database, from before its BEGIN until after its COMMIT, because the automatic checkpoint runs inside of
COMMIT. Readers never write and never checkpoint. (Closing the last connection checkpoints too, but only if
SQLite can lock out every other connection.)

The lock is taken and released in the thread that runs the connection's statements, one after another. So it is never
released while a statement still runs, however the waiting task was cancelled. The kernel releases it when the process
dies.
"""

import fcntl
import os
import sqlite3
import time
from pathlib import Path
from typing import Any, Self

from seckill.errors import StartError

BEGIN = "BEGIN IMMEDIATE"

# Waiting starts short, because most transactions take a few milliseconds.
_POLL_S_MIN = 0.0005
_POLL_S_MAX = 0.01


class WriterBusy(sqlite3.OperationalError):
    sqlite_errorcode = sqlite3.SQLITE_BUSY


class WriterLock:
    def __init__(self, path: Path, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._file: int | None = None

    def take(self) -> None:
        """Blocks, so it belongs in a connection's thread. Polls, because the kernel's wait has no limit."""
        deadline_s = time.monotonic() + self._wait_s
        poll_s = _POLL_S_MIN
        file = os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline_s:
                        raise WriterBusy(f"another process has been writing for {self._wait_s:g} s") from None
                    time.sleep(poll_s)
                    poll_s = min(2 * poll_s, _POLL_S_MAX)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def release(self) -> None:
        """Harmless when the lock is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class WritingConnection(sqlite3.Connection):
    def __init__(self, *args: Any, lock: WriterLock, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lock = lock
        # The change to WAL fails when two connections attempt it together: SQLite does not make one wait.
        self.lock.take()
        try:
            (mode,) = super().execute("PRAGMA journal_mode = WAL").fetchone()
        finally:
            self.lock.release()
        if mode != "wal":
            raise StartError(
                f"SQLite cannot use a write-ahead log here (but {mode}); put the database on a local disk."
            )
        super().execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        super().execute("PRAGMA fullfsync = ON")  # on macOS only with this
        super().execute("PRAGMA foreign_keys = ON")

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _WritingCursor)

    def commit(self) -> None:
        try:
            super().commit()
        finally:
            self.release_when_over()

    def rollback(self) -> None:
        try:
            super().rollback()
        finally:
            self.release_when_over()

    def close(self) -> None:
        try:
            # While a caller still has a cursor of an interrupted statement, closing is delayed, and the transaction
            # would stay open until then.
            super().rollback()
            super().close()
        finally:
            self.lock.release()

    def release_when_over(self) -> None:
        # A COMMIT that fails may leave the transaction open; then the ROLLBACK that follows ends it.
        if not self.in_transaction:
            self.lock.release()


class _WritingCursor(sqlite3.Cursor):
    connection: WritingConnection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        if sql != BEGIN:
            return super().execute(sql, parameters)
        self.connection.lock.take()
        try:
            return super().execute(sql)
        finally:
            self.connection.release_when_over()


class ReadingConnection(sqlite3.Connection):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        super().execute("PRAGMA query_only = ON")
        super().execute("PRAGMA wal_autocheckpoint = 0")
