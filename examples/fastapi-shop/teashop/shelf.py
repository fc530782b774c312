"""Whose the units in the warehouse are: free to be bought, or set aside for a flash sale.

    free = stock - what is set aside for sales that are not settled

A unit that is set aside is never sold from the shelf, so both ways of selling can go on side by side.
"""

from sqlalchemy import ScalarSelect, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from teashop.tables import flash_sales, products


def _set_aside() -> ScalarSelect[int]:
    return (
        select(func.coalesce(func.sum(flash_sales.c.set_aside), 0))
        .where(flash_sales.c.product_id == products.c.id, flash_sales.c.is_settled.is_(False))
        .scalar_subquery()
    )


free = (products.c.stock - _set_aside()).label("free")


async def take(tx: AsyncConnection, product_id: str, units: int) -> bool:
    """Takes free units out of the stock. One statement, so that two buyers cannot have the same unit."""
    taken = await tx.execute(
        update(products)
        .where(products.c.id == product_id, products.c.stock - _set_aside() >= units)
        .values(stock=products.c.stock - units)
    )
    return taken.rowcount == 1


async def is_covered(tx: AsyncConnection, product_id: str) -> bool:
    """Whether there is as much of it as is set aside."""
    left: int | None = await tx.scalar(select(free).where(products.c.id == product_id))
    return left is not None and left >= 0


async def move(tx: AsyncConnection, flash_sale_id: str, product_id: str, units: int) -> None:
    """Units of a flash sale come back (or, if less than 0, are sold): they are still set aside for it."""
    await tx.execute(update(products).where(products.c.id == product_id).values(stock=products.c.stock + units))
    await tx.execute(
        update(flash_sales).where(flash_sales.c.id == flash_sale_id).values(set_aside=flash_sales.c.set_aside + units)
    )
