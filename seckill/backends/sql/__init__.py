"""The ledger: sales and orders in an SQL database. `migration` is apart: only that needs Alembic."""

from seckill.backends.sql.database_choice import make_ahead, open_history, open_ledger
from seckill.backends.sql.ledger import SqlLedger

__all__ = ["SqlLedger", "make_ahead", "open_history", "open_ledger"]
