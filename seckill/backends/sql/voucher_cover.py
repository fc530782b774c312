"""Whether a sale that gives codes has enough of them.

A round becomes covered once there is a free code for each of its units that may still be paid for, and for those of all
rounds of its sale that were covered before. The gate keeps a round closed until then. From then on a code can never be
missing: a payment takes one unit and one code, and everything else that takes codes or adds units asks here first, with
the catalogue locked.
"""

from sqlalchemy import BigInteger, ColumnElement, and_, func, literal, or_, select, union_all, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import Database
from seckill.backends.sql.tables import orders, round_items, rounds, voucher_uploads, vouchers
from seckill.domain.item import NO_ITEM
from seckill.domain.order import OrderState
from seckill.domain.voucher import CodeCount, spare_codes

# This long after a round's end, all orders that the gate admitted are written, so its remaining units need no codes.
OVER_FOR_MS = 600_000


async def counts_by_item(
    connection: AsyncConnection, database: Database, sale_id: int, also: ColumnElement[bool] | None = None
) -> dict[int, CodeCount]:
    """Counts the sale's free codes, and the codes needed by its covered rounds and by those in `also`. It is one
    statement, so that no payment can come between the counts."""
    counted = rounds.c.covered == 1 if also is None else or_(rounds.c.covered == 1, also)
    these = and_(rounds.c.sale_id == sale_id, counted)
    sells = and_(these, rounds.c.retired_ms.is_(None), rounds.c.ends_ms + OVER_FOR_MS > database.now_ms)
    none, no_item = literal(0, BigInteger), literal(NO_ITEM, BigInteger)
    of_round = round_items.c.round_id == rounds.c.id
    of_order = func.coalesce(orders.c.item_id, no_item)
    of_code = func.coalesce(voucher_uploads.c.item_id, no_item)
    counts = union_all(
        select(of_code.label("item"), func.count().label("free"), none.label("needed"))
        .join(vouchers, vouchers.c.upload_id == voucher_uploads.c.id)
        .where(voucher_uploads.c.sale_id == sale_id, voucher_uploads.c.complete_ms.is_not(None))
        .where(vouchers.c.order_id.is_(None))
        .group_by(of_code),
        select(no_item, none, func.coalesce(func.sum(rounds.c.total - rounds.c.sold), 0)).where(
            sells, rounds.c.item_count == 0
        ),
        select(round_items.c.item_id, none, func.sum(round_items.c.total - round_items.c.sold))
        .join(rounds, of_round)
        .where(sells)
        .group_by(round_items.c.item_id),
        select(of_order, none, func.sum(orders.c.quantity))
        .join(rounds, rounds.c.id == orders.c.round_id)
        .where(these, orders.c.state == OrderState.UNPAID)
        .group_by(of_order),
    )
    found: dict[int, CodeCount] = {}
    for item, free, needed in await connection.execute(counts):
        before = found.get(item, CodeCount(0, 0))
        found[item] = CodeCount(before.free + int(free), before.needed + int(needed))
    return found


async def spare(
    connection: AsyncConnection, database: Database, sale_id: int, also: ColumnElement[bool] | None = None
) -> int:
    """Returns how many codes no unit of these rounds needs. A negative number says how many are missing."""
    return spare_codes(await counts_by_item(connection, database, sale_id, also))


async def cover(connection: AsyncConnection, database: Database, sale_id: int) -> list[int]:
    """Lets rounds that wait for codes open, in order, as far as the codes suffice. The catalogue is locked. Returns
    these rounds."""
    waiting = select(rounds.c.id).where(
        rounds.c.sale_id == sale_id, rounds.c.covered == 0, rounds.c.retired_ms.is_(None)
    )
    covered = []
    for round_id in list(await connection.scalars(waiting.order_by(rounds.c.ordinal))):
        this = rounds.c.id == round_id
        if await spare(connection, database, sale_id, also=this) < 0:
            break
        await connection.execute(update(rounds).where(this).values(covered=1, revision=rounds.c.revision + 1))
        covered.append(round_id)
    return covered
