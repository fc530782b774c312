"""Items: sales that sell several sizes or colours, each with units and a price of its own. Sales that were announced
before have none.

Revision ID: 0012
"""

import sqlalchemy as sa
from alembic import op

from seckill.backends.sql.migration_steps import LongText, add_column, create_table

revision = "0012"
down_revision = "0011"

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "items",
        sa.Column("id", Key, nullable=False),
        sa.Column("sale_id", Key, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("title", sa.String(255), nullable=False),
        sa.Column("units", sa.BigInteger, nullable=False),
        sa.Column("price_cents", sa.BigInteger, nullable=False),
        sa.Column("external_id", sa.String(128)),
        sa.Column("image", LongText),
        sa.CheckConstraint("price_cents >= 0", name=op.f("ck_items_price")),
        sa.PrimaryKeyConstraint("id", name="pk_items"),
        sa.UniqueConstraint("sale_id", "place", name="uq_items_sale_id_place"),
        sa.ForeignKeyConstraint(["sale_id"], ["sales.id"], name="fk_items_sale_id"),
        sqlite_autoincrement=True,
    )
    create_table(
        "round_items",
        sa.Column("round_id", Key, nullable=False),
        sa.Column("item_id", Key, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("sold", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.CheckConstraint("sold >= 0 AND sold <= total", name=op.f("ck_round_items_sold")),
        sa.CheckConstraint("total > 0", name=op.f("ck_round_items_total")),
        sa.PrimaryKeyConstraint("round_id", "item_id", name="pk_round_items"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_round_items_round_id"),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name="fk_round_items_item_id"),
    )
    add_column("rounds", sa.Column("item_count", sa.Integer, nullable=False, server_default=sa.text("0")))
    add_column("orders", sa.Column("item_id", Key))
    add_column("dead_letters", sa.Column("item_id", Key))
