"""Orders that are set aside are found by their number and by their buyer.

Letters of an earlier version have no buyer: they are found by their number, and dealt with within a minute.

Revision ID: 0005
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column, create_index

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    add_column("dead_letters", sa.Column("user_id", sa.String(128)))
    create_index("ix_dead_letters_order_id", "dead_letters", ["order_id"])
    create_index("ix_dead_letters_user_id_next_ms", "dead_letters", ["user_id", "next_ms"])
