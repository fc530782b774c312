"""What every database module must offer to the ledger: the few things for which databases need different SQL."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, FromClause, Index, Insert, Row, Select, Table
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.types import TypeEngine

from seckill.domain.item import NO_ITEM

T = TypeVar("T")

# A row with any columns.
AnyRow: TypeAlias = Row[*tuple[Any, ...]]
AnySelect: TypeAlias = Select[*tuple[Any, ...]]


# Number, round, user, quantity, slot, request id, epoch and time of an order; in a batch with items, the item as well.
OrderRow: TypeAlias = tuple[int, int, str, int, int, str, int, int] | tuple[int, int, str, int, int, str, int, int, int]


def item_of(row: OrderRow) -> int:
    return row[8] if len(row) > 8 else NO_ITEM


_ROUND_AND_EPOCH = itemgetter(1, 6)
_ROUND_EPOCH_AND_ITEM = itemgetter(1, 6, 8)


def kind_of(rows: Sequence[OrderRow]) -> "itemgetter[Any]":
    """Tells of each of these the round, the epoch and, in a batch with items, the item."""
    return _ROUND_EPOCH_AND_ITEM if rows and len(rows[0]) > 8 else _ROUND_AND_EPOCH


class ErrorMeaning(StrEnum):
    """What an error of the driver means to us."""

    UNAVAILABLE = "unavailable"  # repeating may work later
    COLLIDED = "collided"  # undone for the sake of another transaction: repeating may work at once
    REFUSED = "refused"  # the database does not accept the data
    UNSUITABLE = "unsuitable"  # wrong password, no such database: a person has to mend it


class Rows(Protocol):
    """Rows of values that a statement can select from. Its text is the same for any number of rows."""

    @property
    def table(self) -> FromClause: ...

    def bind(self, rows: Sequence[Sequence[object]]) -> dict[str, object]:
        """The parameters to execute the statement with."""


class Statement(Protocol):
    async def run(self, connection: AsyncConnection, parameters: Mapping[str, object]) -> Sequence[AnyRow]: ...


class NewOrders(NamedTuple):
    """How many new orders of a round, an epoch and an item were written. All cost the same and so have the same
    state."""

    round_id: int
    epoch: int
    state: str
    orders: int
    units: int
    item: int = NO_ITEM


class OrdersStatement(Protocol):
    async def run(
        self, connection: AsyncConnection, parameters: Mapping[str, object], rows: Sequence[OrderRow]
    ) -> Sequence[NewOrders]:
        """Runs the statement with the rows in `parameters`."""


class NewOrderEntries(Protocol):
    """Writes the feed entries of new orders, in one of two ways."""

    async def of_new(self, connection: AsyncConnection, numbers: Mapping[str, Sequence[int]]) -> None:
        """Writes them. `numbers`: the orders' numbers by state."""

    def insert_of(self, new: FromClause, listed: ColumnElement[str]) -> Insert:
        """Returns a statement that writes them from a table with the columns `WRITTEN`. `listed`: all its numbers, as
        JSON."""


# The columns from which the event of a new order is made.
WRITTEN = ("id", "state", "recorded_ms")


class Database(Protocol):
    @property
    def writers(self) -> AsyncEngine:
        """`begin()` is one writing transaction, durable when it is left."""

    @property
    def readers(self) -> AsyncEngine:
        """Each statement sees all that was committed before it."""

    @property
    def now_ms(self) -> ColumnElement[int]:
        """The database's clock, the same throughout a statement."""

    def rows(self, name: str, columns: Mapping[str, TypeEngine[Any]]) -> Rows: ...

    def among(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """True where the column's value is in the list given by the parameter `name`, which may have any length."""

    def from_the_end(
        self, found: AnySelect, index: Index, value: str, least: ColumnElement[int], below: ColumnElement[int]
    ) -> AnySelect:
        """Limits the selected rows to those where the last column but one of the index has this value and its last
        column is at least this and below that, the greatest first. It is phrased so that the planner takes this very
        index and begins at the first of these rows."""

    def insert_missing(
        self, table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]
    ) -> Statement:
        """Inserts the selected rows, skips those whose `key` exists already, and returns these columns of the new ones.
        Violating any other constraint is an error."""

    def insert_orders(
        self, source: AnySelect, events_of: Callable[[FromClause], Insert], entries: "NewOrderEntries"
    ) -> OrdersStatement:
        """Inserts the selected orders and skips those whose number exists already. For each new order it also inserts
        the event, which `events_of` makes from a table with the columns `WRITTEN`, and for all of them the feed
        entries. New orders are counted by item if their items are selected."""

    def update_returning(
        self, table: Table, where: ColumnElement[bool], values: Mapping[str, Any], returning: Sequence[str]
    ) -> Statement:
        """Changes the rows where the condition holds, and returns these columns with their new values."""

    async def together(
        self, connection: AsyncConnection, work: Callable[[AsyncConnection], Coroutine[Any, Any, T]]
    ) -> T:
        """What `work` does with the connection, and it may use nothing else of that than `execute`, `scalars` and
        `exec_driver_sql`, and await nothing else: where each statement has a long way, they share one."""

    def verdict(self, error: Exception) -> ErrorMeaning | None:
        """Returns None for an unexpected error, which must not be hidden."""

    def words(self, error: Exception) -> str:
        """Returns the driver's message in one line, without the values in it, which may be buyers' data."""

    @property
    def folder(self) -> Path | None:
        """The folder of its file, or None: a server tells no account of ours how full its disk is."""

    def is_new(self) -> bool:
        """Returns True if the database certainly has nothing in it yet. Asking does not create it."""

    async def lock_for_migration(self, connection: AsyncConnection) -> None:
        """Makes sure that no other process migrates until the end of the transaction."""

    async def close(self) -> None: ...
