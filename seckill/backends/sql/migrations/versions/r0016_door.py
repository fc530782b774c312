"""Who may press in a sale, and what they must bring. Sales that were announced before are open to everybody.

Revision ID: 0016
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, add_column, create_table

revision = "0016"
down_revision = "0015"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    add_column("sales", sa.Column("door", LongText))
    add_column("sales", sa.Column("list_version", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    add_column("sales", sa.Column("list_buyers", sa.Integer, nullable=False, server_default=sa.text("0")))
    add_column("rounds", sa.Column("early_s", sa.Integer, nullable=False, server_default=sa.text("0")))
    create_table(
        "audience_parts",
        sa.Column("sale_id", _KEY, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("digests", LongText, nullable=False),
        sa.PrimaryKeyConstraint("sale_id", "first", name="pk_audience_parts"),
        sa.ForeignKeyConstraint(["sale_id"], ["sales.id"], name="fk_audience_parts_sale_id"),
    )
