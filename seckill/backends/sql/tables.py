"""The tables. Times are milliseconds UTC by the database's clock, in columns that end in `_ms`.

`migrations/` brings a database to this shape; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.mysql import LONGTEXT

# SQLite counts up on its own, and stores a key without a second index, only where the type is called INTEGER.
Key = BigInteger().with_variant(Integer, "sqlite")

# MySQL's TEXT ends after 64 kB.
LongText = Text().with_variant(LONGTEXT(), "mysql")


# The suffix of an index of all rows that stands in for a partial one.
OF_ALL = "_all"


def _partial(name: str, column: str, *, where: str, instead: tuple[str, ...]) -> tuple[Index, Index]:
    """An index of only the rows where it holds. MySQL has no such thing: there it is an index of all rows in which
    these stand together. Its name differs, because Alembic can compare a table only if no two of its indexes share
    one."""
    of_some = Index(name, column, postgresql_where=text(where), sqlite_where=text(where))
    return of_some.ddl_if(callable_=_is_not_mysql), Index(f"{name}{OF_ALL}", *instead).ddl_if(dialect="mysql")


def _is_not_mysql(*_: object, dialect: Dialect, **__: object) -> bool:
    return dialect.name != "mysql"


# Rows of `meta`.
ID_KEY = "id_key"
CATALOGUE = "catalogue"

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

meta = Table(
    "meta",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", String(255), nullable=False),
)

sales = Table(
    "sales",
    metadata,
    Column("id", Key, primary_key=True),
    Column("title", String(255), nullable=False),
    Column("price_cents", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("pay_within_s", Integer, nullable=False),
    # What every round of it begins with.
    Column("units", BigInteger, nullable=False),
    Column("limit_per_buyer", Integer, nullable=False),
    Column("begins_ms", BigInteger, nullable=False),  # of the window that was announced
    Column("window_ms", BigInteger, nullable=False),
    Column("repeat", String(64)),
    Column("timezone", String(64), nullable=False, server_default="UTC"),
    Column("created_ms", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),  # the catalogue's version at the last change
    Column("lanes", Integer, nullable=False, server_default=text("1")),  # of every round of it
    Column("cool_down_s", Integer, nullable=False, server_default=text("0")),
    CheckConstraint("price_cents >= 0", name="price"),
    Index(None, "changed"),
    sqlite_autoincrement=True,
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sale_id", Key, ForeignKey("sales.id"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("lane", Integer, nullable=False),  # the first of its lanes
    Column("total", BigInteger, nullable=False),
    Column("sold", BigInteger, nullable=False, server_default=text("0")),  # units of live orders
    # Units that workers have ever written. A gate that has admitted fewer has gone back in time.
    Column("written", BigInteger, nullable=False, server_default=text("0")),
    Column("limit_per_buyer", Integer, nullable=False),
    Column("scheduled_ms", BigInteger, nullable=False),  # never changes, whatever becomes of `begins_ms`
    # The highest limit that there was before; NULL: never changed. A buyer who bought when the limit was higher is not
    # above it. Every update of the row keeps it, so that no code has to remember to.
    Column(
        "limit_before",
        Integer,
        onupdate=text("CASE WHEN limit_before > limit_per_buyer THEN limit_before ELSE limit_per_buyer END"),
    ),
    Column("begins_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("epoch", Integer, nullable=False, server_default=text("1")),
    Column("revision", Integer, nullable=False, server_default=text("1")),
    Column("synced_revision", Integer, nullable=False, server_default=text("0")),
    Column("opened_ms", BigInteger),
    Column("retired_ms", BigInteger),
    Column("lanes", Integer, nullable=False, server_default=text("1")),
    # The epoch in which the audit has paused it; NULL: it has not, or an operator has, or nothing is wrong any more.
    Column("audit_epoch", Integer),
    Column("cool_down_s", Integer, nullable=False, server_default=text("0")),
    CheckConstraint("sold >= 0 AND sold <= total", name="sold"),
    CheckConstraint("total > 0", name="total"),
    CheckConstraint("limit_per_buyer > 0", name="limit"),
    CheckConstraint("ends_ms > begins_ms", name="window"),
    UniqueConstraint("sale_id", "ordinal"),
    # Each occurrence of a sale becomes one round, however many keepers there are.
    UniqueConstraint("sale_id", "scheduled_ms"),
    # The queries of every second read only these, so that the past may be long.
    *_partial("ix_rounds_alive", "ends_ms", where="retired_ms IS NULL", instead=("retired_ms", "ends_ms")),
    *_partial(
        "ix_rounds_to_forget",
        "retired_ms",
        where="retired_ms IS NOT NULL AND opened_ms IS NOT NULL",
        instead=("retired_ms", "opened_ms"),
    ),
    # The id of a round is part of the gate's keys, so it must not be used again after a row was deleted.
    sqlite_autoincrement=True,
)

orders = Table(
    "orders",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=False),  # the order number
    Column("round_id", Key, nullable=False),
    Column("sale_id", Key, nullable=False),
    Column("user_id", String(128), nullable=False),
    Column("quantity", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    # The slot while the order is live, NULL when it is over. No two NULLs are equal, so a buyer has each slot
    # of a round once at a time, and may buy again after an order is over.
    Column("active_slot", Integer),
    Column("slot", Integer, nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("price_cents", BigInteger, nullable=False),  # of the whole order
    Column("currency", String(3), nullable=False),
    Column("created_ms", BigInteger, nullable=False),  # when the gate admitted it, by the gate's clock
    Column("recorded_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("paid_ms", BigInteger),
    Column("closed_ms", BigInteger),
    Column("replaced_by", Key),  # the order that a late payment for this one pays instead
    CheckConstraint("quantity > 0", name="quantity"),
    UniqueConstraint("round_id", "user_id", "active_slot"),
    # Not in MySQL: there every change of an order would lock its round, and a transaction that then counts in the round
    # would wait for the others that do. Rounds are never deleted, and orders are inserted by a join with them.
    ForeignKeyConstraint(["round_id"], ["rounds.id"]).ddl_if(callable_=_is_not_mysql),
    Index(None, "user_id", "id"),
    # Counts by state, and the newest of each state: with the states put together, the newest of a round.
    Index(None, "round_id", "state", "id"),
    *_partial("ix_orders_unpaid", "expires_ms", where="state = 'unpaid'", instead=("state", "expires_ms")),
)

order_events = Table(
    "order_events",
    metadata,
    Column("id", Key, primary_key=True),
    Column("order_id", Key, nullable=False, index=True),
    Column("from_state", String(16)),
    Column("to_state", String(16), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("cause", String(64), nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Key, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("order_id", Key, nullable=False),
    Column("round_id", Key, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("payload", LongText, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("done_ms", BigInteger),
    UniqueConstraint("kind", "order_id"),  # a release can be decided once only
    *_partial("ix_outbox_waiting", "id", where="done_ms IS NULL", instead=("done_ms", "id")),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", Key, primary_key=True),
    Column("lane", Integer, nullable=False),
    Column("entry_id", String(64), nullable=False),
    # Set if the entry could be read.
    Column("order_id", Key),
    Column("round_id", Key),
    Column("quantity", Integer),
    Column("reason", LongText, nullable=False),
    Column("history", LongText, nullable=False),  # JSON
    Column("payload", LongText, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_ms", BigInteger),  # when it is tried again; NULL: not any more
    Column("created_ms", BigInteger, nullable=False),
    Column("user_id", String(128)),
    UniqueConstraint("lane", "entry_id"),
    # Buyers ask for their orders, also for those that are set aside.
    Index(None, "order_id"),
    Index(None, "user_id", "next_ms"),
    *_partial("ix_dead_letters_due", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
    # Operators name a dead letter by its id.
    sqlite_autoincrement=True,
)

# Money that was taken. All of it = the price of all paid orders + all refunds + what is late and not decided yet.
payments = Table(
    "payments",
    metadata,
    Column("id", Key, primary_key=True),
    Column("order_id", Key, nullable=False, index=True),  # the order that the provider has named
    Column("provider", String(32), nullable=False),
    Column("provider_ref", String(128), nullable=False),
    Column("amount_cents", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    # The order that is paid with it. No two NULLs are equal, so an order is paid once, and money that goes back pays
    # for nothing.
    Column("settles", Key, unique=True),
    Column("next_ms", BigInteger),  # when the keeper tries again to decide about it; NULL: decided
    Column("created_ms", BigInteger, nullable=False),
    CheckConstraint("amount_cents > 0", name="amount"),
    CheckConstraint("settles IS NULL OR next_ms IS NULL", name="decided"),
    UniqueConstraint("provider", "provider_ref"),
    *_partial("ix_payments_late", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
)

refunds = Table(
    "refunds",
    metadata,
    Column("id", Key, primary_key=True),
    Column("payment_id", Key, ForeignKey("payments.id"), nullable=False, unique=True),
    Column("amount_cents", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_ms", BigInteger),  # when the provider is asked again; NULL: done
    Column("created_ms", BigInteger, nullable=False),
    Column("done_ms", BigInteger),
    *_partial("ix_refunds_due", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
    # Providers recognise a repeated refund by its id, so no id may be used again.
    sqlite_autoincrement=True,
)
