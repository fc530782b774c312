"""The shop takes the money itself, and tells seckill; seckill says what has to go back."""

import asyncio
import json
import logging
import urllib.error
import urllib.request
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Row, select, update
from sqlalchemy.dialects.sqlite import insert

from seckill import OrderState
from teashop.people import SignedIn
from teashop.shop import OurShop, Shop
from teashop.signature import is_genuine, signed
from teashop.tables import payments, refunds
from teashop.views import CURRENCY, show

TELL_AGAIN_S = 2.0
ANSWER_WITHIN_S = 10.0
# With these seckill has not taken note of the money: to give it back is up to the shop.
NOT_NOTED = {"not_found", "wrong_amount", "payment_id_reused", "invalid"}

router = APIRouter()
log = logging.getLogger("teashop.money")


@router.get("/pay")
async def pay_page(request: Request, shop: OurShop, user: SignedIn, order_id: str) -> Response:
    """The sale's *Pay* leads here. Anybody can write such an address: what is due, and whether the order is this
    buyer's, the shop asks seckill with the buyer's token."""
    order = await user.in_seckill(shop).order(order_id)
    return show(request, "pay.html", order=order)


@router.post("/pay")
async def pay(shop: OurShop, user: SignedIn, order_id: Annotated[str, Form()]) -> Response:
    order = await user.in_seckill(shop).order(order_id)
    if order.state is OrderState.UNPAID:
        # One payment for an order, however often the button is pressed. Here a real shop asks its bank.
        payment = {"id": f"tea-{order_id}", "order_id": order_id, "amount_cents": order.price_cents, "is_told": False}
        async with shop.database.begin() as tx:
            await tx.execute(insert(payments).values(payment).on_conflict_do_nothing())
        await tell_all(shop)
    return RedirectResponse("/orders", 303)


async def keep_telling(shop: Shop) -> None:
    """What could not be told because seckill or the shop was away is told later."""
    while True:
        await tell_all(shop)
        await asyncio.sleep(TELL_AGAIN_S)


async def tell_all(shop: Shop) -> None:
    async with shop.database.connect() as connection:
        untold = (await connection.execute(select(payments).where(payments.c.is_told.is_(False)))).all()
    for payment in untold:
        status, code = await asyncio.to_thread(_tell, shop, payment)
        if status >= 500:
            continue  # not now: the same again, later
        async with shop.database.begin() as tx:
            await tx.execute(update(payments).where(payments.c.id == payment.id).values(is_told=True))
            if code in NOT_NOTED:
                log.error("seckill does not know order %s (%s): the money goes back", payment.order_id, code)
                row = {"id": f"ours-{payment.id}", "payment_id": payment.id, "amount_cents": payment.amount_cents}
                await tx.execute(insert(refunds).values(row).on_conflict_do_nothing())


def _tell(shop: Shop, payment: Row[Any]) -> tuple[int, str | None]:
    body = json.dumps(
        {
            "payment_id": payment.id,
            "order_id": payment.order_id,
            "amount_cents": payment.amount_cents,
            "currency": CURRENCY,
        }
    ).encode()
    headers = {"Seckill-Signature": signed(shop.settings.payment_secret, body), "Content-Type": "application/json"}
    request = urllib.request.Request(f"{shop.settings.seckill_url}/v1/payments/callback", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as answer:
            return answer.status, None
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read() or b"{}").get("code")
    except (OSError, ValueError):
        return 503, None


@router.post("/refunds")
async def make_refund(request: Request, shop: OurShop) -> Response:
    """`SECKILL_REFUND_URL`: seckill asks until it is answered with 2xx, so the same wish may come twice."""
    body = await request.body()
    if not is_genuine(shop.settings.payment_secret, request.headers.get("seckill-signature", ""), body):
        return Response(status_code=401)
    wish = json.loads(body)
    row = {"id": wish["refund_id"], "payment_id": wish["payment_id"], "amount_cents": wish["amount_cents"]}
    async with shop.database.begin() as tx:
        if await tx.scalar(select(payments.c.id).where(payments.c.id == wish["payment_id"])) is None:
            return Response(status_code=422)  # never ours: seckill tells its operators
        await tx.execute(insert(refunds).values(row).on_conflict_do_nothing())  # here a real shop asks its bank
    return Response(status_code=204)
