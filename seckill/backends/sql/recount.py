"""Compares a round's counters with the sums of its rows."""

from sqlalchemy import and_, bindparam, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect
from seckill.backends.sql.end_orders import BURIED, RELEASE, holds_units
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.sales import to_round
from seckill.backends.sql.tables import orders, outbox, round_items, rounds
from seckill.domain.event import EventType
from seckill.domain.order import OrderState
from seckill.domain.sale import Counted


def select_counted() -> AnySelect:
    """Admitted orders include those of this epoch that were given up. A gate that went back in time admits other
    orders in place of the forgotten ones, for which the ledger has no room: unless those are counted, the loss would
    soon no longer show.

    Released units are those that were written and are no longer sold, except those not known to be passed on."""
    buried = (
        select(func.coalesce(func.sum(orders.c.quantity), 0))
        .where(orders.c.round_id == rounds.c.id, orders.c.state.in_((OrderState.FAILED, OrderState.REFUNDED)))
        .where(BURIED)
    )
    given_up = buried.where(orders.c.epoch == rounds.c.epoch).scalar_subquery()
    on_the_way = (
        select(func.coalesce(func.sum(orders.c.quantity), 0))
        .select_from(outbox.join(orders, orders.c.id == outbox.c.order_id))
        .where(outbox.c.round_id == rounds.c.id, outbox.c.kind == RELEASE, outbox.c.done_ms.is_(None), ~BURIED)
        .scalar_subquery()
    )
    return select(
        rounds.c.id,
        rounds.c.written,
        rounds.c.revision,
        rounds.c.synced_revision,
        rounds.c.epoch,
        (rounds.c.written + given_up).label("admitted"),
        (rounds.c.written - rounds.c.sold - on_the_way).label("released"),
        (rounds.c.written - rounds.c.sold + buried.scalar_subquery()).label("decided"),
    ).where(rounds.c.id.in_(bindparam("rounds", expanding=True)))


def to_counted(row: AnyRow) -> Counted:
    return Counted(
        written=row.written,
        admitted=int(row.admitted),
        released=int(row.released),
        decided=int(row.decided),
        revision=row.revision,
        synced_revision=row.synced_revision,
        epoch=row.epoch,
    )


async def recount(connection: AsyncConnection, entries: FeedEntries, round_id: int) -> bool:
    # Every transaction that changes orders changes this row last. As the row is locked before the orders are read, all
    # orders read are in the counters, and later transactions add theirs.
    locked = select(rounds).where(rounds.c.id == round_id).with_for_update()
    counted = (await connection.execute(locked)).one()
    units = func.coalesce(func.sum(case((holds_units(), orders.c.quantity))), 0)
    written = func.coalesce(func.sum(case((~BURIED, orders.c.quantity))), 0)
    found = (await connection.execute(select(units, written).where(orders.c.round_id == round_id))).one()
    sold_units, written_units = (int(value) for value in found)
    of_items = await _recount_items(connection, round_id) if counted.item_count else False
    if (sold_units, written_units) == (counted.sold, counted.written) and not of_items:
        return False
    await connection.execute(
        update(rounds).where(rounds.c.id == round_id).values(sold=sold_units, written=written_units)
    )
    await entries.round(connection, EventType.ROUND_RECOUNTED, await to_round(connection, counted))
    return True


async def _recount_items(connection: AsyncConnection, round_id: int) -> bool:
    """Returns whether one of them was wrong."""
    units = func.coalesce(func.sum(case((holds_units(), orders.c.quantity))), 0)
    of_item = and_(orders.c.round_id == round_items.c.round_id, orders.c.item_id == round_items.c.item_id)
    found = await connection.execute(
        select(round_items.c.item_id, round_items.c.sold, units.label("units"))
        .outerjoin(orders, of_item)
        .where(round_items.c.round_id == round_id)
        .group_by(round_items.c.item_id, round_items.c.sold)
        .order_by(round_items.c.item_id)
    )
    wrong = [row for row in found if row.sold != int(row.units)]
    for row in wrong:
        this = (round_items.c.round_id == round_id, round_items.c.item_id == row.item_id)
        await connection.execute(update(round_items).where(*this).values(sold=int(row.units)))
    return bool(wrong)
