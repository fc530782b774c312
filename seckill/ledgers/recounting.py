"""A round's counters, and what its rows add up to."""

from collections.abc import Sequence

from sqlalchemy import and_, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.domain import OrderState
from seckill.ledgers.database import AnySelect
from seckill.ledgers.tables import orders, rounds

_LIVE = (OrderState.UNPAID, OrderState.PAID)
# A row that no worker has written, but who gave its entry up, never had a time to pay and was not free.
_BURIED = and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


def select_written(round_ids: Sequence[int]) -> AnySelect:
    """With those of this epoch that were given up. A gate that went back in time makes up for what it has forgotten by
    admitting others, which the ledger has no room for: counted without them, the loss would soon not show any more."""
    given_up = (
        select(func.coalesce(func.sum(orders.c.quantity), 0))
        .where(orders.c.round_id == rounds.c.id, orders.c.state.in_((OrderState.FAILED, OrderState.REFUNDED)))
        .where(orders.c.epoch == rounds.c.epoch, _BURIED)
        .scalar_subquery()
    )
    return select(rounds.c.id, (rounds.c.written + given_up).label("units")).where(rounds.c.id.in_(round_ids))


async def recount(connection: AsyncConnection, round_id: int) -> bool:
    # Whoever changes orders changes this row last, in the same transaction. With the row locked before the orders are
    # read, all that is read is in the counters, and whatever comes later adds itself.
    locked = select(rounds.c.sold, rounds.c.written).where(rounds.c.id == round_id).with_for_update()
    counted = (await connection.execute(locked)).one()
    units = func.coalesce(func.sum(orders.c.quantity).filter(orders.c.state.in_(_LIVE)), 0)
    written = func.coalesce(func.sum(orders.c.quantity).filter(~_BURIED), 0)
    found = (await connection.execute(select(units, written).where(orders.c.round_id == round_id))).one()
    sold_units, written_units = (int(value) for value in found)
    if (sold_units, written_units) == tuple(counted):
        return False
    await connection.execute(
        update(rounds).where(rounds.c.id == round_id).values(sold=sold_units, written=written_units)
    )
    return True
