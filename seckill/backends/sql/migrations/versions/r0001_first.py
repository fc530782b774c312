"""The first tables.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

from seckill.backends.sql.migration_steps import LongText, create_index, create_table, insert_row

revision = "0001"
down_revision = None

# SQLite counts up on its own only where the type is called INTEGER.
Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_catalogue()
    _create_orders()
    _create_around_orders()
    _create_payments()


def _create_catalogue() -> None:
    create_table(
        "meta",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_meta"),
    )
    # Versions of the catalogue are given out by changing this row, so it has to be there.
    insert_row("meta", name="catalogue", value="0")
    create_table(
        "sales",
        sa.Column("id", Key, nullable=False),
        sa.Column("title", sa.String(255), nullable=False),
        sa.Column("price_cents", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("pay_within_s", sa.Integer, nullable=False),
        sa.Column("units", sa.BigInteger, nullable=False),
        sa.Column("limit_per_buyer", sa.Integer, nullable=False),
        sa.Column("begins_ms", sa.BigInteger, nullable=False),
        sa.Column("window_ms", sa.BigInteger, nullable=False),
        sa.Column("repeat", sa.String(64)),
        sa.Column("timezone", sa.String(64), nullable=False, server_default="UTC"),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.CheckConstraint("price_cents >= 0", name=op.f("ck_sales_price")),
        sa.PrimaryKeyConstraint("id", name="pk_sales"),
        sqlite_autoincrement=True,
    )
    create_index("ix_sales_changed", "sales", ["changed"])
    create_table(
        "rounds",
        sa.Column("id", Key, nullable=False),
        sa.Column("sale_id", Key, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("lane", sa.Integer, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("sold", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("written", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("limit_per_buyer", sa.Integer, nullable=False),
        sa.Column("scheduled_ms", sa.BigInteger, nullable=False),
        sa.Column("limit_before", sa.Integer),
        sa.Column("begins_ms", sa.BigInteger, nullable=False),
        sa.Column("ends_ms", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("synced_revision", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("opened_ms", sa.BigInteger),
        sa.Column("retired_ms", sa.BigInteger),
        sa.CheckConstraint("sold >= 0 AND sold <= total", name=op.f("ck_rounds_sold")),
        sa.CheckConstraint("total > 0", name=op.f("ck_rounds_total")),
        sa.CheckConstraint("limit_per_buyer > 0", name=op.f("ck_rounds_limit")),
        sa.CheckConstraint("ends_ms > begins_ms", name=op.f("ck_rounds_window")),
        sa.PrimaryKeyConstraint("id", name="pk_rounds"),
        sa.UniqueConstraint("sale_id", "ordinal", name="uq_rounds_sale_id_ordinal"),
        sa.UniqueConstraint("sale_id", "scheduled_ms", name="uq_rounds_sale_id_scheduled_ms"),
        sa.ForeignKeyConstraint(["sale_id"], ["sales.id"], name="fk_rounds_sale_id"),
        sqlite_autoincrement=True,
    )
    create_index(
        "ix_rounds_alive", "rounds", ["ends_ms"], where="retired_ms IS NULL", instead=["retired_ms", "ends_ms"]
    )
    leaving = "retired_ms IS NOT NULL AND opened_ms IS NOT NULL"
    create_index("ix_rounds_to_forget", "rounds", ["retired_ms"], where=leaving, instead=["retired_ms", "opened_ms"])


def _reference_to_rounds() -> list[sa.ForeignKeyConstraint]:
    """Not in MySQL: there every change of an order would lock its round."""
    if op.get_context().dialect.name == "mysql":
        return []
    return [sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_orders_round_id")]


def _create_orders() -> None:
    create_table(
        "orders",
        sa.Column("id", Key, nullable=False, autoincrement=False),
        sa.Column("round_id", Key, nullable=False),
        sa.Column("sale_id", Key, nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("quantity", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("active_slot", sa.Integer),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("price_cents", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("recorded_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_ms", sa.BigInteger),
        sa.Column("paid_ms", sa.BigInteger),
        sa.Column("closed_ms", sa.BigInteger),
        sa.Column("replaced_by", Key),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_orders_quantity")),
        sa.PrimaryKeyConstraint("id", name="pk_orders"),
        sa.UniqueConstraint("round_id", "user_id", "active_slot", name="uq_orders_round_id_user_id_active_slot"),
        *_reference_to_rounds(),
    )
    create_index("ix_orders_user_id_id", "orders", ["user_id", "id"])
    create_index("ix_orders_round_id_state", "orders", ["round_id", "state"])
    create_index(
        "ix_orders_unpaid", "orders", ["expires_ms"], where="state = 'unpaid'", instead=["state", "expires_ms"]
    )


def _create_around_orders() -> None:
    create_table(
        "order_events",
        sa.Column("id", Key, nullable=False),
        sa.Column("order_id", Key, nullable=False),
        sa.Column("from_state", sa.String(16)),
        sa.Column("to_state", sa.String(16), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("cause", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_order_events"),
    )
    create_index("ix_order_events_order_id", "order_events", ["order_id"])
    create_table(
        "outbox",
        sa.Column("id", Key, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("order_id", Key, nullable=False),
        sa.Column("round_id", Key, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("payload", LongText, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("done_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("kind", "order_id", name="uq_outbox_kind_order_id"),
    )
    create_index("ix_outbox_waiting", "outbox", ["id"], where="done_ms IS NULL", instead=["done_ms", "id"])
    create_table(
        "dead_letters",
        sa.Column("id", Key, nullable=False),
        sa.Column("lane", sa.Integer, nullable=False),
        sa.Column("entry_id", sa.String(64), nullable=False),
        sa.Column("order_id", Key),
        sa.Column("round_id", Key),
        sa.Column("quantity", sa.Integer),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("history", LongText, nullable=False),
        sa.Column("payload", LongText, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_ms", sa.BigInteger),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dead_letters"),
        sa.UniqueConstraint("lane", "entry_id", name="uq_dead_letters_lane_entry_id"),
        sqlite_autoincrement=True,
    )
    create_index("ix_dead_letters_due", "dead_letters", ["next_ms"], where="next_ms IS NOT NULL")


def _create_payments() -> None:
    create_table(
        "payments",
        sa.Column("id", Key, nullable=False),
        sa.Column("order_id", Key, nullable=False),
        sa.Column("provider", sa.String(32), nullable=False),
        sa.Column("provider_ref", sa.String(128), nullable=False),
        sa.Column("amount_cents", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("settles", Key),
        sa.Column("next_ms", sa.BigInteger),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.CheckConstraint("amount_cents > 0", name=op.f("ck_payments_amount")),
        sa.CheckConstraint("settles IS NULL OR next_ms IS NULL", name=op.f("ck_payments_decided")),
        sa.PrimaryKeyConstraint("id", name="pk_payments"),
        sa.UniqueConstraint("provider", "provider_ref", name="uq_payments_provider_provider_ref"),
        sa.UniqueConstraint("settles", name="uq_payments_settles"),
    )
    create_index("ix_payments_order_id", "payments", ["order_id"])
    create_index("ix_payments_late", "payments", ["next_ms"], where="next_ms IS NOT NULL")
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
        sa.UniqueConstraint("payment_id", name="uq_refunds_payment_id"),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name="fk_refunds_payment_id"),
        sqlite_autoincrement=True,
    )
    create_index("ix_refunds_due", "refunds", ["next_ms"], where="next_ms IS NOT NULL")
