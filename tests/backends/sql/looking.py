"""Looking into the ledger's tables directly, past the code under test."""

from pathlib import Path
from typing import Any

from sqlalchemy import Executable, func, select, text

from seckill.backends.sql import SqlLedger
from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.tables import order_events, orders, rounds


async def rows(ledger: SqlLedger, statement: Executable) -> list[AnyRow]:
    async with ledger.database.readers.connect() as connection:
        return list(await connection.execute(statement))


async def sold(ledger: SqlLedger, round_id: int) -> int:
    [(units,)] = await rows(ledger, select(rounds.c.sold).where(rounds.c.id == round_id))
    return int(units)


async def order_rows(ledger: SqlLedger) -> list[AnyRow]:
    return await rows(ledger, select(orders).order_by(orders.c.id))


async def event_rows(ledger: SqlLedger) -> list[AnyRow]:
    return await rows(ledger, select(order_events).order_by(order_events.c.id))


async def counts(ledger: SqlLedger, round_id: int) -> tuple[int, int, int]:
    """Order rows, their units, and what the round says is sold."""
    statement = select(func.count(), func.coalesce(func.sum(orders.c.quantity), 0))
    [(number, units)] = await rows(ledger, statement.where(orders.c.round_id == round_id))
    return int(number), int(units), await sold(ledger, round_id)


async def write(ledger: SqlLedger, statement: str | Executable, **parameters: Any) -> None:
    wanted = text(statement) if isinstance(statement, str) else statement
    async with ledger.database.writers.begin() as connection:
        await connection.execute(wanted, parameters)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def now_ms(ledger: SqlLedger) -> int:
    [(now,)] = await rows(ledger, select(ledger.database.now_ms))
    return int(now)
