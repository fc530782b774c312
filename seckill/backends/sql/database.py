"""What every database must offer to the ledger: the little that cannot be said in the same SQL everywhere."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

from sqlalchemy import ColumnElement, FromClause, Index, Insert, Row, Select, Table
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.types import TypeEngine

from seckill.domain.item import NO_ITEM

# Of any columns.
AnyRow: TypeAlias = Row[*tuple[Any, ...]]
AnySelect: TypeAlias = Select[*tuple[Any, ...]]


# Number, round, user, quantity, slot, request id, epoch and time of an order; in a batch with items, the item as well.
OrderRow: TypeAlias = tuple[int, int, str, int, int, str, int, int] | tuple[int, int, str, int, int, str, int, int, int]


def item_of(row: OrderRow) -> int:
    return row[8] if len(row) > 8 else NO_ITEM


class ErrorMeaning(StrEnum):
    """What an error of the driver means to us."""

    UNAVAILABLE = "unavailable"  # the same again may work later
    COLLIDED = "collided"  # undone for the sake of another transaction: the same again may work at once
    REFUSED = "refused"  # the database looked at the data and said no
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
    """How many orders of a round, an epoch and an item were not there before. All have one state: they cost the
    same."""

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
        """`parameters` bring these rows."""


class NewOrderEntries(Protocol):
    """The entries in the feed that tell of new orders, in one of two ways."""

    async def of_new(self, connection: AsyncConnection, numbers: Mapping[str, Sequence[int]]) -> None:
        """Writes them. `numbers`: by the state of the orders."""

    def insert_of(self, new: FromClause, listed: ColumnElement[str]) -> Insert:
        """Writes them from a table with the columns `WRITTEN`. `listed`: its numbers together, as JSON."""


# What the event of a new order is made of.
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
        """True where the column is in the list that the parameter `name` brings, however many they are."""

    def from_the_end(
        self, found: AnySelect, index: Index, value: str, least: ColumnElement[int], below: ColumnElement[int]
    ) -> AnySelect:
        """Of the rows that are selected, those where the last column but one of the index has this value, and its last
        one is at least this and below that, the greatest first: phrased so that the planner takes this index, and no
        other, and begins at the first of them."""

    def insert_missing(
        self, table: Table, key: Sequence[str], source: AnySelect, returning: Sequence[str]
    ) -> Statement:
        """Inserts what is selected, passes over rows whose `key` is there already, and returns these columns
        of the new ones. Any other constraint that stands against a row is an error."""

    def insert_orders(
        self, source: AnySelect, events_of: Callable[[FromClause], Insert], entries: "NewOrderEntries"
    ) -> OrdersStatement:
        """Inserts the orders that are selected, and passes over those whose number is there already. With each new one
        comes its event, which `events_of` makes of a table with the columns `WRITTEN`, and with all of them the entries
        in the feed. They are counted by item if their items are selected."""

    def update_returning(
        self, table: Table, where: ColumnElement[bool], values: Mapping[str, Any], returning: Sequence[str]
    ) -> Statement:
        """Changes the rows where it holds, and returns these columns of them as they are then."""

    def verdict(self, error: Exception) -> ErrorMeaning | None:
        """None: unexpected, not to be explained away."""

    def words(self, error: Exception) -> str:
        """What the driver said, in a line, and without the data that it said it about: that is buyers' data."""

    def is_new(self) -> bool:
        """True if there is certainly nothing in it yet; asking does not create it."""

    async def lock_for_migration(self, connection: AsyncConnection) -> None:
        """From here to the end of the transaction no other process migrates."""

    async def close(self) -> None: ...
