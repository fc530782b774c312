"""Codes may be for one item of a sale. Those that were uploaded before are for whatever their sale sells.

Revision ID: 0017
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import add_column

revision = "0017"
down_revision = "0016"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    add_column("voucher_uploads", sa.Column("item_id", _KEY))
