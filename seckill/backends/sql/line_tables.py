"""The tables of the line; see `tables.py`.

An entry is about 100 bytes and as much again in its three indexes: see docs/line.md.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    UniqueConstraint,
    text,
)

from seckill.backends.sql.tables import Key, LongText, metadata, partial_index
from seckill.domain.line import EntryState

# One row for each round that may have a line. Every transaction that changes entries of a round locks this row first,
# so changes to a line happen one after another.
lines = Table(
    "round_lines",
    metadata,
    Column("round_id", Key, ForeignKey("rounds.id"), primary_key=True, autoincrement=False),
    Column("sale_id", Key, nullable=False),
    Column("order_by", String(16), nullable=False),
    Column("seed", String(64)),  # NULL: nothing is drawn
    Column("wants_beacon", Integer, nullable=False, server_default=text("0")),
    Column("beacon", String(255)),
    Column("closed_ms", BigInteger),
    Column("entries", BigInteger, nullable=False, server_default=text("0")),  # in the draw
    Column("list_hash", String(64)),
    Column("drawn_ms", BigInteger),
    Column("places", BigInteger, nullable=False, server_default=text("0")),  # the last that was given
    Column("waiting", BigInteger, nullable=False, server_default=text("0")),
    Column("served", BigInteger, nullable=False, server_default=text("0")),
    Column("paused", Integer, nullable=False, server_default=text("0")),
    Column("serve_per_s", Integer),  # NULL: as fast as it goes
    # The keeper that serves it now has this token. No other may note anything before the lease is over.
    Column("lease", String(64)),
    Column("lease_ms", BigInteger),
    Column("listed_ms", BigInteger),  # when the hash of the list was published
    Column("beacon_from", LongText),  # JSON; NULL: an operator gives it, or there is none
    Column("beacon_round", BigInteger),  # which of that source's values it is
    Column("beacon_missed_ms", BigInteger),  # when it was given up and the draw was made from the seed alone
    CheckConstraint("waiting >= 0", name="waiting"),
    # The queries of every second only read these rows, however many old ones there are.
    *partial_index("ix_round_lines_waiting", "round_id", where="waiting > 0", instead=("waiting", "round_id")),
    *partial_index(
        "ix_round_lines_to_draw",
        "round_id",
        where="seed IS NOT NULL AND drawn_ms IS NULL",
        instead=("drawn_ms", "round_id"),
    ),
)

# States as numbers: they are in two indexes, where a number takes less room than a word.
STATES = {
    EntryState.WAITING: 0,
    EntryState.CALLED: 1,
    EntryState.SERVED: 2,
    EntryState.LEFT: 3,
    EntryState.PASSED_OVER: 4,
}
STATE_OF = {number: state for state, number in STATES.items()}

line_entries = Table(
    "line_entries",
    metadata,
    Column("id", Key, primary_key=True),
    Column("round_id", Key, nullable=False),
    Column("user_id", String(128), nullable=False),
    Column("quantity", Integer, nullable=False),
    Column("item_id", Key, nullable=False, server_default=text("0")),  # 0: its sale has none
    Column("state", Integer, nullable=False, server_default=text("0")),
    # NULL: in a draw that is not made yet. Negative: left before the list was closed, so never in the draw.
    Column("place", BigInteger),
    Column("joined_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger),
    Column("order_id", Key),
    Column("reason", String(255)),
    Column("metadata", LongText),  # JSON; NULL: it has none
    Column("groups_told", LongText),  # JSON, as the token said when its buyer joined; NULL: not known
    Column("person", String(128)),  # whom the limit counts by; NULL: by the buyer alone
    CheckConstraint("quantity > 0", name="quantity"),
    UniqueConstraint("round_id", "user_id"),
    # Finds the next entries, and counts those that wait, or no longer wait, before a place.
    Index(None, "round_id", "item_id", "state", "place"),
    # Reads the list in the order of places, or of ids where there are no places yet.
    Index(None, "round_id", "place", "id"),
    # The id is part of the request id by which the gate knows an entry, so it must not be used again.
    sqlite_autoincrement=True,
)
