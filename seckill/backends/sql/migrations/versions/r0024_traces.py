"""What an order is traced under. Orders that were written before are not traced.

Revision ID: 0024
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    add_column("orders", sa.Column("trace", sa.String(55)))
