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

# Only if the type is called INTEGER does SQLite number rows by itself and store the key without a second index.
Key = BigInteger().with_variant(Integer, "sqlite")

# MySQL's TEXT ends after 64 kB.
LongText = Text().with_variant(LONGTEXT(), "mysql")


# The suffix of an index of all rows that replaces a partial one.
OF_ALL = "_all"
# `postgres.py` adds to them what only PostgreSQL is told: said here, it would load that dialect for every database.
PARTIAL: list[Index] = []


def partial_index(name: str, *columns: str, where: str, instead: tuple[str, ...]) -> tuple[Index, Index]:
    """An index of only the rows where `where` holds. MySQL has no partial indexes: there it becomes an index of all
    rows that keeps these together. Its name differs, because Alembic can only compare a table if no two of its indexes
    have the same name."""
    of_some = Index(name, *columns, sqlite_where=text(where))
    PARTIAL.append(of_some)
    return of_some.ddl_if(callable_=_is_not_mysql), Index(f"{name}{OF_ALL}", *instead).ddl_if(dialect="mysql")


def _is_not_mysql(*_: object, dialect: Dialect, **__: object) -> bool:
    return dialect.name != "mysql"


# Rows of `meta`.
ID_KEY = "id_key"
CATALOGUE = "catalogue"
FEED = "feed"  # the last cursor that was given out
NEEDS_REVISION = "needs_revision"  # which migration a version must know to work on this database
MIGRATED_BY = "migrated_by"  # the version that brought it to its shape
ENTRY_FORM = "entry_form"  # which form of queue entries all processes are known to read; without it: the first
MOVING = "moving"  # not everything is here yet, see move.py
MOVED = "moved"  # everything has been moved to another database
PRUNING = "pruning"  # the round whose line's entries are being deleted

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
    # The units with which every round begins.
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
    Column("published", Integer, nullable=False, server_default=text("1")),
    # What is sold, see seckill/domain/goods.py; NULL: nothing.
    Column("external_id", String(128)),
    Column("list_price_cents", BigInteger),
    Column("metadata", LongText),  # JSON
    Column("description", LongText),
    Column("images", LongText),  # JSON
    Column("terms_url", LongText),
    Column("delivery", LongText),
    Column("return_url", LongText),
    Column("confirm", String(16), nullable=False, server_default="gate"),
    Column("vouchers", Integer, nullable=False, server_default=text("0")),  # 1: it gives a code with each unit
    Column("door", LongText),  # JSON, see seckill/domain/door.py; NULL: open to everybody
    Column("list_version", BigInteger, nullable=False, server_default=text("0")),
    Column("list_buyers", Integer, nullable=False, server_default=text("0")),
    Column("limit_by", String(64)),  # the token's claim that the limit counts by; NULL: sub
    CheckConstraint("price_cents >= 0", name="price"),
    Index(None, "changed"),
    Index(None, "external_id"),
    sqlite_autoincrement=True,
)

# The keys of announcements: operators repeat one that got no answer, and get the sale that it made.
sale_keys = Table(
    "sale_keys",
    metadata,
    Column("key_digest", String(64), primary_key=True),
    Column("body_digest", String(64), nullable=False),
    Column("sale_id", Key, ForeignKey("sales.id"), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sale_id", Key, ForeignKey("sales.id"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("lane", Integer, nullable=False),  # the first of its lanes
    Column("total", BigInteger, nullable=False),
    Column("sold", BigInteger, nullable=False, server_default=text("0")),  # units that orders hold
    # All units that workers have ever written. A gate that has admitted fewer has gone back in time.
    Column("written", BigInteger, nullable=False, server_default=text("0")),
    Column("limit_per_buyer", Integer, nullable=False),
    Column("scheduled_ms", BigInteger, nullable=False),  # never changes, even if `begins_ms` does
    # The highest limit there was before; NULL: never changed. A buyer who bought when the limit was higher has not
    # exceeded it. Every update of the row maintains it, so that no code has to remember to.
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
    # The epoch in which the audit paused the round; NULL: it did not, or an operator did, or nothing is wrong any more.
    Column("audit_epoch", Integer),
    Column("cool_down_s", Integer, nullable=False, server_default=text("0")),
    Column("published", Integer, nullable=False, server_default=text("1")),
    Column("item_count", Integer, nullable=False, server_default=text("0")),
    # 0: its sale gives codes and has had too few for it so far, so the gate keeps it closed. Once 1, it is never 0
    # again.
    Column("covered", Integer, nullable=False, server_default=text("1")),
    Column("early_s", Integer, nullable=False, server_default=text("0")),
    Column("lined", Integer, nullable=False, server_default=text("0")),  # 1: its units go to those in its line
    Column("limit_group", String(64), index=True),  # rounds that have the same share one limit; NULL: none
    CheckConstraint("sold >= 0 AND sold <= total", name="sold"),
    CheckConstraint("total > 0", name="total"),
    CheckConstraint("limit_per_buyer > 0", name="limit"),
    CheckConstraint("ends_ms > begins_ms", name="window"),
    UniqueConstraint("sale_id", "ordinal"),
    # Each occurrence of a sale becomes one round, however many keepers there are.
    UniqueConstraint("sale_id", "scheduled_ms"),
    # The queries of every second only read these rows, however many old ones there are.
    *partial_index("ix_rounds_alive", "ends_ms", where="retired_ms IS NULL", instead=("retired_ms", "ends_ms")),
    *partial_index(
        "ix_rounds_to_forget",
        "retired_ms",
        where="retired_ms IS NOT NULL AND opened_ms IS NOT NULL",
        instead=("retired_ms", "opened_ms"),
    ),
    # The id of a round is part of the gate's keys, so it must not be used again after a row was deleted.
    sqlite_autoincrement=True,
)

# The items of a sale that sells several kinds. None are added or removed after it was announced.
items = Table(
    "items",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sale_id", Key, ForeignKey("sales.id"), nullable=False),
    Column("place", Integer, nullable=False),  # in the order in which they were announced
    Column("title", String(255), nullable=False),
    Column("units", BigInteger, nullable=False),  # what every round begins with
    Column("price_cents", BigInteger, nullable=False),
    Column("external_id", String(128)),
    Column("image", LongText),
    CheckConstraint("price_cents >= 0", name="price"),
    UniqueConstraint("sale_id", "place"),
    # Part of the gate's fields and of buyers' records, so it must not be used again after a row was deleted.
    sqlite_autoincrement=True,
)

# How many units of each item a round has. Their sums are the round's own `total` and `sold`. They change in the same
# transactions, always after the round's row, so a transaction that has locked that row never waits for these.
round_items = Table(
    "round_items",
    metadata,
    Column("round_id", Key, ForeignKey("rounds.id"), primary_key=True, autoincrement=False),
    Column("item_id", Key, ForeignKey("items.id"), primary_key=True, autoincrement=False),
    Column("total", BigInteger, nullable=False),
    Column("sold", BigInteger, nullable=False, server_default=text("0")),
    CheckConstraint("sold >= 0 AND sold <= total", name="sold"),
    CheckConstraint("total > 0", name="total"),
)

# The buyers on a sale's list, as digests in ascending order, a few thousand in each row. Every API node reads all of
# them; a question about one buyer only reads the row that would have the digest.
audience_parts = Table(
    "audience_parts",
    metadata,
    Column("sale_id", Key, ForeignKey("sales.id"), primary_key=True),
    Column("first", BigInteger, primary_key=True),  # the least digest in it
    Column("digests", LongText, nullable=False),  # eight bytes each, as base64: not every driver carries bytes
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
    # The slot while the order holds its units, NULL when they are given back. No two NULLs are equal, so a buyer has
    # each slot of a round once at a time and may buy again after an order is over. After a refund, the units may still
    # count as sold.
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
    Column("metadata", LongText),  # JSON; NULL: the claim had none
    Column("refunded_cents", BigInteger, nullable=False, server_default=text("0")),  # of its price
    Column("closed_by", String(16)),  # `operator`; NULL: the buyer, the clock, the engine, or it is not over
    Column("item_id", Key),  # NULL: its sale has none
    Column("person", String(128)),  # whom the limit counts by, if not only by user
    Column("trace", String(55)),  # a `traceparent`; NULL: it is not traced
    CheckConstraint("quantity > 0", name="quantity"),
    UniqueConstraint("round_id", "user_id", "active_slot"),
    # Not in MySQL: there every change of an order would lock its round, and a transaction that then counts in the round
    # would wait for others that do the same. Rounds are never deleted, and orders are inserted by a join with them. On
    # PostgreSQL, triggers say the same for less: migrations/versions/r0025_rounds_of_orders.py.
    ForeignKeyConstraint(["round_id"], ["rounds.id"]).ddl_if(dialect="sqlite"),
    Index(None, "user_id", "id"),
    *partial_index("ix_orders_unpaid", "expires_ms", where="state = 'unpaid'", instead=("state", "expires_ms")),
)

# For counts by state and for the newest orders of each state; merging the states gives the newest orders of a round.
ORDERS_BY_STATE = Index(None, orders.c.round_id, orders.c.state, orders.c.id)

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

# What every transaction has changed, with an entry for each type of event, and the order in which readers see it. What
# happened to an order is in `order_events`; an entry only says to which orders.
feed = Table(
    "feed",
    metadata,
    Column("id", Key, primary_key=True),
    # The cursor of its first event; those of the others follow. NULL until it is lined up. Ids cannot be cursors: they
    # are handed out before the commit, so a transaction with a smaller id may become visible later.
    Column("first_cursor", BigInteger, unique=True),
    Column("events", Integer, nullable=False),
    Column("type", String(32), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("numbers", LongText),  # JSON: of the orders that it happened to
    # For events that are not an order's change of state.
    Column("sale_id", Key),
    Column("round_id", Key),
    Column("facts", LongText),  # JSON
    *partial_index("ix_feed_waiting", "id", where="first_cursor IS NULL", instead=("first_cursor", "id")),
    *partial_index(
        "ix_feed_of_sale", "sale_id", "type", "id", where="sale_id IS NOT NULL", instead=("sale_id", "type", "id")
    ),
    # Later entries have greater ids, also when all earlier ones have been pruned.
    sqlite_autoincrement=True,
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
    *partial_index("ix_outbox_waiting", "id", where="done_ms IS NULL", instead=("done_ms", "id")),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", Key, primary_key=True),
    Column("lane", Integer, nullable=False),
    Column("entry_id", String(64), nullable=False),
    # Only set if the entry could be read.
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
    Column("item_id", Key),
    UniqueConstraint("lane", "entry_id"),
    # Buyers ask for their orders, also for those that are set aside.
    Index(None, "order_id"),
    Index(None, "user_id", "next_ms"),
    *partial_index("ix_dead_letters_due", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
    # Operators name a dead letter by its id.
    sqlite_autoincrement=True,
)

# Money that was taken. The sum of all payments = the price of all paid orders, less the refunded part of it, + all
# refunds + late payments that are not decided yet.
payments = Table(
    "payments",
    metadata,
    Column("id", Key, primary_key=True),
    Column("order_id", Key, nullable=False, index=True),  # the order that the provider has named
    Column("provider", String(32), nullable=False),
    Column("provider_ref", String(128), nullable=False),
    Column("amount_cents", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    # The order that this money pays. It is unique, so an order is paid once, but no two NULLs are equal. Money that is
    # refunded without an operator pays for nothing.
    Column("settles", Key, unique=True),
    Column("next_ms", BigInteger),  # when the keeper tries again to decide about it; NULL: decided
    Column("created_ms", BigInteger, nullable=False),
    CheckConstraint("amount_cents > 0", name="amount"),
    CheckConstraint("settles IS NULL OR next_ms IS NULL", name="decided"),
    UniqueConstraint("provider", "provider_ref"),
    *partial_index("ix_payments_late", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
)

refunds = Table(
    "refunds",
    metadata,
    Column("id", Key, primary_key=True),
    Column("payment_id", Key, ForeignKey("payments.id"), nullable=False, index=True),
    Column("amount_cents", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_ms", BigInteger),  # when the provider is asked again; NULL: done
    Column("created_ms", BigInteger, nullable=False),
    Column("done_ms", BigInteger),
    Column("action_id", Key),  # the operator's action that caused it; NULL: the payment was late or one too many
    Column("refused", String(255)),  # what the provider said when it refused for good; NULL: it did not
    *partial_index("ix_refunds_due", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
    # Providers recognise a repeated refund by its id, so no id may be used again.
    sqlite_autoincrement=True,
)

# A provider's pages on which orders can be paid.
checkouts = Table(
    "checkouts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("order_id", Key, nullable=False, index=True),
    Column("provider", String(32), nullable=False),
    Column("ref", String(255), nullable=False),  # the provider's name for it, or ours
    Column("on_phone", Integer, nullable=False),  # 1: made for a phone, which may be another page of the same checkout
    Column("address", LongText, nullable=False),
    Column("until_ms", BigInteger, nullable=False),  # how long the address is good for
    Column("attempts", Integer, nullable=False),
    # When the keeper checks whether to call it off; NULL: done. The end of the order makes it due.
    Column("next_ms", BigInteger),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("provider", "ref", "on_phone"),
    *partial_index("ix_checkouts_due", "next_ms", where="next_ms IS NOT NULL", instead=("next_ms",)),
)

# What operators did to orders, and why.
order_actions = Table(
    "order_actions",
    metadata,
    Column("id", Key, primary_key=True),
    Column("order_id", Key, nullable=False, index=True),
    Column("request_id", String(64), nullable=False),  # a repeat has the same: it changes nothing
    Column("action", String(16), nullable=False),
    Column("amount_cents", BigInteger),  # as it was asked for; NULL: all that was left, or no refund
    Column("return_unit", Integer, nullable=False),  # 1: the units go back on sale
    Column("reason", String(255), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("request_id"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Key, primary_key=True),
    Column("url", LongText, nullable=False),
    Column("types", LongText, nullable=False),  # JSON, as the operator has written them; empty: all
    Column("sale_id", Key),
    Column("description", String(255), nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("disabled_by", String(16)),
    Column("secret", String(128), nullable=False),
    Column("old_secret", String(128)),
    Column("old_secret_ms", BigInteger),  # until when it signs as well
    # Everything in the feed up to this cursor is delivered, given up, or has a row of its own below.
    Column("cursor", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("delivered_ms", BigInteger),
    Column("failures", Integer, nullable=False),  # since then
    Column("failing_ms", BigInteger),  # the first of them
    Column("retry_ms", BigInteger),  # it is left alone until then
    Column("missed_ms", BigInteger),  # when events were noticed to be gone before they were sent…
    Column("missed_after", BigInteger),  # …and which: their cursors
    Column("missed_until", BigInteger),
    # The keeper that sends to it now has this token. No other may note anything before the lease is over.
    Column("lease", String(64)),
    Column("lease_ms", BigInteger),
    sqlite_autoincrement=True,
)

# Deliveries that wait or were given up, and the last successful ones. A delivery that succeeds at once only moves the
# cursor.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", Key, primary_key=True),
    Column("webhook_id", Key, ForeignKey("webhooks.id"), nullable=False),
    Column("event_id", String(64), nullable=False),
    Column("type", String(32), nullable=False),
    Column("cursor", BigInteger),  # NULL: a test, which is in no feed
    Column("subject", String(32), nullable=False),  # deliveries of one subject, such as an order, are made in order
    Column("state", String(16), nullable=False),
    Column("by_hand", Integer, nullable=False),  # 1: an operator wants it sent, even if others wait
    Column("tries", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("failing_ms", BigInteger),  # since when it has been tried in vain
    Column("tried_ms", BigInteger),
    Column("next_ms", BigInteger),
    Column("status", Integer),
    Column("trouble", String(32)),
    Column("took_ms", Integer),
    UniqueConstraint("webhook_id", "event_id"),
    Index(None, "webhook_id", "subject"),
    Index(None, "state", "webhook_id", "id"),
    # Operators name a delivery by its id.
    sqlite_autoincrement=True,
)

# Codes that arrive together. They count when all of them are there.
voucher_uploads = Table(
    "voucher_uploads",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sale_id", Key, ForeignKey("sales.id"), nullable=False, index=True),
    Column("codes", Integer, nullable=False, server_default=text("0")),  # that have arrived
    Column("created_ms", BigInteger, nullable=False),
    Column("touched_ms", BigInteger, nullable=False),  # when the last of them arrived
    Column("complete_ms", BigInteger),
    Column("given_up_ms", BigInteger),
    Column("item_id", Key),  # the only item they are for; NULL: for anything that the sale sells
    CheckConstraint("complete_ms IS NULL OR given_up_ms IS NULL", name="fate"),
    *partial_index("ix_voucher_uploads_open", "id", where="complete_ms IS NULL", instead=("complete_ms", "id")),
    # A code of an upload that was cleared away must not become part of another upload.
    sqlite_autoincrement=True,
)

# Free: no order has it. Void: `void_ms` is set, and `order_id` says whose it was.
vouchers = Table(
    "vouchers",
    metadata,
    Column("id", Key, primary_key=True),
    Column("sale_id", Key, nullable=False),
    Column("upload_id", Key, nullable=False),
    Column("line", Integer, nullable=False),  # of its upload
    Column("code", String(128), nullable=False),
    Column("order_id", Key, index=True),
    Column("given_ms", BigInteger),
    Column("shown_ms", BigInteger),
    Column("redeemed_ms", BigInteger),
    Column("void_ms", BigInteger),
    CheckConstraint("order_id IS NOT NULL OR (redeemed_ms IS NULL AND void_ms IS NULL)", name="owner"),
    UniqueConstraint("code"),
    *partial_index(
        "ix_vouchers_free", "upload_id", "id", where="order_id IS NULL", instead=("upload_id", "order_id", "id")
    ),
)

# Pictures that operators have uploaded, in the form in which they are shown, by the digest of their content.
pictures = Table(
    "pictures",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("content", LongText, nullable=False),  # in base64: not every driver can send bytes
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("used_ms", BigInteger, nullable=False, index=True),  # when it was last uploaded or given to a sale
)
