"""Sales that give codes, and the pools that the codes are taken from. No sale so far gives any.

Revision ID: 0013
"""

import sqlalchemy as sa
from alembic import op

from seckill.backends.sql.migration_steps import add_column, create_index, create_table

revision = "0013"
down_revision = "0012"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    add_column("sales", sa.Column("vouchers", sa.Integer, nullable=False, server_default=sa.text("0")))
    add_column("rounds", sa.Column("covered", sa.Integer, nullable=False, server_default=sa.text("1")))
    create_table(
        "voucher_uploads",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("sale_id", _KEY, nullable=False),
        sa.Column("codes", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("touched_ms", sa.BigInteger, nullable=False),
        sa.Column("complete_ms", sa.BigInteger),
        sa.Column("given_up_ms", sa.BigInteger),
        sa.CheckConstraint("complete_ms IS NULL OR given_up_ms IS NULL", name=op.f("ck_voucher_uploads_fate")),
        sa.PrimaryKeyConstraint("id", name="pk_voucher_uploads"),
        sa.ForeignKeyConstraint(["sale_id"], ["sales.id"], name="fk_voucher_uploads_sale_id"),
        sqlite_autoincrement=True,
    )
    create_index("ix_voucher_uploads_sale_id", "voucher_uploads", ["sale_id"])
    create_index(
        "ix_voucher_uploads_open",
        "voucher_uploads",
        ["id"],
        where="complete_ms IS NULL",
        instead=["complete_ms", "id"],
    )
    create_table(
        "vouchers",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("sale_id", _KEY, nullable=False),
        sa.Column("upload_id", _KEY, nullable=False),
        sa.Column("line", sa.Integer, nullable=False),
        sa.Column("code", sa.String(128), nullable=False),
        sa.Column("order_id", _KEY),
        sa.Column("given_ms", sa.BigInteger),
        sa.Column("shown_ms", sa.BigInteger),
        sa.Column("redeemed_ms", sa.BigInteger),
        sa.Column("void_ms", sa.BigInteger),
        sa.CheckConstraint(
            "order_id IS NOT NULL OR (redeemed_ms IS NULL AND void_ms IS NULL)", name=op.f("ck_vouchers_owner")
        ),
        sa.PrimaryKeyConstraint("id", name="pk_vouchers"),
        sa.UniqueConstraint("code", name="uq_vouchers_code"),
    )
    create_index("ix_vouchers_order_id", "vouchers", ["order_id"])
    create_index(
        "ix_vouchers_free",
        "vouchers",
        ["upload_id", "id"],
        where="order_id IS NULL",
        instead=["upload_id", "order_id", "id"],
    )
