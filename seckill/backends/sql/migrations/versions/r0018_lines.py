"""Lines: who waits for units of a round, and in which order they are served. Rounds that are there have none.

Revision ID: 0018
"""

import sqlalchemy as sa
from alembic import op

from seckill.backends.sql.migration_steps import LongText, add_column, create_index, create_table

revision = "0018"
down_revision = "0017"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    add_column("rounds", sa.Column("lined", sa.Integer, nullable=False, server_default=sa.text("0")))
    create_table(
        "round_lines",
        sa.Column("round_id", _KEY, nullable=False, autoincrement=False),
        sa.Column("sale_id", _KEY, nullable=False),
        sa.Column("order_by", sa.String(16), nullable=False),
        sa.Column("seed", sa.String(64)),
        sa.Column("wants_beacon", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("beacon", sa.String(255)),
        sa.Column("closed_ms", sa.BigInteger),
        sa.Column("entries", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("list_hash", sa.String(64)),
        sa.Column("drawn_ms", sa.BigInteger),
        sa.Column("places", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("waiting", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("served", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("paused", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("serve_per_s", sa.Integer),
        sa.Column("lease", sa.String(64)),
        sa.Column("lease_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("round_id", name="pk_round_lines"),
        sa.CheckConstraint("waiting >= 0", name=op.f("ck_round_lines_waiting")),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_round_lines_round_id"),
    )
    create_index(
        "ix_round_lines_waiting", "round_lines", ["round_id"], where="waiting > 0", instead=["waiting", "round_id"]
    )
    create_index(
        "ix_round_lines_to_draw",
        "round_lines",
        ["round_id"],
        where="seed IS NOT NULL AND drawn_ms IS NULL",
        instead=["drawn_ms", "round_id"],
    )
    create_table(
        "line_entries",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("round_id", _KEY, nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("quantity", sa.Integer, nullable=False),
        sa.Column("item_id", _KEY, nullable=False, server_default=sa.text("0")),
        sa.Column("state", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("place", sa.BigInteger),
        sa.Column("joined_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_ms", sa.BigInteger),
        sa.Column("order_id", _KEY),
        sa.Column("reason", sa.String(255)),
        sa.Column("metadata", LongText),
        sa.PrimaryKeyConstraint("id", name="pk_line_entries"),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_line_entries_quantity")),
        sa.UniqueConstraint("round_id", "user_id", name="uq_line_entries_round_id_user_id"),
        sqlite_autoincrement=True,
    )
    create_index(
        "ix_line_entries_round_id_item_id_state_place", "line_entries", ["round_id", "item_id", "state", "place"]
    )
    create_index("ix_line_entries_round_id_place_id", "line_entries", ["round_id", "place", "id"])
