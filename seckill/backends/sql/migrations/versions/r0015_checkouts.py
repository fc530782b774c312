"""Pages of a payment provider's on which orders can be paid.

Revision ID: 0015
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, create_index, create_table

revision = "0015"
down_revision = "0014"

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "checkouts",
        sa.Column("id", Key, nullable=False),
        sa.Column("order_id", Key, nullable=False),
        sa.Column("provider", sa.String(32), nullable=False),
        sa.Column("ref", sa.String(255), nullable=False),
        sa.Column("on_phone", sa.Integer, nullable=False),
        sa.Column("address", LongText, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_ms", sa.BigInteger),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_checkouts"),
        sa.UniqueConstraint("provider", "ref", "on_phone", name="uq_checkouts_provider_ref_on_phone"),
    )
    create_index("ix_checkouts_order_id", "checkouts", ["order_id"])
    create_index("ix_checkouts_due", "checkouts", ["next_ms"], where="next_ms IS NOT NULL")
