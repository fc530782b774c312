"""The pools of codes: uploads, which count when they are complete, and redeemed codes."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    String,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow, AnySelect, Database
from seckill.backends.sql.end_orders import to_order
from seckill.backends.sql.feed_entries import FeedEntries
from seckill.backends.sql.operator_record import note
from seckill.backends.sql.sales import cover_rounds, lock_catalogue, select_sale, set_changed, to_sale
from seckill.backends.sql.tables import orders, rounds, voucher_uploads, vouchers
from seckill.backends.sql.transactions import reading, writing
from seckill.backends.sql.uncancelled_calls import Calls, to_the_end
from seckill.backends.sql.voucher_cover import counts_by_item, spare
from seckill.domain.item import NO_ITEM
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Sale
from seckill.domain.voucher import Pool, Voucher, VoucherState, spare_codes
from seckill.errors import UploadGivenUp
from seckill.failpoints import reached
from seckill.ports.vouchers import Clash, ClashKind, Redeemed, RedeemOutcome

# At most this many clashes of a portion are named.
CLASHES_MAX = 100

_ARRIVES = and_(voucher_uploads.c.complete_ms.is_(None), voucher_uploads.c.given_up_ms.is_(None))
_NOT_REDEEMED = {
    VoucherState.FREE: RedeemOutcome.NOT_GIVEN,
    VoucherState.REDEEMED: RedeemOutcome.REDEEMED,
    VoucherState.VOID: RedeemOutcome.VOID,
}


class _Clashes(Exception):
    """Leaves a transaction so that nothing of it remains."""

    def __init__(self, clashes: Sequence[Clash]) -> None:
        self.clashes = clashes


class SqlVouchers:
    """Implements `seckill.ports.vouchers.VoucherLedger`."""

    def __init__(self, database: Database, entries: FeedEntries, tasks: Calls) -> None:
        self.tasks = tasks
        self._database = database
        self._entries = entries
        self._arriving = arriving = database.rows("arriving", {"line": Integer(), "code": String(128)})
        source = (
            select(
                bindparam("sale", type_=BigInteger).label("sale_id"),
                bindparam("upload", type_=BigInteger).label("upload_id"),
                arriving.table.c.line,
                arriving.table.c.code,
            )
            .where(true())  # without a WHERE, SQLite takes the ON of ON CONFLICT for a join's
            .order_by(arriving.table.c.line)
        )
        self._insert = database.insert_missing(vouchers, ["code"], source, returning=["line"])
        uploads = voucher_uploads.c
        self._present = (
            select(
                arriving.table.c.line.label("line"),
                vouchers.c.id,
                vouchers.c.upload_id,
                vouchers.c.line.label("earlier"),
                uploads.complete_ms,
                uploads.given_up_ms,
            )
            .select_from(arriving.table)
            .join(vouchers, vouchers.c.code == arriving.table.c.code)
            .join(voucher_uploads, uploads.id == vouchers.c.upload_id)
        )
        self._delete = delete(vouchers).where(database.among(vouchers.c.id, "ids"))
        self._of_orders = _select_vouchers().where(database.among(vouchers.c.order_id, "numbers"))
        self._mark_shown = (
            update(vouchers)
            .where(database.among(vouchers.c.order_id, "numbers"), vouchers.c.shown_ms.is_(None))
            .values(shown_ms=database.now_ms)
        )

    @to_the_end
    async def begin_upload(self, sale_id: int, item: int = NO_ITEM) -> int:
        now_ms = self._database.now_ms
        async with writing(self._database) as connection:
            begun = await connection.execute(
                insert(voucher_uploads).values(
                    sale_id=sale_id, item_id=item or None, created_ms=now_ms, touched_ms=now_ms
                )
            )
            key: Any = begun.inserted_primary_key
            return int(key[0])

    @to_the_end
    async def add_codes(self, upload_id: int, codes: Sequence[tuple[int, str]]) -> Sequence[Clash]:
        if twice := _twice(codes):
            return twice
        try:
            async with writing(self._database) as connection:
                sale_id = await self._touch(connection, upload_id, len(codes))
                wanted = self._arriving.bind(codes) | {"sale": sale_id, "upload": upload_id}
                added = {row.line for row in await self._insert.run(connection, wanted)}
                if len(added) < len(codes):
                    await self._add_rest(
                        connection, upload_id, sale_id, [each for each in codes if each[0] not in added]
                    )
                reached("ledger.add_codes.inside")
                return ()
        except _Clashes as found:
            return found.clashes

    async def _add_rest(
        self, connection: AsyncConnection, upload_id: int, sale_id: int, codes: Sequence[tuple[int, str]]
    ) -> None:
        """Returns the existing codes that clash with these. Codes left from an abandoned upload are cleared away
        instead."""
        wanted = self._arriving.bind(codes)
        present = (await connection.execute(self._present, wanted)).all()
        if clashes := [_to_clash(row, upload_id) for row in present if row.given_up_ms is None]:
            raise _Clashes(sorted(clashes, key=lambda clash: clash.line)[:CLASHES_MAX])
        await connection.execute(self._delete, {"ids": [row.id for row in present]})
        added = await self._insert.run(connection, wanted | {"sale": sale_id, "upload": upload_id})
        if len(added) < len(codes):  # codes of yet another upload, which is under way
            missed = {line for line, _ in codes} - {row.line for row in added}
            raise _Clashes([Clash(line, ClashKind.OTHER_UPLOAD) for line in sorted(missed)[:CLASHES_MAX]])

    async def _touch(self, connection: AsyncConnection, upload_id: int, added: int) -> int:
        """Returns the upload's sale."""
        this = voucher_uploads.c.id == upload_id
        touched = await connection.execute(
            update(voucher_uploads)
            .where(this, _ARRIVES)
            .values(touched_ms=self._database.now_ms, codes=voucher_uploads.c.codes + added)
        )
        if touched.rowcount != 1:
            raise UploadGivenUp
        return int((await connection.execute(select(voucher_uploads.c.sale_id).where(this))).scalar_one())

    @to_the_end
    async def complete_upload(self, upload_id: int) -> Sale | None:
        this = voucher_uploads.c.id == upload_id
        async with writing(self._database) as connection:
            version = await lock_catalogue(connection) + 1
            completed = await connection.execute(
                update(voucher_uploads).where(this, _ARRIVES).values(complete_ms=self._database.now_ms)
            )
            if completed.rowcount != 1:
                raise UploadGivenUp
            upload = (await connection.execute(select(voucher_uploads).where(this))).one()
            sale = await self._cover(connection, upload.sale_id, version)
            facts = {"codes": upload.codes, "item": upload.item_id}
            await note(connection, self._database, "vouchers.uploaded", upload_id, sale_id=upload.sale_id, after=facts)
            reached("ledger.complete_upload.inside")
            return sale

    async def _cover(self, connection: AsyncConnection, sale_id: int, version: int) -> Sale | None:
        if not await cover_rounds(connection, self._database, self._entries, sale_id):
            return None
        await set_changed(connection, sale_id, version)
        return await to_sale(connection, (await connection.execute(select_sale(sale_id))).one())

    @to_the_end
    async def cover_rounds(self) -> Sequence[Sale]:
        waiting = rounds.c.covered == 0
        on = and_(waiting, rounds.c.retired_ms.is_(None), rounds.c.ends_ms > self._database.now_ms)
        async with reading(self._database) as connection:
            first = select(rounds.c.sale_id, func.min(rounds.c.id).label("id")).where(on).group_by(rounds.c.sale_id)
            found = (await connection.execute(first)).all()
            ready = [
                row.sale_id
                for row in found
                if await spare(connection, self._database, row.sale_id, also=rounds.c.id == row.id) >= 0
            ]
        sales = []
        for sale_id in ready:
            async with writing(self._database) as connection:
                version = await lock_catalogue(connection) + 1
                if (sale := await self._cover(connection, sale_id, version)) is not None:
                    sales.append(sale)
        return sales

    @to_the_end
    async def give_up_upload(self, upload_id: int) -> None:
        await self._give_up(voucher_uploads.c.id == upload_id)

    async def _give_up(self, these: ColumnElement[bool]) -> None:
        async with writing(self._database) as connection:
            await connection.execute(
                update(voucher_uploads).where(these, _ARRIVES).values(given_up_ms=self._database.now_ms)
            )

    @to_the_end
    async def clear_uploads(self, idle_s: float, count: int) -> int:
        silent = and_(_ARRIVES, voucher_uploads.c.touched_ms < self._database.now_ms - int(idle_s * 1000))
        given_up = and_(voucher_uploads.c.complete_ms.is_(None), voucher_uploads.c.given_up_ms.is_not(None))
        # Looks without the writers' lock, since there is usually nothing to do.
        async with reading(self._database) as connection:
            is_silent = (await connection.execute(select(voucher_uploads.c.id).where(silent).limit(1))).first()
        if is_silent is not None:
            await self._give_up(silent)
        async with reading(self._database) as connection:
            upload_id = (await connection.scalars(select(voucher_uploads.c.id).where(given_up).limit(1))).first()
        if upload_id is None:
            return 0
        left = select(vouchers.c.id).where(vouchers.c.upload_id == upload_id, vouchers.c.order_id.is_(None))
        async with writing(self._database) as connection:
            ids = list(await connection.scalars(left.order_by(vouchers.c.id).limit(count)))
            if ids:
                await connection.execute(self._delete, {"ids": ids})
            else:
                await connection.execute(delete(voucher_uploads).where(voucher_uploads.c.id == upload_id))
            return len(ids)

    @to_the_end
    async def pool(self, sale_id: int) -> Pool:
        v = vouchers.c
        uploads = select(voucher_uploads.c.id).where(
            voucher_uploads.c.sale_id == sale_id, voucher_uploads.c.complete_ms.is_not(None)
        )
        valid = v.void_ms.is_(None)
        counted = select(
            func.count().label("codes"),
            func.count(case((v.order_id.is_(None), 1))).label("free"),
            func.count(case((and_(v.order_id.is_not(None), valid, v.redeemed_ms.is_(None)), 1))).label("given"),
            func.count(case((and_(valid, v.redeemed_ms.is_not(None)), 1))).label("redeemed"),
            func.count(v.void_ms).label("void"),
        ).where(v.upload_id.in_(uploads))
        alive = and_(rounds.c.retired_ms.is_(None), rounds.c.ends_ms > self._database.now_ms)
        async with reading(self._database) as connection:
            row = (await connection.execute(counted)).one()
            by_item = await counts_by_item(connection, self._database, sale_id, also=alive)
        return Pool(**row._mapping, missing=max(0, -spare_codes(by_item)), by_item=by_item)

    @to_the_end
    async def show(self, numbers: Sequence[OrderNumber]) -> Mapping[OrderNumber, Sequence[Voucher]]:
        these = {"numbers": [int(number) for number in numbers]}
        async with reading(self._database) as connection:
            found = (await connection.execute(self._of_orders, these)).all()
        if any(row.shown_ms is None for row in found):
            # Marked first and then read again: a refund that came before has taken the code back, so it is not shown.
            async with writing(self._database) as connection:
                marked = await connection.execute(self._mark_shown, these)
                found = (await connection.execute(self._of_orders, these)).all()
                if marked.rowcount:
                    of = {row.sale_id for row in found}
                    sale_id = of.pop() if len(of) == 1 else None
                    count = {"codes": marked.rowcount}
                    await note(connection, self._database, "vouchers.shown", "", sale_id=sale_id, after=count)
        shown: dict[OrderNumber, list[Voucher]] = {}
        for row in found:
            shown.setdefault(OrderNumber.from_int(row.order_id), []).append(to_voucher(row))
        return shown

    @to_the_end
    async def voucher(self, code: str) -> Voucher | None:
        async with reading(self._database) as connection:
            return await _voucher(connection, code)

    @to_the_end
    async def redeem(self, code: str) -> Redeemed:
        v, now_ms = vouchers.c, self._database.now_ms
        this = and_(v.code == code, v.order_id.is_not(None), v.void_ms.is_(None), v.redeemed_ms.is_(None))
        async with writing(self._database) as connection:
            redeemed = await connection.execute(
                update(vouchers).where(this).values(redeemed_ms=now_ms, shown_ms=func.coalesce(v.shown_ms, now_ms))
            )
            voucher = await _voucher(connection, code)
            if voucher is None:
                return Redeemed(RedeemOutcome.UNKNOWN, None)
            if redeemed.rowcount != 1:
                return Redeemed(_NOT_REDEEMED[voucher.state], voucher)
            assert voucher.number is not None, "what is redeemed has an order"
            row = (await connection.execute(select(orders).where(orders.c.id == int(voucher.number)))).one()
            await self._entries.voucher_redeemed(connection, to_order(row), voucher.id)
            # The record names the code's number only: the code itself is as good as money.
            await note(
                connection,
                self._database,
                "voucher.redeemed",
                voucher.id,
                sale_id=voucher.sale_id,
                after={"order_number": str(int(voucher.number))},
            )
            reached("ledger.redeem.inside")
            return Redeemed(RedeemOutcome.DONE, voucher)


def _twice(codes: Sequence[tuple[int, str]]) -> list[Clash]:
    """Returns codes that occur twice in one portion, which one statement writes."""
    lines: dict[str, int] = {}
    found = []
    for line, code in codes:
        if lines.setdefault(code, line) != line:
            found.append(Clash(line, ClashKind.SAME_UPLOAD, lines[code]))
    return found[:CLASHES_MAX]


def _to_clash(row: AnyRow, upload_id: int) -> Clash:
    if row.complete_ms is not None:
        return Clash(row.line, ClashKind.POOL)
    if row.upload_id == upload_id:
        return Clash(row.line, ClashKind.SAME_UPLOAD, row.earlier)
    return Clash(row.line, ClashKind.OTHER_UPLOAD)


def _select_vouchers() -> AnySelect:
    return (
        select(vouchers, orders.c.user_id).outerjoin(orders, orders.c.id == vouchers.c.order_id).order_by(vouchers.c.id)
    )


async def _voucher(connection: AsyncConnection, code: str) -> Voucher | None:
    """Returns a voucher of a complete upload."""
    complete = select(voucher_uploads.c.id).where(
        voucher_uploads.c.id == vouchers.c.upload_id, voucher_uploads.c.complete_ms.is_not(None)
    )
    found = await connection.execute(_select_vouchers().where(vouchers.c.code == code, complete.exists()))
    row = found.one_or_none()
    return None if row is None else to_voucher(row)


def to_voucher(row: AnyRow) -> Voucher:
    return Voucher(
        id=row.id,
        sale_id=row.sale_id,
        code=row.code,
        number=None if row.order_id is None else OrderNumber.from_int(row.order_id),
        user=row.user_id,
        given_ms=row.given_ms,
        shown_ms=row.shown_ms,
        redeemed_ms=row.redeemed_ms,
        void_ms=row.void_ms,
    )
