"""What has to have an order before its buyer hears yes. Sales that were announced before said it at the gate.

Revision ID: 0010
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    add_column("sales", sa.Column("confirm", sa.String(16), nullable=False, server_default="gate"))
