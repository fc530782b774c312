"""For the people of the shop: flash sales are announced here, and orders refunded."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Row, String, cast, delete, select, update

from seckill.client import Refused
from teashop.pages import refunded
from teashop.people import Staff
from teashop.shelf import free, is_covered
from teashop.shop import OurShop, Shop
from teashop.tables import flash_sales, letters, orders, products, users
from teashop.views import CURRENCY, show

PAY_WITHIN_S = 10 * 60
PICTURES = Path(__file__).parent / "static"

router = APIRouter(prefix="/staff")


@router.get("")
async def desk(request: Request, shop: OurShop, user: Staff) -> Response:
    all_orders = (
        select(orders, products.c.title, users.c.name, refunded)
        .join(products)
        .outerjoin(users, cast(users.c.id, String) == orders.c.buyer)
        .order_by(orders.c.at.desc())
        .limit(100)
    )
    async with shop.database.connect() as connection:
        goods = (await connection.execute(select(products, free).order_by(products.c.title))).all()
        sales = (await connection.execute(select(flash_sales).order_by(flash_sales.c.begins_at.desc()))).all()
        orders_ = (await connection.execute(all_orders)).all()
        letters_ = (await connection.execute(select(letters).limit(100))).all()
    key = secrets.token_urlsafe()
    return show(request, "staff.html", goods=goods, sales=sales, orders=orders_, letters=letters_, key=key)


@router.post("/sales")
async def announce(
    shop: OurShop,
    user: Staff,
    key: Annotated[str, Form()],
    product_id: Annotated[str, Form()],
    units: Annotated[int, Form(ge=1)],
    price_cents: Annotated[int, Form(ge=1)],
    in_minutes: Annotated[float, Form(ge=0)] = 0,
    minutes: Annotated[float, Form(gt=0)] = 60,
) -> Response:
    """First the units are set aside, then the sale is announced: never the other way round, or they could be sold
    twice in between."""
    begins_at = datetime.now(UTC) + timedelta(minutes=in_minutes)
    async with shop.database.begin() as tx:
        known = await tx.scalar(select(flash_sales.c.id).where(flash_sales.c.id == key))
        if known is None:
            sale = {"id": key, "product_id": product_id, "units": units, "price_cents": price_cents}
            sale |= {"begins_at": begins_at, "ends_at": begins_at + timedelta(minutes=minutes), "set_aside": units}
            await tx.execute(flash_sales.insert().values(sale))
            if not await is_covered(tx, product_id):
                raise HTTPException(409, "There are not so many free units of it.")  # and nothing is set aside
    await announce_all(shop)
    return RedirectResponse(f"/products/{product_id}", 303)


async def announce_all(shop: Shop) -> None:
    """Also those that were set aside before the shop was stopped: with its key, a sale is announced once."""
    unannounced = select(
        flash_sales, products.c.title, products.c.text, products.c.colours, products.c.price_cents.label("list_price")
    )
    async with shop.database.connect() as connection:
        found = (await connection.execute(unannounced.join(products).where(flash_sales.c.sale_id.is_(None)))).all()
    for sale in found:
        await _announce(shop, sale)


def _items(sale: Row[Any]) -> list[dict[str, Any]] | None:
    """Of a product with colours: so many of each, as even as it can be. Each buyer gets one, of whichever colour."""
    colours = sale.colours.split(",")[: sale.units] if sale.colours else []
    each, more = divmod(sale.units, len(colours)) if colours else (0, 0)
    return [
        {"title": colour, "units": each + (place < more), "external_id": f"{sale.product_id}-{colour}"}
        for place, colour in enumerate(colours)
    ] or None


async def _announce(shop: Shop, sale: Row[Any]) -> None:
    try:
        picture = await shop.seckill.upload_image((PICTURES / f"{sale.product_id}.webp").read_bytes())
        made = await shop.seckill.create_sale(
            sale.title,
            units=sale.units,
            items=_items(sale),
            price_cents=sale.price_cents,
            currency=CURRENCY,
            begins_at=sale.begins_at.replace(tzinfo=UTC),
            ends_at=sale.ends_at.replace(tzinfo=UTC),
            pay_within_s=PAY_WITHIN_S,
            external_id=sale.id,
            metadata={"sku": sale.product_id},
            description=sale.text,
            images=[picture.url],
            list_price_cents=max(sale.list_price, sale.price_cents),
            delivery="Sent within two days.",
            return_url=f"{shop.settings.url}/products/{sale.product_id}",
            key=sale.id,
        )
    except Refused:
        async with shop.database.begin() as tx:  # nothing was announced: the units are free again
            await tx.execute(delete(flash_sales).where(flash_sales.c.id == sale.id))
        raise
    async with shop.database.begin() as tx:
        await tx.execute(update(flash_sales).where(flash_sales.c.id == sale.id).values(sale_id=made.id))


@router.post("/orders/{order_id}/refund")
async def refund(
    shop: OurShop,
    user: Staff,
    order_id: str,
    key: Annotated[str, Form()],
    reason: Annotated[str, Form(min_length=1, max_length=255)],
    amount_cents: Annotated[int | None, Form(ge=1)] = None,
    return_unit: Annotated[bool, Form()] = False,
) -> Response:
    """seckill decides, and asks `money.make_refund` for the money. With the key of the form, two presses are one."""
    await shop.seckill.refund_order(
        order_id, reason=reason, return_unit=return_unit, amount_cents=amount_cents, key=f"{order_id}-{key}"
    )
    return RedirectResponse("/staff", 303)
