"""The money that sales have taken, calculated from payments and refunds."""

from collections.abc import Sequence

from sqlalchemy import and_, case, func, select

from seckill.backends.sql.database import Database
from seckill.backends.sql.tables import orders, payments, refunds, rounds
from seckill.backends.sql.transactions import reading
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.ports.takings import Takings


class SqlTakings:
    """Implements `seckill.ports.takings.TakingsLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database

    @to_the_end
    async def takings(self, sale_id: int, round_id: int | None) -> list[Takings]:
        of_sale = rounds.c.sale_id == sale_id
        if round_id is not None:
            of_sale = and_(of_sale, rounds.c.id == round_id)
        # Counted for the order that the provider has named: late money may pay for another round's order in the end.
        paid = (
            select(payments.c.id, payments.c.currency, payments.c.amount_cents)
            .join(orders, orders.c.id == payments.c.order_id)
            .join(rounds, rounds.c.id == orders.c.round_id)
            .where(of_sale)
            .subquery()
        )
        waits = case((refunds.c.done_ms.is_(None), refunds.c.amount_cents), else_=0)
        back = (
            select(paid.c.currency, func.sum(refunds.c.amount_cents).label("back"), func.sum(waits).label("waits"))
            .join(refunds, refunds.c.payment_id == paid.c.id)
            .group_by(paid.c.currency)
        )
        taken = select(paid.c.currency, func.sum(paid.c.amount_cents).label("taken")).group_by(paid.c.currency)
        async with reading(self._database) as connection:
            # Refunds are read first: one that is decided meanwhile may be missing, but none can be without its payment.
            refunded = {row.currency: (int(row.back), int(row.waits)) for row in await connection.execute(back)}
            found = await connection.execute(taken.order_by(paid.c.currency))
            return [
                Takings(
                    currency=row.currency,
                    taken_cents=int(row.taken),
                    refunded_cents=refunded.get(row.currency, (0, 0))[0],
                    refunding_cents=refunded.get(row.currency, (0, 0))[1],
                )
                for row in found
            ]

    @to_the_end
    async def sold(self, round_ids: Sequence[int]) -> dict[int, int]:
        if not round_ids:
            return {}
        wanted = select(rounds.c.id, rounds.c.sold).where(rounds.c.id.in_(list(round_ids)))
        async with reading(self._database) as connection:
            return {row.id: row.sold for row in await connection.execute(wanted)}
