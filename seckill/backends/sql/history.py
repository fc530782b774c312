"""The record as operators read it: the rounds of a sale, every event of an order, and what could not be written."""

from collections.abc import Sequence

from sqlalchemy import or_, select

from seckill.backends.sql.database import Database
from seckill.backends.sql.dead_letters import to_letter
from seckill.backends.sql.order_actions import to_action
from seckill.backends.sql.order_pages import OrderPages
from seckill.backends.sql.payments import select_refunds, to_capture, to_refund
from seckill.backends.sql.sales import select_rounds, select_rounds_between, to_sales
from seckill.backends.sql.tables import dead_letters, order_actions, order_events, payments, refunds, rounds, sales
from seckill.backends.sql.transactions import reading
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.dead_letter import Letter
from seckill.domain.order import Order
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.ports.history import Event, OrderFilter, Payment
from seckill.ports.order_action import RecordedAction
from seckill.ports.payment import Refund


class SqlHistory:
    """Implements `seckill.ports.history.History`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tasks = Calls()
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
        ids = (payments.c.id, payments.c.provider_ref)
        # Two queries, each with its index, instead of one with an OR, for which not every database uses both indexes.
        meant = select(payments.c.order_id.label("number"), *ids).where(database.among(payments.c.order_id, "numbers"))
        settling = select(payments.c.settles.label("number"), *ids).where(database.among(payments.c.settles, "also"))
        self._payment_ids = meant.union(settling).order_by("id")
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
        self._pages = OrderPages(database)
        self._refunds = (
            select_refunds().where(database.among(refunds.c.payment_id, "payment_ids")).order_by(refunds.c.id)
        )
        self._actions = (
            select(order_actions)
            .where(database.among(order_actions.c.order_id, "numbers"))
            .order_by(order_actions.c.id)
        )

    @to_the_end
    async def page(self, wanted: OrderFilter, after: OrderNumber | None, count: int) -> list[Order]:
        async with reading(self._database) as connection:
            return await self._pages.read(connection, wanted, after, count)

    @to_the_end
    async def rounds(self, sale_id: int, before: int | None, count: int) -> list[Sale]:
        async with reading(self._database) as connection:
            found = await connection.execute(select_rounds(sale_id, before, count))
            return await to_sales(connection, found.all())

    @to_the_end
    async def rounds_between(self, sale_id: int, since_ms: int, until_ms: int, count: int) -> list[Sale]:
        async with reading(self._database) as connection:
            found = await connection.execute(select_rounds_between(sale_id, since_ms, until_ms, count))
            return await to_sales(connection, found.all())

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
    async def actions(self, numbers: Sequence[OrderNumber]) -> dict[OrderNumber, list[RecordedAction]]:
        found: dict[OrderNumber, list[RecordedAction]] = {}
        async with reading(self._database) as connection:
            for row in await connection.execute(self._actions, {"numbers": [int(number) for number in numbers]}):
                found.setdefault(OrderNumber.from_int(row.order_id), []).append(to_action(row))
        return found

    @to_the_end
    async def payments(self, numbers: Sequence[OrderNumber]) -> list[Payment]:
        wanted = [int(number) for number in numbers]
        async with reading(self._database) as connection:
            taken = list(await connection.execute(self._payments, {"numbers": wanted, "also": wanted}))
            found = await connection.execute(self._refunds, {"payment_ids": [row.id for row in taken]})
            refunds_of: dict[int, list[Refund]] = {}
            for row in found:
                refunds_of.setdefault(row.payment_id, []).append(to_refund(row))
        return [
            Payment(
                number=OrderNumber.from_int(row.order_id),
                capture=to_capture(row),
                at_ms=row.created_ms,
                settles=None if row.settles is None else OrderNumber.from_int(row.settles),
                waits=row.next_ms is not None,
                refunds=refunds_of.get(row.id, ()),
            )
            for row in taken
        ]

    @to_the_end
    async def payment_ids(self, numbers: Sequence[OrderNumber]) -> dict[OrderNumber, list[str]]:
        wanted = [int(number) for number in numbers]
        found: dict[OrderNumber, list[str]] = {}
        async with reading(self._database) as connection:
            for row in await connection.execute(self._payment_ids, {"numbers": wanted, "also": wanted}):
                found.setdefault(OrderNumber.from_int(row.number), []).append(row.provider_ref)
        return found

    async def close(self) -> None:
        await self.tasks.close()
