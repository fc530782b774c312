"""Moves the ledger from SQLite to a database server."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from seckill.backends.sql.move import Tell
from seckill.cli.async_command import run, until_stopped
from seckill.cli.command_settings import environment, with_data_folder
from seckill.local.data_folder import DataFolder
from seckill.loops import Stop
from seckill.operations.ledger_move import move_ledger

Target = Annotated[str, Parameter(help="Address of the new database: postgresql://… or mysql://….")]


def move(*, to: Target, data: Path | None = None) -> None:
    """Copy the ledger from SQLite to PostgreSQL or MariaDB, and compare every row. Stop everything first.

    Orders, ids and keys stay as they are. The database that it goes to must be there and be empty. Interrupted, it is
    simply run again. The old ledger stays, marked so that nothing starts on it any more.

    Parameters
    ----------
    data
        The data folder, if not the usual one.
    """
    settings = environment(data=data)
    embedded = not settings.redis_url
    settings = with_data_folder(settings)

    async def main(stop: Stop) -> dict[str, int]:
        with _progress() as tell:
            gate_url = "" if embedded else settings.redis_url
            return await until_stopped(stop, move_ledger(settings.database_url, to, gate_url, tell))

    with DataFolder.open(settings.data_dir) if settings.data_dir.is_dir() else contextlib.nullcontext():
        rows = run(main, settings)
    sys.stdout.write(
        f"Moved {sum(rows.values())} rows, {rows['orders']} of them orders, and compared them. Now set "
        "SECKILL_DATABASE_URL to the new address wherever seckill runs, start it, and run `seckill audit`.\n"
    )


@contextlib.contextmanager
def _progress() -> Iterator[Tell]:
    shown = Console(stderr=True, highlight=False)
    if not shown.is_terminal:
        yield lambda table, done, total: shown.print(f"{table}: {done} of {total}") if done == total else None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total}")
    with Progress(*columns, TimeElapsedColumn(), console=shown, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda table, done, total: bar.update(task, description=table, completed=done, total=total)
