"""A round's counters, and what its rows add up to."""

from sqlalchemy import and_, bindparam, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.domain import Counted, OrderState
from seckill.ledgers.database import AnyRow, AnySelect
from seckill.ledgers.endings import RELEASE
from seckill.ledgers.tables import orders, outbox, rounds

_LIVE = (OrderState.UNPAID, OrderState.PAID)
# A row that no worker has written, but who gave its entry up, never had a time to pay and was not free.
_BURIED = and_(orders.c.expires_ms.is_(None), orders.c.paid_ms.is_(None))


def select_counted() -> AnySelect:
    """Admitted: also those of this epoch that were given up. A gate that went back in time makes up for what it has
    forgotten by admitting others, which the ledger has no room for: without them, the loss would soon not show.

    Released: what was written and is not sold any more, except what is not known to be relayed."""
    given_up = (
        select(func.coalesce(func.sum(orders.c.quantity), 0))
        .where(orders.c.round_id == rounds.c.id, orders.c.state.in_((OrderState.FAILED, OrderState.REFUNDED)))
        .where(orders.c.epoch == rounds.c.epoch, _BURIED)
        .scalar_subquery()
    )
    on_the_way = (
        select(func.coalesce(func.sum(orders.c.quantity), 0))
        .select_from(outbox.join(orders, orders.c.id == outbox.c.order_id))
        .where(outbox.c.round_id == rounds.c.id, outbox.c.kind == RELEASE, outbox.c.done_ms.is_(None), ~_BURIED)
        .scalar_subquery()
    )
    return select(
        rounds.c.id,
        rounds.c.written,
        rounds.c.synced_revision,
        rounds.c.epoch,
        (rounds.c.written + given_up).label("admitted"),
        (rounds.c.written - rounds.c.sold - on_the_way).label("released"),
    ).where(rounds.c.id.in_(bindparam("rounds", expanding=True)))


def to_counted(row: AnyRow) -> Counted:
    return Counted(
        written=row.written,
        admitted=int(row.admitted),
        released=int(row.released),
        synced_revision=row.synced_revision,
        epoch=row.epoch,
    )


async def recount(connection: AsyncConnection, round_id: int) -> bool:
    # Whoever changes orders changes this row last, in the same transaction. With the row locked before the orders are
    # read, all that is read is in the counters, and whatever comes later adds itself.
    locked = select(rounds.c.sold, rounds.c.written).where(rounds.c.id == round_id).with_for_update()
    counted = (await connection.execute(locked)).one()
    units = func.coalesce(func.sum(case((orders.c.state.in_(_LIVE), orders.c.quantity))), 0)
    written = func.coalesce(func.sum(case((~_BURIED, orders.c.quantity))), 0)
    found = (await connection.execute(select(units, written).where(orders.c.round_id == round_id))).one()
    sold_units, written_units = (int(value) for value in found)
    if (sold_units, written_units) == tuple(counted):
        return False
    await connection.execute(
        update(rounds).where(rounds.c.id == round_id).values(sold=sold_units, written=written_units)
    )
    return True
