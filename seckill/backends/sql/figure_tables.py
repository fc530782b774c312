"""The tables of what operators look back at: figures of rounds, and alarms; see `tables.py`."""

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, String, Table, UniqueConstraint

from seckill.backends.sql.tables import Key, LongText, metadata

# The figures of a round at one second. All are absolute, so a missing row makes the picture coarser but not wrong. The
# first keeper writes it.
figures = Table(
    "figures",
    metadata,
    Column("round_id", Key, nullable=False, autoincrement=False),
    Column("at_s", BigInteger, nullable=False),  # by the gate's clock
    Column("fine", Integer, nullable=False),  # 1: deleted after hours, 0: kept as long as any figures are
    Column("available", BigInteger),  # NULL: the gate did not have the round
    Column("accepted", BigInteger),
    Column("persisted", BigInteger, nullable=False),
    Column("refused", LongText, nullable=False),  # JSON: claims by reason, of the processes that ran
    Column("backlog", BigInteger, nullable=False),
    Column("lag_ms", BigInteger, nullable=False),
    Column("p99_us", BigInteger),  # of all claims of the system; NULL: there were none
    # Counted less often than the rest; NULL: not yet.
    Column("unpaid", BigInteger),
    Column("paid", BigInteger),
    Column("taken_cents", BigInteger),
    Column("waiting", BigInteger),
    PrimaryKeyConstraint("round_id", "at_s"),
    Index(None, "fine", "at_s"),
)

# Alarms, whichever process raised them.
alarms = Table(
    "alarms",
    metadata,
    Column("id", Key, primary_key=True),
    Column("dedup_key", String(32), nullable=False),
    Column("what", String(255), nullable=False),
    Column("facts", LongText, nullable=False),  # JSON
    Column("sale_id", Key),
    Column("lasting", Integer, nullable=False),  # 1: goes on until it is resolved
    # 0 while a further alarm with this key counts as the same one, NULL afterwards. No two NULLs are equal.
    Column("open_slot", Integer),
    Column("raised_ms", BigInteger, nullable=False),
    Column("told_ms", BigInteger, nullable=False, index=True),  # the last time
    Column("times", Integer, nullable=False),
    Column("resolved_ms", BigInteger),
    UniqueConstraint("dedup_key", "open_slot"),
    Index(None, "sale_id", "raised_ms"),
    sqlite_autoincrement=True,
)
