"""The tables of operators and of buyers' standing; see `tables.py`."""

from sqlalchemy import BigInteger, Column, Index, String, Table

from seckill.backends.sql.tables import Key, LongText, metadata

ACCESS = "access"  # a row of `meta`: the version of the two tables below, as of their last change

# Keys of operators. They are never deleted, because the record names their owners. The sessions of signed-in operators
# are kept here too and are deleted a day after their end.
operator_keys = Table(
    "operator_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("role", String(16), nullable=False),
    Column("digest", String(64), nullable=False),  # of the key; the key itself is nowhere
    Column("created_ms", BigInteger, nullable=False),
    Column("created_by", String(64), nullable=False),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
)

# Buyers who may not buy, or whose tokens were ended. The empty name stands for all buyers. The row of an unblocked
# buyer stays, so that every process hears of it.
buyer_standings = Table(
    "buyer_standings",
    metadata,
    Column("user_id", String(128), primary_key=True),
    Column("blocked_ms", BigInteger),
    Column("reason", String(255)),
    Column("blocked_by", String(64)),
    Column("tokens_before_s", BigInteger),
    Column("changed", BigInteger, nullable=False, index=True),  # the version at the last change
)

# Which operator has changed what. Rows are only ever inserted.
operator_record = Table(
    "operator_record",
    metadata,
    Column("id", Key, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    Column("who", String(64), nullable=False),
    Column("what", String(32), nullable=False),
    Column("subject", String(128), nullable=False),
    Column("sale_id", Key),
    Column("before", LongText),  # JSON
    Column("after", LongText),  # JSON
    Column("why", String(255)),
    Column("request_id", String(64), nullable=False),
    Index(None, "sale_id", "id"),
    Index(None, "who", "id"),
    # An id is a place in the record and is never used twice.
    sqlite_autoincrement=True,
)
