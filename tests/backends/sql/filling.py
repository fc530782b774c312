"""A hundred thousand orders in a moment: written by the database itself, past the code under test."""

from sqlalchemy import text

from seckill.backends.sql import SqlLedger
from seckill.domain.sale import Round
from tests.backends.sql.making import number

_ORDERS = """
INSERT INTO orders (id, round_id, sale_id, user_id, quantity, state, active_slot, slot, request_id, epoch,
                    price_cents, currency, created_ms, recorded_ms, expires_ms)
WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < CAST(:count AS INTEGER))
SELECT CAST(:first AS BIGINT) + i, :round, :sale, 'buyer-' || i, 1, 'unpaid', 1, 1, '', :epoch, 500, 'CNY', 1, 1,
       CASE WHEN i <= CAST(:overdue AS INTEGER) THEN i ELSE 4102444800000 END
FROM numbers
"""
_ORDERS_OF_MARIADB = """
INSERT INTO orders (id, round_id, sale_id, user_id, quantity, state, active_slot, slot, request_id, epoch,
                    price_cents, currency, created_ms, recorded_ms, expires_ms)
SELECT :first + seq, :round, :sale, concat('buyer-', seq), 1, 'unpaid', 1, 1, '', :epoch, 500, 'CNY', 1, 1,
       CASE WHEN seq <= :overdue THEN seq ELSE 4102444800000 END
FROM seq_1_to_1000000 WHERE seq <= :count
"""
_COUNTED = "UPDATE rounds SET sold = sold + :count, written = written + :count WHERE id = :round"


async def fill(ledger: SqlLedger, round_: Round, count: int, overdue: int = 0) -> None:
    """Unpaid orders of `buyer-1`, `buyer-2` and so on with the counters 1, 2, …; the first ones are overdue."""
    facts = {
        "count": count,
        "first": int(number(round_, 0)),
        "round": round_.id,
        "sale": round_.sale_id,
        "epoch": round_.epoch,
        "overdue": overdue,
    }
    kind = ledger.database.writers.dialect.name
    async with ledger.database.writers.begin() as connection:
        await connection.execute(text(_ORDERS_OF_MARIADB if kind == "mysql" else _ORDERS), facts)
        await connection.execute(text(_COUNTED), {"count": count, "round": round_.id})
    if kind != "sqlite":
        async with ledger.database.readers.connect() as connection:
            # As the server does by itself after a while.
            await connection.execute(text("ANALYZE TABLE orders" if kind == "mysql" else "ANALYZE orders"))
