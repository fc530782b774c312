"""Figures of rounds over time, and alarms, for operators who look back.

Revision ID: 0023
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, create_index, create_table

revision = "0023"
down_revision = "0021"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "figures",
        sa.Column("round_id", _KEY, nullable=False, autoincrement=False),
        sa.Column("at_s", sa.BigInteger, nullable=False),
        sa.Column("fine", sa.Integer, nullable=False),
        sa.Column("available", sa.BigInteger),
        sa.Column("accepted", sa.BigInteger),
        sa.Column("persisted", sa.BigInteger, nullable=False),
        sa.Column("refused", LongText, nullable=False),
        sa.Column("backlog", sa.BigInteger, nullable=False),
        sa.Column("lag_ms", sa.BigInteger, nullable=False),
        sa.Column("p99_us", sa.BigInteger),
        sa.Column("unpaid", sa.BigInteger),
        sa.Column("paid", sa.BigInteger),
        sa.Column("taken_cents", sa.BigInteger),
        sa.Column("waiting", sa.BigInteger),
        sa.PrimaryKeyConstraint("round_id", "at_s", name="pk_figures"),
    )
    create_index("ix_figures_fine_at_s", "figures", ["fine", "at_s"])
    create_table(
        "alarms",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("dedup_key", sa.String(32), nullable=False),
        sa.Column("what", sa.String(255), nullable=False),
        sa.Column("facts", LongText, nullable=False),
        sa.Column("sale_id", _KEY),
        sa.Column("lasting", sa.Integer, nullable=False),
        sa.Column("open_slot", sa.Integer),
        sa.Column("raised_ms", sa.BigInteger, nullable=False),
        sa.Column("told_ms", sa.BigInteger, nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("resolved_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_alarms"),
        sa.UniqueConstraint("dedup_key", "open_slot", name="uq_alarms_dedup_key_open_slot"),
        sqlite_autoincrement=True,
    )
    create_index("ix_alarms_told_ms", "alarms", ["told_ms"])
    create_index("ix_alarms_sale_id_raised_ms", "alarms", ["sale_id", "raised_ms"])
    # What happened to one sale, without reading all that happened to the others' orders.
    of_sale = ["sale_id", "type", "id"]
    create_index("ix_feed_of_sale", "feed", of_sale, where="sale_id IS NOT NULL", instead=of_sale)
