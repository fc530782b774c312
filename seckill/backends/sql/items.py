"""The items of sales, and the units of each that a round has. A sale without items costs no statement."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill.backends.sql.database import AnyRow
from seckill.backends.sql.tables import items, round_items, rounds
from seckill.domain.item import Item, ItemDraft, ItemUnits


async def insert_items(connection: AsyncConnection, sale_id: int, drafts: Sequence[ItemDraft]) -> None:
    rows = [
        {
            "sale_id": sale_id,
            "place": place,
            "title": draft.title,
            "units": draft.units,
            "price_cents": draft.price_cents,
            "external_id": draft.external_id,
            "image": draft.image,
        }
        for place, draft in enumerate(drafts)
    ]
    if rows:
        await connection.execute(insert(items), rows)


async def deal_items(connection: AsyncConnection, sale_id: int, ordinal: int) -> None:
    """Gives a new round the units with which every round of its sale begins."""
    of_round = (rounds.c.sale_id == sale_id, rounds.c.ordinal == ordinal)
    begins_with = select(rounds.c.id, items.c.id, items.c.units).where(items.c.sale_id == rounds.c.sale_id, *of_round)
    columns = ["round_id", "item_id", "total"]
    dealt = await connection.execute(insert(round_items).from_select(columns, begins_with))
    if dealt.rowcount:
        await connection.execute(update(rounds).where(*of_round).values(item_count=dealt.rowcount))


async def read_items(connection: AsyncConnection, rows: Sequence[AnyRow]) -> dict[int, tuple[Item, ...]]:
    """Of the sales of these rounds, by sale."""
    sale_ids = {row.sale_id for row in rows if row.item_count}
    found: dict[int, list[Item]] = {}
    if sale_ids:
        wanted = select(items).where(items.c.sale_id.in_(sale_ids)).order_by(items.c.sale_id, items.c.place)
        for row in await connection.execute(wanted):
            found.setdefault(row.sale_id, []).append(_to_item(row))
    return {sale_id: tuple(each) for sale_id, each in found.items()}


async def read_units(connection: AsyncConnection, rows: Sequence[AnyRow]) -> dict[int, tuple[ItemUnits, ...]]:
    """Returns the units of the rounds in these rows, by round."""
    round_ids = {row.id for row in rows if row.item_count}
    found: dict[int, list[ItemUnits]] = {}
    if round_ids:
        wanted = select(round_items).where(round_items.c.round_id.in_(round_ids))
        for row in await connection.execute(wanted.order_by(round_items.c.round_id, round_items.c.item_id)):
            found.setdefault(row.round_id, []).append(ItemUnits(row.item_id, row.total))
    return {round_id: tuple(each) for round_id, each in found.items()}


async def change_items(
    connection: AsyncConnection,
    round_id: int,
    of_items: Mapping[int, Mapping[str, Any]],
    totals: Mapping[int, int],
) -> None:
    for item_id, values in sorted(of_items.items()):
        await connection.execute(update(items).where(items.c.id == item_id).values(**values))
    for item_id, total in sorted(totals.items()):
        this = (round_items.c.round_id == round_id, round_items.c.item_id == item_id)
        await connection.execute(update(round_items).where(*this).values(total=total))


def _to_item(row: AnyRow) -> Item:
    return Item(
        id=row.id,
        title=row.title,
        units=row.units,
        price_cents=row.price_cents,
        external_id=row.external_id,
        image=row.image,
    )
