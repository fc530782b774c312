"""The newest orders of a round are found by an index: the one that leads to a round's orders by state now goes on to
their numbers.

Revision ID: 0003
"""

from seckill.backends.sql.migration_steps import create_index, drop_index

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    create_index("ix_orders_round_id_state_id", "orders", ["round_id", "state", "id"])
    drop_index("ix_orders_round_id_state", "orders")
