"""Follows seckill's events: the stock and the list of orders go by them.

What was done about some events, and the cursor after them, are one transaction of the shop's database. So whatever
stops in between, each event counts once.
"""

import asyncio
import logging
from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from seckill import OrderState
from seckill.client import ClientError, Conflict, Event, ExportedOrder
from teashop.shelf import move
from teashop.shop import Shop
from teashop.tables import flash_sales, note, noted, orders

CURSOR = "cursor"
TYPES = ["order.*", "refund.requested", "round.retired"]
WAIT_S = 20.0
PAUSE_S = 1.0
# What an order in this state has taken out of the stock. The others keep what they had.
HOLDS_ALL = {OrderState.UNPAID, OrderState.PAID}
HOLDS_NOTHING = {OrderState.CANCELLED, OrderState.EXPIRED, OrderState.FAILED}

log = logging.getLogger("teashop.feed")


async def follow(shop: Shop) -> None:
    """For as long as the shop is open."""
    while True:
        try:
            await read_on(shop, WAIT_S)
        except ClientError as error:  # seckill is away, or busy
            log.warning("the feed cannot be read: %s", error)
            await asyncio.sleep(PAUSE_S)
        except Exception:  # it holds up the feed until it is mended, and is heard of
            log.exception("an event could not be dealt with")
            await asyncio.sleep(PAUSE_S)


async def read_on(shop: Shop, wait_s: float) -> None:
    """Everything since the last time, waiting for as long if there is nothing yet."""
    async with shop.database.connect() as connection:
        cursor = await noted(connection, CURSOR)
    try:
        page = await shop.seckill.events(after=int(cursor or 0), types=TYPES, wait_s=wait_s)
    except Conflict as gone:
        await _begin_anew(shop, gone)
        return
    async with shop.database.begin() as tx:
        for event in page.events:
            await apply(tx, event)
        await note(tx, CURSOR, str(page.next))


async def apply(tx: AsyncConnection, event: Event) -> None:
    sale = (await tx.execute(select(flash_sales).where(flash_sales.c.sale_id == event.data["sale_id"]))).first()
    if sale is None:
        return  # not one of ours
    if event.type == "round.retired":
        # All its orders have come to rest: what is left is free again.
        await tx.execute(update(flash_sales).where(flash_sales.c.id == sale.id).values(is_settled=True))
    elif event.type == "refund.requested":
        await _gives_back(tx, sale, event)
    else:
        await _in_state(tx, sale, event)


async def _in_state(tx: AsyncConnection, sale: Row[Any], event: Event) -> None:
    data = event.data
    state = OrderState(data["state"])
    before = await tx.scalar(select(orders.c.held).where(orders.c.id == data["order_id"])) or 0
    held = data["quantity"] if state in HOLDS_ALL else 0 if state in HOLDS_NOTHING else before
    row = insert(orders).values(
        id=data["order_id"],
        buyer=data["buyer"],
        product_id=sale.product_id,
        flash_sale_id=sale.id,
        colour=data.get("item_title") or "",
        quantity=data["quantity"],
        price_cents=data["price_cents"],
        state=state,
        held=held,
        at=event.at,
    )
    await tx.execute(row.on_conflict_do_update(index_elements=["id"], set_={"state": state, "held": held}))
    await move(tx, sale.id, sale.product_id, before - held)


async def _gives_back(tx: AsyncConnection, sale: Row[Any], event: Event) -> None:
    """An operator refunds, and says whether the units go back on sale. The money is up to `money.make_refund`."""
    order_id = event.data["order_id"]
    held = await tx.scalar(select(orders.c.held).where(orders.c.id == order_id)) or 0
    back = min(held, event.data["units_back"])
    await tx.execute(update(orders).where(orders.c.id == order_id).values(held=held - back))
    await move(tx, sale.id, sale.product_id, back)


async def _begin_anew(shop: Shop, gone: Conflict) -> None:
    """The shop was away for longer than events are kept: it reads how all orders are now, and goes on from there.
    Events that it sees again on the way change nothing in the end."""
    log.error("%s Reading all orders instead.", gone)
    everything = [order async for order in shop.seckill.all_orders()]
    async with shop.database.begin() as tx:
        for order in everything:
            await apply(tx, _as_event(order))
        await note(tx, CURSOR, str(gone.problem["oldest"]))


def _as_event(order: ExportedOrder) -> Event:
    facts = {
        name: getattr(order, name) for name in ("order_id", "sale_id", "buyer", "quantity", "price_cents", "state")
    }
    facts["item_title"] = order.item_title or ""
    return Event(cursor=0, id="", type=f"order.{order.state}", at=order.created_at, data=facts)
