"""Pages of a provider's on which orders can be paid."""

from typing import Any

from sqlalchemy import BigInteger, Integer, String, Text, bindparam, literal, null, select, update

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.due_rows import DueRows
from seckill.backends.sql.end_orders import to_order
from seckill.backends.sql.tables import checkouts, orders
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.domain.order_number import OrderNumber
from seckill.ports.payment import Checkout, OpenCheckout


class SqlCheckouts:
    """Implements `seckill.ports.payment.CheckoutLedger`."""

    def __init__(self, database: Database, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        self._note = database.insert_missing(
            checkouts, ["provider", "ref", "on_phone"], _new_checkout(database), returning=["id"]
        )
        self._due = DueRows(checkouts.c.id, checkouts.c.next_ms, database)

    @to_the_end
    async def checkout(self, number: OrderNumber, provider: str, *, on_phone: bool) -> Checkout | None:
        good = select(checkouts).where(
            checkouts.c.order_id == int(number),
            checkouts.c.provider == provider,
            checkouts.c.on_phone == int(on_phone),
            checkouts.c.until_ms > self._database.now_ms,
        )
        async with reading(self._database) as connection:
            row = (await connection.execute(good.order_by(checkouts.c.id.desc()).limit(1))).one_or_none()
        return None if row is None else Checkout(ref=row.ref, address=row.address, until_ms=row.until_ms)

    @to_the_end
    async def note_checkout(
        self, number: OrderNumber, provider: str, checkout: Checkout, *, on_phone: bool, look_after_s: float
    ) -> None:
        noted = {
            "number": int(number),
            "of_provider": provider,
            "of_ref": checkout.ref,
            "phone": int(on_phone),
            "at": checkout.address,
            "good_until_ms": checkout.until_ms,
            "after_ms": int(look_after_s * 1000),
        }
        async with writing(self._database) as connection:
            if await self._note.run(connection, noted):
                return
            # The page exists already: it has a new address, or two requests came at once.
            await connection.execute(
                update(checkouts)
                .where(
                    checkouts.c.provider == provider,
                    checkouts.c.ref == checkout.ref,
                    checkouts.c.on_phone == int(on_phone),
                )
                .values(address=checkout.address, until_ms=checkout.until_ms)
            )

    @to_the_end
    async def take_checkouts(self, count: int, lease_s: float) -> list[OpenCheckout]:
        if not await self._due.is_any():
            return []
        async with writing(self._database) as connection:
            ids = await self._due.take(connection, count)
            these = checkouts.c.id.in_(ids)
            taken = {"next_ms": self._after(lease_s), "attempts": checkouts.c.attempts + 1}
            await connection.execute(update(checkouts).where(these).values(taken))
            found = await connection.execute(
                select(
                    orders,
                    checkouts.c.id.label("checkout_id"),
                    checkouts.c.provider,
                    checkouts.c.ref,
                    checkouts.c.attempts,
                )
                .join_from(checkouts, orders, orders.c.id == checkouts.c.order_id)
                .where(these)
                .order_by(checkouts.c.id)
            )
            return [_to_open(row) for row in found]

    @to_the_end
    async def put_off_checkout(self, checkout_id: int, after_s: float) -> None:
        await self._look(checkout_id, self._after(after_s))

    @to_the_end
    async def checkout_over(self, checkout_id: int) -> None:
        await self._look(checkout_id, null())

    async def _look(self, checkout_id: int, next_ms: Any) -> None:
        this = checkouts.c.id == checkout_id
        async with writing(self._database) as connection:
            await connection.execute(
                update(checkouts).where(this, checkouts.c.next_ms.is_not(None)).values(next_ms=next_ms)
            )

    def _after(self, seconds: float) -> Any:
        return self._database.now_ms + int(seconds * 1000)


def _new_checkout(database: Database) -> AnySelect:
    return select(
        bindparam("number", type_=BigInteger).label("order_id"),
        bindparam("of_provider", type_=String).label("provider"),
        bindparam("of_ref", type_=String).label("ref"),
        bindparam("phone", type_=Integer).label("on_phone"),
        bindparam("at", type_=Text).label("address"),
        bindparam("good_until_ms", type_=BigInteger).label("until_ms"),
        literal(0).label("attempts"),
        (database.now_ms + bindparam("after_ms", type_=BigInteger)).label("next_ms"),
        database.now_ms.label("created_ms"),
    ).where(literal(True))  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's


def _to_open(row: AnyRow) -> OpenCheckout:
    return OpenCheckout(
        id=row.checkout_id, provider=row.provider, ref=row.ref, order=to_order(row), attempts=row.attempts
    )
