"""seckill's webhooks: who has paid, or has money coming back, gets a letter."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy.dialects.sqlite import insert

from seckill.client import WebhookNotGenuine, verify_webhook
from teashop.shop import OurShop, Shop
from teashop.tables import letters, note, noted
from teashop.views import money
from teashop.words import in_both

PATH = "/webhooks/seckill"
SECRET = "webhook-secret"  # noqa: S105 (the name of the note)
TEXTS = {
    "order.paid": "Thank you! Your order {order_id} is paid, and on its way.",
    "refund.done": "{amount} of your order {order_id} are on their way back to you.",
}

router = APIRouter()


async def register(shop: Shop) -> None:
    """Once, at the first start: seckill shows the secret when it makes it, and never again."""
    url = f"{shop.settings.url}{PATH}"
    async with shop.database.connect() as connection:
        if await noted(connection, SECRET) is not None:
            return
    known = next((webhook for webhook in await shop.seckill.webhooks() if webhook.url == url), None)
    # Known, and we have no secret: we were stopped before it was noted.
    made = await (
        shop.seckill.create_webhook(url, types=sorted(TEXTS), description="Letters to buyers")
        if known is None
        else shop.seckill.rotate_webhook(known.id, overlap_hours=0)
    )
    async with shop.database.begin() as tx:
        await note(tx, SECRET, str(made.secret))


@router.post(PATH)
async def receive(request: Request, shop: OurShop) -> Response:
    async with shop.database.begin() as tx:
        secret = await noted(tx, SECRET)
        if secret is None:
            return Response(status_code=503)  # a moment too early: it comes again
        try:
            event = verify_webhook(await request.body(), request.headers, secret)
        except WebhookNotGenuine:
            return Response(status_code=401)
        if event.type in TEXTS:
            amount = money(event.data.get("amount_cents", 0))
            # Nobody knows here which language the buyer reads.
            text = in_both(TEXTS[event.type], order_id=event.data["order_id"], amount=amount)
            row = {"webhook_id": event.id, "order_id": event.data["order_id"], "text": text}
            # The id is the same however often it is sent. A real shop sends its mail from this table.
            await tx.execute(insert(letters).values(row).on_conflict_do_nothing())
    return Response(status_code=204)
