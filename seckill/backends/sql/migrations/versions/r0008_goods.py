"""What a sale sells, as its page shows it; sales that buyers are not to know of yet; announcements that are repeated;
and what a shop says of a claim.

Every sale so far is published.

Revision ID: 0008
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, add_column, create_index, create_table

revision = "0008"
down_revision = "0007"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    for table in ("sales", "rounds"):
        add_column(table, sa.Column("published", sa.Integer, nullable=False, server_default=sa.text("1")))
    add_column("sales", sa.Column("external_id", sa.String(128)))
    add_column("sales", sa.Column("list_price_cents", sa.BigInteger))
    for text in ("metadata", "description", "images", "terms_url", "delivery", "return_url"):
        add_column("sales", sa.Column(text, LongText))
    create_index("ix_sales_external_id", "sales", ["external_id"])
    add_column("orders", sa.Column("metadata", LongText))
    create_table(
        "sale_keys",
        sa.Column("key_digest", sa.String(64), nullable=False),
        sa.Column("body_digest", sa.String(64), nullable=False),
        sa.Column("sale_id", _KEY, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key_digest", name="pk_sale_keys"),
        sa.ForeignKeyConstraint(["sale_id"], ["sales.id"], name="fk_sale_keys_sale_id"),
    )
