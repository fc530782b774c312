"""Sales over several lanes. Every sale and round so far has one.

Revision ID: 0002
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for table in ("sales", "rounds"):
        add_column(table, sa.Column("lanes", sa.Integer, nullable=False, server_default=sa.text("1")))
