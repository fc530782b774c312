"""What time it is for gate and ledger in a test, which may let it pass in an instant."""

import time
from typing import Any

from sqlalchemy import event

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.sqlite import SqliteDatabase
from seckill.bootstrap.engine import Engine


class Clock:
    """The machine's, plus what a test has added."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def move(self, seconds: float) -> None:
        self._ahead_ms += int(seconds * 1000)

    def strftime(self, form: str, _: str) -> str:
        """In the place of SQLite's own, so that the ledger's `now` is this clock's."""
        now_ms = self.now_ms()
        return str(now_ms // 1000) if form == "%s" else f"{now_ms // 1000 % 60:02}.{now_ms % 1000:03}"


async def go_by(clock: Clock, engine: Engine) -> None:
    """From now on the ledger's time is the clock's."""
    assert isinstance(engine.ledger, SqlLedger)
    database = engine.ledger.database
    assert isinstance(database, SqliteDatabase)
    for connections in (database.readers, database.writers):

        @event.listens_for(connections.sync_engine, "connect")
        def tell(connection: Any, _: object) -> None:
            connection.create_function("strftime", 2, clock.strftime)

        await connections.dispose()  # those that were made before
