"""Pictures of goods that operators upload.

Revision ID: 0014
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, create_index, create_table

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    create_table(
        "pictures",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("content", LongText, nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("height", sa.Integer, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("used_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_pictures"),
    )
    create_index("ix_pictures_used_ms", "pictures", ["used_ms"])
