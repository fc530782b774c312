"""Assigns codes to orders, in the same transaction that decides about the order."""

from collections.abc import Sequence
from itertools import repeat

from sqlalchemy import BigInteger, and_, bindparam, func, null, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, Database
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.tables import orders, rounds, sales, voucher_uploads, vouchers
from seckill.backends.sql.transactions import LedgerCollided
from seckill.domain.event import EventType
from seckill.domain.item import NO_ITEM
from seckill.domain.order import Order, OrderState
from seckill.domain.voucher import USED_SINCE
from seckill.errors import LedgerRefused
from seckill.failpoints import reached


class VoucherGifts:
    """The statements, made once; the methods execute them in the caller's transaction."""

    def __init__(self, database: Database, entries: FeedEntries) -> None:
        self._database = database
        self._entries = entries
        self._last_upload: dict[tuple[int, int], int] = {}  # the upload that had free codes last time, by sale and item
        self._gives = (
            select(sales.c.id)
            .join(rounds, rounds.c.sale_id == sales.c.id)
            .where(rounds.c.id == bindparam("round", type_=BigInteger), sales.c.vouchers == 1)
        )
        self._without_code = select(orders.c.id, orders.c.quantity, orders.c.item_id).where(
            database.among(orders.c.id, "numbers"),
            orders.c.round_id == bindparam("round", type_=BigInteger),
            orders.c.state == OrderState.PAID,
            orders.c.active_slot.is_not(None),
            ~select(vouchers.c.id).where(vouchers.c.order_id == orders.c.id).exists(),
        )
        self._uploads = (
            select(voucher_uploads.c.id, voucher_uploads.c.item_id)
            .where(
                voucher_uploads.c.sale_id == bindparam("sale", type_=BigInteger),
                voucher_uploads.c.complete_ms.is_not(None),
            )
            .order_by(voucher_uploads.c.id)
        )
        of_upload = vouchers.c.upload_id == bindparam("upload", type_=BigInteger)
        self._free = (
            select(vouchers.c.id)
            .where(of_upload, vouchers.c.order_id.is_(None))
            .order_by(vouchers.c.id)
            .limit(bindparam("count"))
            # Several transactions take different codes instead of waiting for each other. In SQLite only one runs at a
            # time.
            .with_for_update(skip_locked=True)
        )
        self._count_free = select(func.count()).where(of_upload, vouchers.c.order_id.is_(None))
        given = database.rows("given", {"voucher_id": BigInteger(), "number": BigInteger()})
        self._given = given
        # In a separate SELECT the time is computed once and not for every row.
        now_ms = select(database.now_ms).scalar_subquery()
        self._give = (
            update(vouchers)
            # Not by `order_id`: to use its index, MariaDB would look at and lock every free code. And with a list of
            # the codes that are meant: for a join, it would read all codes if there are a few hundred, and wait for
            # each one that another transaction has taken.
            .where(
                vouchers.c.id == given.table.c.voucher_id,
                database.among(vouchers.c.id, "taken"),
                vouchers.c.given_ms.is_(None),
            )
            .values(order_id=given.table.c.number, given_ms=now_ms)
        )

    async def give_to_new(self, connection: AsyncConnection, round_id: int, numbers: Sequence[int]) -> None:
        """Gives codes to those orders that have just been written as paid. An order written before got its codes then,
        and may have lost them again."""
        sale_id = await self.sale_of(connection, round_id)
        if sale_id is None:
            return
        found = await connection.execute(self._without_code, {"numbers": list(numbers), "round": round_id})
        await self._give_all(connection, sale_id, sorted(found.all()))

    async def give(self, connection: AsyncConnection, row: AnyRow) -> None:
        """Gives codes to an order that has just been paid."""
        sale_id = await self.sale_of(connection, row.round_id)
        if sale_id is not None:
            await self._give_all(connection, sale_id, [(row.id, row.quantity, row.item_id)])

    async def sale_of(self, connection: AsyncConnection, round_id: int) -> int | None:
        """Returns the round's sale, if it gives codes. Asked each time: the ledger may have been restored from an older
        copy while this process runs on, so that the same number now means another round."""
        return (await connection.scalars(self._gives, {"round": round_id})).one_or_none()

    async def _give_all(
        self, connection: AsyncConnection, sale_id: int, to: Sequence[AnyRow | tuple[int, int, int | None]]
    ) -> None:
        owners: dict[int, list[int]] = {}  # by item
        for number, quantity, item in to:
            owners.setdefault(item or NO_ITEM, []).extend(repeat(number, quantity))
        for item, of_item in sorted(owners.items()):
            taken = await self._take(connection, sale_id, item, len(of_item))
            pairs = self._given.bind(list(zip(taken, of_item, strict=True)))
            given = await connection.execute(self._give, pairs | {"taken": taken})
            if given.rowcount != len(of_item):
                raise LedgerCollided("Others were taking the same codes, try again.")
        if owners:
            await self._entries.orders(connection, EventType.VOUCHER_GIVEN, [number for number, *_ in to])
            reached("ledger.give.inside")

    async def _take(self, connection: AsyncConnection, sale_id: int, item: int, count: int) -> list[int]:
        """Takes this many free codes, locked until the commit, and first those for this item alone."""
        complete = (await connection.execute(self._uploads, {"sale": sale_id})).all()
        last = self._last_upload.get((sale_id, item))
        groups = [
            [row.id for row in complete if (row.item_id or NO_ITEM) == of] for of in dict.fromkeys((item, NO_ITEM))
        ]
        uploads = [each for group in groups for each in sorted(group, key=lambda upload: upload != last)]
        taken: list[int] = []
        for upload in uploads:
            wanted = {"upload": upload, "count": count - len(taken)}
            found = list(await connection.scalars(self._free, wanted))
            taken += found
            if len(taken) == count:
                self._last_upload[sale_id, item] = upload
                return taken
        # Other transactions may have locked some, and may still release them.
        free = 0
        for upload in uploads:
            free += int((await connection.execute(self._count_free, {"upload": upload})).scalar_one())
        if free >= count:
            raise LedgerCollided("Others are taking the last codes of this sale, try again.")
        for_item = f" for item {item}" if item else ""
        raise LedgerRefused(
            f"Sale {sale_id} has {free} free codes left{for_item}, and {count} are needed: upload more."
        )

    async def take_back(self, connection: AsyncConnection, order: Order, *, units_back: bool) -> int:
        """Takes back the codes of a paid order that is refunded, or whose units go back on sale. `domain/voucher.py`
        decides which go back into the pool and which become void. Returns how many void ones would be needed for these
        units."""
        this = and_(vouchers.c.order_id == int(order.number), vouchers.c.void_ms.is_(None))
        returned = 0
        if units_back:
            unused = and_(this, *(vouchers.c[moment].is_(None) for moment in USED_SINCE))
            back = await connection.execute(update(vouchers).where(unused).values(order_id=null(), given_ms=null()))
            returned = back.rowcount
        ended = await connection.execute(update(vouchers).where(this).values(void_ms=self._database.now_ms))
        if returned or ended.rowcount:
            await self._entries.vouchers_voided(connection, order, void=ended.rowcount, returned=returned)
        return ended.rowcount if units_back else 0
