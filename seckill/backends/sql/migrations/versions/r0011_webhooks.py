"""Webhooks: where events are sent to, how far each endpoint is in the feed, and the deliveries that wait.

Revision ID: 0011
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, create_index, create_table

revision = "0011"
down_revision = "0010"

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "webhooks",
        sa.Column("id", Key, nullable=False),
        sa.Column("url", LongText, nullable=False),
        sa.Column("types", LongText, nullable=False),
        sa.Column("sale_id", Key),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("enabled", sa.Integer, nullable=False),
        sa.Column("disabled_by", sa.String(16)),
        sa.Column("secret", sa.String(128), nullable=False),
        sa.Column("old_secret", sa.String(128)),
        sa.Column("old_secret_ms", sa.BigInteger),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("delivered_ms", sa.BigInteger),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("failing_ms", sa.BigInteger),
        sa.Column("retry_ms", sa.BigInteger),
        sa.Column("missed_ms", sa.BigInteger),
        sa.Column("missed_after", sa.BigInteger),
        sa.Column("missed_until", sa.BigInteger),
        sa.Column("lease", sa.String(64)),
        sa.Column("lease_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        sqlite_autoincrement=True,
    )
    create_table(
        "webhook_deliveries",
        sa.Column("id", Key, nullable=False),
        sa.Column("webhook_id", Key, nullable=False),
        sa.Column("event_id", sa.String(64), nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("cursor", sa.BigInteger),
        sa.Column("subject", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("by_hand", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("failing_ms", sa.BigInteger),
        sa.Column("tried_ms", sa.BigInteger),
        sa.Column("next_ms", sa.BigInteger),
        sa.Column("status", sa.Integer),
        sa.Column("trouble", sa.String(32)),
        sa.Column("took_ms", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        sa.UniqueConstraint("webhook_id", "event_id", name="uq_webhook_deliveries_webhook_id_event_id"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name="fk_webhook_deliveries_webhook_id"),
        sqlite_autoincrement=True,
    )
    create_index("ix_webhook_deliveries_webhook_id_subject", "webhook_deliveries", ["webhook_id", "subject"])
    create_index("ix_webhook_deliveries_state_webhook_id_id", "webhook_deliveries", ["state", "webhook_id", "id"])
