"""What is known of those who wait: the groups and the person that their tokens named. And where the beacon of a draw
comes from. Entries from before have neither, and draws from before wait for an operator.

Revision ID: 0021
"""

import sqlalchemy as sa

from seckill.backends.sql.migration_steps import LongText, add_column

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    # First the table that whoever joins locks first.
    add_column("round_lines", sa.Column("listed_ms", sa.BigInteger))
    add_column("round_lines", sa.Column("beacon_from", LongText))
    add_column("round_lines", sa.Column("beacon_round", sa.BigInteger))
    add_column("round_lines", sa.Column("beacon_missed_ms", sa.BigInteger))
    add_column("line_entries", sa.Column("groups_told", LongText))
    add_column("line_entries", sa.Column("person", sa.String(128)))
