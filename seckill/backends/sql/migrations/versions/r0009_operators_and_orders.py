"""Operators cancel and refund orders, also in parts: a payment may go back in several refunds.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

from seckill.backends.sql.migration_steps import add_column, create_index, create_table, drop_unique

revision = "0009"
down_revision = "0008"

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    add_column("orders", sa.Column("refunded_cents", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    add_column("orders", sa.Column("closed_by", sa.String(16)))
    # So far, only late payments were refunded, and always in full.
    op.execute(sa.text("UPDATE orders SET refunded_cents = price_cents WHERE state = 'refunded'"))
    create_index("ix_refunds_payment_id", "refunds", ["payment_id"])
    drop_unique("uq_refunds_payment_id", "refunds", _create_refunds)
    add_column("refunds", sa.Column("action_id", Key))
    add_column("refunds", sa.Column("refused", sa.String(255)))
    create_table(
        "order_actions",
        sa.Column("id", Key, nullable=False),
        sa.Column("order_id", Key, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("amount_cents", sa.BigInteger),
        sa.Column("return_unit", sa.Integer, nullable=False),
        sa.Column("reason", sa.String(255), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_order_actions"),
        sa.UniqueConstraint("request_id", name="uq_order_actions_request_id"),
    )
    create_index("ix_order_actions_order_id", "order_actions", ["order_id"])


def _create_refunds() -> None:
    """As it is without the constraint."""
    create_table(
        "refunds",
        sa.Column("id", Key, nullable=False),
        sa.Column("payment_id", Key, nullable=False),
        sa.Column("amount_cents", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_ms", sa.BigInteger),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("done_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_refunds"),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name="fk_refunds_payment_id"),
        sqlite_autoincrement=True,
    )
    create_index("ix_refunds_due", "refunds", ["next_ms"], where="next_ms IS NOT NULL")
    create_index("ix_refunds_payment_id", "refunds", ["payment_id"])
