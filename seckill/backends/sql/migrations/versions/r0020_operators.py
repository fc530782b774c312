"""Operators with keys of their own, the record of what they change, and buyers who may not buy.

Revision ID: 0020
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, create_index, create_table, insert_row

revision = "0020"
down_revision = "0019"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "operator_keys",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(64), nullable=False),
        sa.Column("expires_ms", sa.BigInteger),
        sa.Column("revoked_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_operator_keys"),
    )
    create_table(
        "buyer_standings",
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("blocked_ms", sa.BigInteger),
        sa.Column("reason", sa.String(255)),
        sa.Column("blocked_by", sa.String(64)),
        sa.Column("tokens_before_s", sa.BigInteger),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_buyer_standings"),
    )
    create_index("ix_buyer_standings_changed", "buyer_standings", ["changed"])
    create_table(
        "operator_record",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("who", sa.String(64), nullable=False),
        sa.Column("what", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("sale_id", _KEY),
        sa.Column("before", LongText),
        sa.Column("after", LongText),
        sa.Column("why", sa.String(255)),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_operator_record"),
        sqlite_autoincrement=True,
    )
    create_index("ix_operator_record_at_ms", "operator_record", ["at_ms"])
    create_index("ix_operator_record_sale_id_id", "operator_record", ["sale_id", "id"])
    create_index("ix_operator_record_who_id", "operator_record", ["who", "id"])
    insert_row("meta", name="access", value="0")
