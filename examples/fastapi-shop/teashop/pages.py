"""What everybody sees: the goods, a product with its flash sale, and one's own orders."""

import secrets
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.dialects.sqlite import insert

from teashop.people import SignedIn
from teashop.shelf import free, take
from teashop.shop import OurShop
from teashop.tables import flash_sales, orders, payments, products, refunds
from teashop.views import show

router = APIRouter()


def is_current() -> ColumnElement[bool]:
    """Of a flash sale: it is announced, and not over."""
    return and_(flash_sales.c.sale_id.is_not(None), flash_sales.c.ends_at > datetime.now(UTC))


# Of an order, in the shop's own books.
refunded = (
    select(func.coalesce(func.sum(refunds.c.amount_cents), 0))
    .join(payments, payments.c.id == refunds.c.payment_id)
    .where(payments.c.order_id == orders.c.id)
    .scalar_subquery()
    .label("refunded_cents")
)


@router.get("/")
async def all_goods(request: Request, shop: OurShop) -> Response:
    async with shop.database.connect() as connection:
        goods = (await connection.execute(select(products, free).order_by(products.c.title))).all()
        on_sale = set(await connection.scalars(select(flash_sales.c.product_id).where(is_current())))
    return show(request, "goods.html", goods=goods, on_sale=on_sale)


@router.get("/products/{product_id}")
async def product_page(request: Request, shop: OurShop, product_id: str) -> Response:
    async with shop.database.connect() as connection:
        product = (await connection.execute(select(products, free).where(products.c.id == product_id))).first()
        next_sale = select(flash_sales).where(flash_sales.c.product_id == product_id, is_current())
        sale = (await connection.execute(next_sale.order_by(flash_sales.c.begins_at))).first()
    if product is None:
        raise HTTPException(404, "We have no such thing.")
    key, seckill_url = secrets.token_urlsafe(), shop.settings.seckill_url
    return show(request, "product.html", product=product, sale=sale, key=key, seckill_url=seckill_url)


@router.post("/products/{product_id}/buy")
async def buy(
    shop: OurShop, user: SignedIn, product_id: str, key: Annotated[str, Form()], colour: Annotated[str, Form()] = ""
) -> Response:
    """From the shelf, at the usual price, without seckill. The key of the form makes one order of two presses."""
    async with shop.database.begin() as tx:
        product = (await tx.execute(select(products).where(products.c.id == product_id))).first()
        if product is None:
            raise HTTPException(404, "We have no such thing.")
        if colour not in product.colours.split(","):
            raise HTTPException(422, "Choose one of its colours.")
        price = product.price_cents
        order = {"id": f"shelf-{key}", "buyer": str(user.id), "product_id": product_id, "quantity": 1, "held": 1}
        order |= {"colour": colour, "price_cents": price, "state": "paid", "at": datetime.now(UTC)}
        payment = {"id": f"tea-shelf-{key}", "order_id": order["id"], "amount_cents": price, "is_told": True}
        is_new = (await tx.execute(insert(orders).values(order).on_conflict_do_nothing())).rowcount == 1
        if is_new:
            await tx.execute(insert(payments).values(payment))
            if not await take(tx, product_id, 1):
                raise HTTPException(409, "The last one has just been sold.")  # and nothing of this is kept
    return RedirectResponse("/orders", 303)


@router.get("/orders")
async def my_orders(request: Request, shop: OurShop, user: SignedIn) -> Response:
    """As the shop knows them: those of flash sales come with seckill's events."""
    is_paid = select(payments.c.id).where(payments.c.order_id == orders.c.id).exists().label("has_payment")
    mine = select(orders, products.c.title, refunded, is_paid).join(products).where(orders.c.buyer == str(user.id))
    async with shop.database.connect() as connection:
        found = (await connection.execute(mine.order_by(orders.c.at.desc()))).all()
    return show(request, "orders.html", orders=found)
