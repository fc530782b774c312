"""The record as operators read it: the rounds of a sale, every event of an order, and what could not be written."""

import asyncio
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Integer, Select, bindparam, or_, select, union_all

from seckill.backends.sql.database import Database
from seckill.backends.sql.dead_letters import to_letter
from seckill.backends.sql.errors import reading
from seckill.backends.sql.payments import select_refunds, to_capture, to_refund
from seckill.backends.sql.sales import select_rounds, to_sale
from seckill.backends.sql.tables import dead_letters, order_events, orders, payments, refunds, rounds, sales
from seckill.backends.sql.uncancelled_calls import to_the_end
from seckill.domain.dead_letter import Letter
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.ports.history import Event, Payment


class SqlHistory:
    """Implements `seckill.ports.history.History`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tasks: set[asyncio.Task[Any]] = set()
        self._events = (
            select(order_events)
            .where(database.among(order_events.c.order_id, "numbers"))
            .order_by(order_events.c.order_id, order_events.c.id)
        )
        self._letters = (
            select(dead_letters)
            .where(database.among(dead_letters.c.order_id, "numbers"))
            .order_by(dead_letters.c.order_id, dead_letters.c.id)
        )
        self._payments = (
            select(payments)
            .where(or_(database.among(payments.c.order_id, "numbers"), database.among(payments.c.settles, "also")))
            .order_by(payments.c.id)
        )
        self._ordinals = (
            select(rounds.c.id, rounds.c.ordinal)
            .join(sales, sales.c.id == rounds.c.sale_id)
            .where(database.among(rounds.c.id, "round_ids"), sales.c.repeat.is_not(None))
        )
        self._latest = _select_latest(database)
        self._refunds = select_refunds().where(database.among(refunds.c.payment_id, "payment_ids"))

    @to_the_end
    async def latest(self, round_id: int, count: int) -> list[OrderNumber]:
        wanted = {"round_id": round_id, "count": count}
        async with reading(self._database) as connection:
            return [OrderNumber.from_int(number) for number in await connection.scalars(self._latest, wanted)]

    @to_the_end
    async def rounds(self, sale_id: int, before: int | None, count: int) -> list[Sale]:
        async with reading(self._database) as connection:
            return [to_sale(row) for row in await connection.execute(select_rounds(sale_id, before, count))]

    @to_the_end
    async def ordinals(self, round_ids: Sequence[int]) -> dict[int, int]:
        async with reading(self._database) as connection:
            found = await connection.execute(self._ordinals, {"round_ids": list(round_ids)})
            return {row.id: row.ordinal for row in found}

    @to_the_end
    async def events(self, numbers: Sequence[OrderNumber]) -> dict[OrderNumber, list[Event]]:
        found: dict[OrderNumber, list[Event]] = {}
        async with reading(self._database) as connection:
            for row in await connection.execute(self._events, {"numbers": [int(number) for number in numbers]}):
                event = Event(
                    number=OrderNumber.from_int(row.order_id),
                    from_state=row.from_state,
                    to_state=row.to_state,
                    at_ms=row.at_ms,
                    cause=row.cause,
                )
                found.setdefault(event.number, []).append(event)
        return found

    @to_the_end
    async def letters(self, numbers: Sequence[OrderNumber]) -> dict[OrderNumber, list[Letter]]:
        found: dict[OrderNumber, list[Letter]] = {}
        async with reading(self._database) as connection:
            for row in await connection.execute(self._letters, {"numbers": [int(number) for number in numbers]}):
                found.setdefault(OrderNumber.from_int(row.order_id), []).append(to_letter(row))
        return found

    @to_the_end
    async def payments(self, numbers: Sequence[OrderNumber]) -> list[Payment]:
        wanted = [int(number) for number in numbers]
        async with reading(self._database) as connection:
            taken = list(await connection.execute(self._payments, {"numbers": wanted, "also": wanted}))
            found = await connection.execute(self._refunds, {"payment_ids": [row.id for row in taken]})
            refunds_of = {row.payment_id: to_refund(row) for row in found}
        return [
            Payment(
                number=OrderNumber.from_int(row.order_id),
                capture=to_capture(row),
                at_ms=row.created_ms,
                settles=None if row.settles is None else OrderNumber.from_int(row.settles),
                waits=row.next_ms is not None,
                refund=refunds_of.get(row.id),
            )
            for row in taken
        ]

    async def close(self) -> None:
        if self.tasks:
            await asyncio.wait(self.tasks)


def _select_latest(database: Database) -> Select[int]:
    """The newest of each state by the index that every order has anyway, and of those the newest."""
    count = bindparam("count", type_=Integer)
    by_state = []
    for state in OrderState:
        if state is not OrderState.QUEUED:  # which no row is
            condition, order = database.from_the_end(orders.c.state, state, orders.c.id)
            found = select(orders.c.id).where(orders.c.round_id == bindparam("round_id"), condition)
            by_state.append(found.order_by(*order).limit(count).subquery())
    newest = union_all(*(select(found.c.id) for found in by_state)).subquery()
    return select(newest.c.id).order_by(newest.c.id.desc()).limit(count)
