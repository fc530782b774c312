"""A hundred thousand orders in a moment: written by the database itself, past the code under test."""

from sqlalchemy import text

from seckill.domain import Round
from seckill.ledgers import SqlLedger
from tests.ledgers.making import number

_ORDERS = """
INSERT INTO orders (id, round_id, sale_id, user_id, quantity, state, active_slot, slot, request_id, epoch,
                    price_cents, currency, created_ms, recorded_ms, expires_ms)
WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < CAST(:count AS INTEGER))
SELECT CAST(:first AS BIGINT) + i, :round, :sale, 'buyer-' || i, 1, 'unpaid', 1, 1, '', :epoch, 500, 'CNY', 1, 1,
       CASE WHEN i <= CAST(:overdue AS INTEGER) THEN i ELSE 4102444800000 END
FROM numbers
"""
_COUNTED = "UPDATE rounds SET sold = sold + :count, written = written + :count WHERE id = :round"


async def fill(ledger: SqlLedger, round_: Round, count: int, overdue: int = 0) -> None:
    """Unpaid orders of `buyer-1`, `buyer-2` and so on with the counters 1, 2, …; the first so many are overdue."""
    facts = {
        "count": count,
        "first": int(number(round_, 0)),
        "round": round_.id,
        "sale": round_.sale_id,
        "epoch": round_.epoch,
        "overdue": overdue,
    }
    async with ledger.database.writers.begin() as connection:
        await connection.execute(text(_ORDERS), facts)
        await connection.execute(text(_COUNTED), {"count": count, "round": round_.id})
    if ledger.database.writers.dialect.name == "postgresql":
        async with ledger.database.readers.connect() as connection:
            await connection.execute(text("ANALYZE orders"))  # as the server does by itself after a while
