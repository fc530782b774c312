"""Which rounds the audit has paused: it reopens no others. So far none is known to be paused.

Revision ID: 0004
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    add_column("rounds", sa.Column("audit_epoch", sa.Integer))
