"""The ledger: sales and orders in an SQL database. `migrating` is apart: only that needs Alembic."""

from seckill.ledgers.opening import open_ledger
from seckill.ledgers.sql import SqlLedger

__all__ = ["SqlLedger", "open_ledger"]
