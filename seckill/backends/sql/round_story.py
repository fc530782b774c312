"""How a round went, from its orders."""

from itertools import accumulate

from sqlalchemy import BigInteger, cast, func, literal, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.end_orders import holds_units
from seckill.backends.sql.tables import orders, rounds
from seckill.ports.story import RoundStory

_o = orders.c


async def read_story(connection: AsyncConnection, round_id: int, steps: int) -> RoundStory:
    of_round = _o.round_id == round_id
    counts = select(
        func.min(_o.created_ms).label("first_ms"),
        func.max(_o.created_ms).label("last_ms"),
        func.count().label("orders"),
        func.coalesce(func.sum(_o.quantity), 0).label("units"),
    ).where(of_round)
    row = (await connection.execute(counts)).one()
    held = select(func.coalesce(func.sum(_o.quantity), 0)).where(of_round, holds_units())
    returned = int(row.units) - int((await connection.execute(held)).scalar_one())
    return RoundStory(
        first_ms=row.first_ms,
        last_ms=row.last_ms,
        gone_ms=await (_gone_ms_with_returns if returned else _gone_ms)(connection, round_id),
        orders=row.orders,
        units=int(row.units),
        returned=returned,
        curve=await _curve(connection, round_id, row.first_ms, row.last_ms, steps) if row.orders else (),
    )


async def _gone_ms(connection: AsyncConnection, round_id: int) -> int | None:
    """When the last unit went, by the numbers of the orders, which rise within a lane; over several lanes, by their
    seconds."""
    so_far = func.sum(_o.quantity).over(order_by=_o.id)
    given = select(_o.created_ms, so_far.label("so_far")).where(_o.round_id == round_id).subquery()
    total = select(rounds.c.total).where(rounds.c.id == round_id).scalar_subquery()
    wanted = select(func.min(given.c.created_ms)).where(given.c.so_far >= total)
    found: int | None = (await connection.execute(wanted)).scalar_one()
    return found


async def _gone_ms_with_returns(connection: AsyncConnection, round_id: int) -> int | None:
    """When nothing was left, in a round with returned units. This goes by the clock, because no number tells when a
    unit came back."""
    of_round = _o.round_id == round_id
    given = select(_o.created_ms.label("at_ms"), _o.quantity.label("units")).where(of_round)
    back = select(_o.closed_ms, -_o.quantity).where(of_round, ~holds_units(), _o.closed_ms.is_not(None))
    turn = union_all(given, back).subquery()
    out = func.sum(turn.c.units).over(order_by=(turn.c.at_ms, turn.c.units))  # at the same time, returns come first
    standing = select(turn.c.at_ms, out.label("out")).subquery()
    total = select(rounds.c.total).where(rounds.c.id == round_id).scalar_subquery()
    wanted = select(func.min(standing.c.at_ms)).where(standing.c.out >= total)
    found: int | None = (await connection.execute(wanted)).scalar_one()
    return found


async def _curve(
    connection: AsyncConnection, round_id: int, first_ms: int, last_ms: int, steps: int
) -> tuple[int, ...]:
    width_ms = max(1, -(-(last_ms - first_ms + 1) // steps))
    since = _o.created_ms - literal(first_ms, BigInteger)
    # Without a remainder the division is exact, however a database divides integers.
    step = cast((since - since % width_ms) / width_ms, BigInteger).label("step")
    wanted = select(step, func.sum(_o.quantity).label("units")).where(_o.round_id == round_id).group_by(step)
    units = {int(row.step): int(row.units) for row in await connection.execute(wanted)}
    return tuple(accumulate(units.get(number, 0) for number in range(steps)))
