"""The feed of everything that is committed. It begins here: what happened before is in the tables only.

Revision ID: 0007
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, create_index, create_table, insert_row

revision = "0007"
down_revision = "0006"

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "feed",
        sa.Column("id", Key, nullable=False),
        sa.Column("first_cursor", sa.BigInteger),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("numbers", LongText),
        sa.Column("sale_id", Key),
        sa.Column("round_id", Key),
        sa.Column("facts", LongText),
        sa.PrimaryKeyConstraint("id", name="pk_feed"),
        sa.UniqueConstraint("first_cursor", name="uq_feed_first_cursor"),
        sqlite_autoincrement=True,
    )
    create_index("ix_feed_waiting", "feed", ["id"], where="first_cursor IS NULL", instead=["first_cursor", "id"])
    # Cursors are given out by changing this row, so it has to be there.
    insert_row("meta", name="feed", value="0")
