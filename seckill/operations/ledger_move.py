"""Moves a ledger that outgrows its file to a database server, with all ids and keys."""

import contextlib
from functools import partial

from seckill.backends.redis.board import RedisBoard
from seckill.backends.sql.database_choice import open_database
from seckill.backends.sql.migration import migrate
from seckill.backends.sql.move import Tell, move, require_room
from seckill.backends.sql.schema import Schema, schema_of
from seckill.backends.sql.sqlite import SqliteDatabase
from seckill.errors import SettingsError, StartError

# Every process reports each second, so one that is silent for this long is gone.
SILENT_MS = 5_000


async def move_ledger(source_url: str, target_url: str, gate_url: str, tell: Tell) -> dict[str, int]:
    """Moves the ledger and returns how many rows each table has. `gate_url`: empty if no process can be running."""
    async with contextlib.AsyncExitStack() as stack:
        source, target = open_database(source_url), open_database(target_url)
        stack.push_async_callback(source.close)
        stack.push_async_callback(target.close)
        if not isinstance(source, SqliteDatabase):
            raise SettingsError(["The ledger is on a server already: move it with the server's own tools."])
        if isinstance(target, SqliteDatabase):
            raise SettingsError(["--to must be a database server: write postgresql://… or mysql://…."])
        if source.is_new():
            raise StartError(f"There is no ledger at {source.path}: name the folder of `seckill up` with --data.")
        await _nobody_runs(gate_url)
        if await schema_of(source_url) is Schema.AHEAD:
            raise StartError(
                "The ledger was set up by a newer version of seckill: install that version or a later one."
            )
        await migrate(source_url)
        await require_room(source, target)  # comes first: a database that is not ours must not be migrated either
        await migrate(target_url)
        return await move(source, target, tell, partial(_nobody_runs, gate_url))


async def _nobody_runs(gate_url: str) -> None:
    if not gate_url:
        return
    board = RedisBoard(gate_url)
    try:
        now_ms, seen = await board.reports()
    finally:
        await board.close()
    for each in seen:
        if now_ms - each.at_ms < SILENT_MS:
            raise StartError(
                f"The {each.report.role} on {each.report.host} (pid {each.report.pid}) is running: stop every role "
                "first, and then run the move again."
            )
