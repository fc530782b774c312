"""Rounds that are over: which of them are final, and which the gate may forget."""

from sqlalchemy import ColumnElement, and_, bindparam, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnySelect
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.limit_groups import is_needed
from seckill.backends.sql.sales import lock_catalogue, set_changed, to_round
from seckill.backends.sql.tables import dead_letters, orders, outbox, rounds
from seckill.domain.event import EventType
from seckill.domain.order import OrderState


def _restless() -> ColumnElement[bool]:
    """Whether anything of the round may still move."""
    unpaid = select(orders.c.id).where(orders.c.round_id == rounds.c.id, orders.c.state == OrderState.UNPAID)
    waiting = select(outbox.c.id).where(outbox.c.round_id == rounds.c.id, outbox.c.done_ms.is_(None))
    again = select(dead_letters.c.id).where(dead_letters.c.round_id == rounds.c.id, dead_letters.c.next_ms.is_not(None))
    return or_(unpaid.exists(), waiting.exists(), again.exists())


def select_over(before_ms: int, count: int) -> AnySelect:
    over = and_(rounds.c.retired_ms.is_(None), rounds.c.ends_ms < before_ms)
    in_force = and_(rounds.c.opened_ms.is_not(None), rounds.c.synced_revision == rounds.c.revision)
    return (
        select(rounds)
        .where(over, in_force, ~_restless(), ~is_needed(before_ms))
        .order_by(rounds.c.ends_ms)
        .limit(count)
    )


def select_to_forget(retired_before_ms: int, count: int) -> AnySelect:
    """Selects retired rounds that are still in the gate."""
    return (
        select(rounds)
        .where(rounds.c.retired_ms.is_not(None), rounds.c.opened_ms.is_not(None))
        .where(rounds.c.retired_ms < retired_before_ms)
        .order_by(rounds.c.retired_ms)
        .limit(count)
    )


def select_waiting() -> AnySelect:
    waiting = select(outbox.c.round_id).where(outbox.c.done_ms.is_(None)).order_by(outbox.c.id)
    oldest = waiting.limit(bindparam("count")).subquery()
    return select(rounds).where(rounds.c.id.in_(select(oldest.c.round_id)), rounds.c.retired_ms.is_(None))


async def retire(connection: AsyncConnection, entries: FeedEntries, round_id: int, now_ms: int) -> bool:
    version = await lock_catalogue(connection) + 1  # before the round, as in every transaction that needs both
    alive = and_(
        rounds.c.id == round_id,
        rounds.c.retired_ms.is_(None),
        # An operator may have moved its end meanwhile.
        rounds.c.ends_ms < now_ms,
        rounds.c.synced_revision == rounds.c.revision,
    )
    # Every worker that writes an order changes this row as well, so from here to the commit none does.
    locked = await connection.execute(select(rounds).where(alive).with_for_update())
    row = locked.one_or_none()
    stays = select(rounds.c.id).where(alive, or_(_restless(), is_needed(now_ms)))
    if row is None or (await connection.execute(stays)).first() is not None:
        return False
    await set_changed(connection, row.sale_id, version)
    await connection.execute(update(rounds).where(alive).values(retired_ms=now_ms))
    await entries.round(connection, EventType.ROUND_RETIRED, await to_round(connection, row))
    return True
