"""A wait for buyers who let orders lapse. Sales that were announced before have none.

Revision ID: 0006
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for table in ("sales", "rounds"):
        add_column(table, sa.Column("cool_down_s", sa.Integer, nullable=False, server_default=sa.text("0")))
