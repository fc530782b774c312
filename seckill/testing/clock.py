"""The clock of gate and ledger in a test, which may let time pass in an instant."""

import time
from typing import Any

from sqlalchemy import event

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.sqlite import SqliteDatabase
from seckill.bootstrap.engine import Engine


class Clock:
    """The machine's clock, plus the time that a test has added."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def move(self, seconds: float) -> None:
        self._ahead_ms += int(seconds * 1000)

    def strftime(self, form: str, _: str) -> str:
        """Replaces SQLite's own function, so that the ledger's `now` is this clock's."""
        now_ms = self.now_ms()
        return str(now_ms // 1000) if form == "%s" else f"{now_ms // 1000 % 60:02}.{now_ms % 1000:03}"


async def go_by(clock: Clock, engine: Engine) -> None:
    """Makes the ledger use this clock from now on."""
    assert isinstance(engine.ledger, SqlLedger)
    database = engine.ledger.database
    assert isinstance(database, SqliteDatabase)
    for connections in (database.readers, database.writers):

        @event.listens_for(connections.sync_engine, "connect")
        def tell(connection: Any, _: object) -> None:
            connection.create_function("strftime", 2, clock.strftime)

        await connections.dispose()  # connections made before still use SQLite's own function
