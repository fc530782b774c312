"""Orders page by page, newest first. For every kind of question, an index leads to the next page."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, bindparam, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnySelect, Database
from seckill.backends.sql.end_orders import to_order
from seckill.backends.sql.tables import ORDERS_BY_STATE, orders, rounds
from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import ORIGIN_S, OrderNumber
from seckill.ports.history import OrderFilter

# Numbers have 63 bits, and times are milliseconds.
_BEYOND = (1 << 63) - 1
# A number contains the second in which its order was admitted, so orders of a time are looked up by number. The range
# is made a little wider, because the gate's clock may have been set.
_SLACK_MS = 3_600_000
_WRITTEN = [state for state in OrderState if state is not OrderState.QUEUED]


class OrderPages:
    """The statements, made once."""

    def __init__(self, database: Database) -> None:
        # By state (None for any) and by whether one item is wanted.
        self._of_round: dict[tuple[OrderState | None, bool], AnySelect] = {
            (state, of_item): _select_of_round(database, _WRITTEN if state is None else [state], of_item=of_item)
            for state in (None, *_WRITTEN)
            for of_item in (False, True)
        }
        self._by_number = select(orders).where(database.among(orders.c.id, "numbers"))

    async def read(
        self, connection: AsyncConnection, wanted: OrderFilter, after: OrderNumber | None, count: int
    ) -> list[Order]:
        """Reads a sale's orders, round after round, newest first."""
        if wanted.user is not None or (wanted.sale_id is None and wanted.round_id is None):
            found = await connection.execute(_select_anywhere(wanted, after, count))
            return [to_order(row) for row in found]
        numbers: list[int] = []
        for round_id, below in await self._rounds(connection, wanted, after):
            statement = self._of_round[wanted.state, wanted.item is not None]
            room = {"round_id": round_id, "count": count - len(numbers), "item": wanted.item}
            numbers += list(await connection.scalars(statement, room | _bounds(wanted, below)))
            if len(numbers) == count:
                break
        if not numbers:
            return []
        rows = {row.id: row for row in await connection.execute(self._by_number, {"numbers": numbers})}
        return [to_order(rows[number]) for number in numbers]

    async def _rounds(
        self, connection: AsyncConnection, wanted: OrderFilter, after: OrderNumber | None
    ) -> list[tuple[int, int]]:
        """Returns the rounds that may have wanted orders, newest first, each with an upper bound for its order
        numbers."""
        these = select(rounds.c.id, rounds.c.sale_id).order_by(rounds.c.ordinal.desc(), rounds.c.id)
        if wanted.sale_id is not None:
            these = these.where(rounds.c.sale_id == wanted.sale_id)
        if wanted.round_id is not None:
            these = these.where(rounds.c.id == wanted.round_id)
        found = [row.id for row in await connection.execute(these)]
        if after is None:
            return [(round_id, _BEYOND) for round_id in found]
        of_last = select(orders.c.round_id).where(orders.c.id == int(after))
        last = (await connection.scalars(of_last)).one_or_none()
        if last not in found:
            return []
        following = found[found.index(last) :]
        return [(round_id, int(after) if round_id == last else _BEYOND) for round_id in following]


def _select_of_round(database: Database, states: Sequence[OrderState], *, of_item: bool) -> AnySelect:
    """Selects the newest orders of each state, with the index that every order has anyway, and of those the newest.
    Items have no index, because it would cost every order something; so in a round with 50 items, one page means
    looking through 50."""
    count = bindparam("count", type_=Integer)
    least, below = bindparam("least", type_=BigInteger), bindparam("below", type_=BigInteger)
    o = orders.c
    by_state = []
    of_round = select(o.id).where(
        o.round_id == bindparam("round_id", type_=BigInteger),
        o.created_ms >= bindparam("since_ms", type_=BigInteger),
        o.created_ms < bindparam("until_ms", type_=BigInteger),
    )
    if of_item:
        of_round = of_round.where(o.item_id == bindparam("item", type_=BigInteger))
    for state in states:
        found = database.from_the_end(of_round, ORDERS_BY_STATE, state, least, below)
        by_state.append(found.limit(count).subquery())
    newest = union_all(*(select(found.c.id) for found in by_state)).subquery()
    return select(newest.c.id).order_by(newest.c.id.desc()).limit(count)


def _bounds(wanted: OrderFilter, below: int) -> dict[str, int]:
    since_ms = 0 if wanted.since_ms is None else wanted.since_ms
    until_ms = _BEYOND if wanted.until_ms is None else wanted.until_ms
    least = 0 if wanted.since_ms is None else _number_at(since_ms - _SLACK_MS)
    last = _BEYOND if wanted.until_ms is None else _number_at(until_ms + _SLACK_MS)
    return {"since_ms": since_ms, "until_ms": until_ms, "least": least, "below": min(below, last)}


def _number_at(ms: int) -> int:
    """Returns the first number that can have been given out at that time."""
    return min(max(ms // 1000 - ORIGIN_S, 0), _BEYOND >> 32) << 32


def _select_anywhere(wanted: OrderFilter, after: OrderNumber | None, count: int) -> AnySelect:
    o = orders.c
    bounds = _bounds(wanted, _BEYOND if after is None else int(after))
    conditions: list[ColumnElement[Any]] = [o.id < bounds["below"], o.id >= bounds["least"]]
    if wanted.since_ms is not None or wanted.until_ms is not None:
        conditions += [o.created_ms >= bounds["since_ms"], o.created_ms < bounds["until_ms"]]
    for column, value in (
        (o.user_id, wanted.user),
        (o.sale_id, wanted.sale_id),
        (o.round_id, wanted.round_id),
        (o.item_id, wanted.item),
        (o.state, wanted.state),
    ):
        if value is not None:
            conditions.append(column == value)
    return select(orders).where(*conditions).order_by(o.id.desc()).limit(count)
