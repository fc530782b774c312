"""The record as operators read it: the rounds of a sale, every event of an order, and what could not be written."""

import asyncio
from collections.abc import Sequence
from typing import Any

from sqlalchemy import or_, select

from seckill.domain import Sale
from seckill.insight import Event, Payment
from seckill.ledgers.catalogue import select_rounds, to_sale
from seckill.ledgers.database import Database
from seckill.ledgers.edge import reading
from seckill.ledgers.letters import to_letter
from seckill.ledgers.payments import select_refunds, to_capture, to_refund
from seckill.ledgers.tables import dead_letters, order_events, orders, payments, refunds
from seckill.ledgers.tasks import to_the_end
from seckill.letters import Letter
from seckill.numbers import COUNTER_MAX, ORIGIN_S, OrderNumber

# How many orders, of whichever round, are looked through for the newest of one. No index leads from a round to its
# newest order, and one that every order has to keep would cost more than operators' looks are worth.
LOOKED_THROUGH_MAX = 2000
_LANE_MAX = 255
_SECONDS_MAX = (1 << 31) - 1


class SqlHistory:
    """Implements `seckill.insight.History`."""

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
        self._refunds = select_refunds().where(database.among(refunds.c.payment_id, "payment_ids"))

    @to_the_end
    async def latest(self, round_id: int, until_ms: int, count: int) -> list[OrderNumber]:
        # A sale may be announced to end later than order numbers reach.
        last = OrderNumber(min(until_ms // 1000 - ORIGIN_S, _SECONDS_MAX), _LANE_MAX, COUNTER_MAX)
        newest = (
            select(orders.c.id, orders.c.round_id)
            .where(orders.c.id <= int(last))
            .order_by(orders.c.id.desc())
            .limit(LOOKED_THROUGH_MAX)
            .subquery()
        )
        wanted = select(newest.c.id).where(newest.c.round_id == round_id).order_by(newest.c.id.desc()).limit(count)
        async with reading(self._database) as connection:
            return [OrderNumber.from_int(number) for number in await connection.scalars(wanted)]

    @to_the_end
    async def rounds(self, sale_id: int, before: int | None, count: int) -> list[Sale]:
        async with reading(self._database) as connection:
            return [to_sale(row) for row in await connection.execute(select_rounds(sale_id, before, count))]

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
