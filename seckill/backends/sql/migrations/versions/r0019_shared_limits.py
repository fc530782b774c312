"""Limits that several users, or several sales, share. Sales that were announced before share none.

Revision ID: 0019
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column, create_index

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    add_column("sales", sa.Column("limit_by", sa.String(64)))
    add_column("rounds", sa.Column("limit_group", sa.String(64)))
    create_index("ix_rounds_limit_group", "rounds", ["limit_group"])
    add_column("orders", sa.Column("person", sa.String(128)))
