"""Applies seckill's events: the stock and the list of orders go by them.

What was done about some events, and the cursor after them, are one transaction of the shop's database. So whatever
stops in between, each event counts once.
"""

from django.db import transaction

from bookshop.flash import seckill
from bookshop.models import FlashSale, Note, Order, Refund
from seckill import OrderState
from seckill.client import Conflict, Event

CURSOR = "cursor"
TYPES = ["order.*", "refund.requested", "round.retired"]
# What an order in this state has taken out of the stock. The others keep what they had.
HOLDS_ALL = {OrderState.UNPAID, OrderState.PAID}
HOLDS_NOTHING = {OrderState.CANCELLED, OrderState.EXPIRED, OrderState.FAILED}


def read_on(wait_s: float) -> None:
    """Everything since the last time, waiting for as long if there is nothing yet."""
    noted = Note.objects.filter(pk=CURSOR).first()
    try:
        page = seckill().events(after=0 if noted is None else int(noted.value), types=TYPES, wait_s=wait_s)
    except Conflict as gone:
        _begin_anew(gone)
        return
    with transaction.atomic():
        for event in page.events:
            apply(event)
        Note.objects.update_or_create(pk=CURSOR, defaults={"value": str(page.next)})


def apply(event: Event) -> None:
    sale = FlashSale.objects.filter(sale_id=event.data["sale_id"]).first()
    if sale is None:
        return  # not one of ours
    if event.type == "round.retired":
        # All its orders have come to rest: what is left is free again.
        FlashSale.objects.filter(pk=sale.pk).update(is_settled=True)
    elif event.type == "refund.requested":
        _refund(sale, event)
    else:
        _change(sale, event)


def _change(sale: FlashSale, event: Event) -> None:
    data = event.data
    state = OrderState(data["state"])
    known = Order.objects.filter(pk=data["order_id"]).first()
    before = 0 if known is None else known.held
    held = data["quantity"] if state in HOLDS_ALL else 0 if state in HOLDS_NOTHING else before
    facts = {"buyer": data["buyer"], "book_id": sale.book_id, "flash_sale": sale, "at": event.at}
    facts |= {"quantity": data["quantity"], "price_cents": data["price_cents"]}
    now = {"state": state.value, "held": held}
    Order.objects.update_or_create(pk=data["order_id"], defaults=now, create_defaults=facts | now)
    sale.take_back(before - held)


def _refund(sale: FlashSale, event: Event) -> None:
    """An operator refunds, all or a part, and says whether the units go back on sale."""
    order = Order.objects.filter(pk=event.data["order_id"]).first()
    if order is None or event.data["reason"] != "operator":
        return  # money that came too late or twice: it was never the order's
    amount = {"order": order, "amount_cents": event.data["amount_cents"]}
    Refund.objects.get_or_create(pk=event.data["refund_id"], defaults=amount)
    back = min(order.held, event.data["units_back"])
    Order.objects.filter(pk=order.pk).update(held=order.held - back)
    sale.take_back(back)


def _begin_anew(gone: Conflict) -> None:
    """The shop was away for longer than events are kept: it reads how all orders are now, and goes on from there.
    Events that it sees again on the way change nothing in the end."""
    names = ("order_id", "sale_id", "buyer", "quantity", "price_cents", "state")
    everything = [
        Event(cursor=0, id="", type="order", at=order.created_at, data={name: getattr(order, name) for name in names})
        for order in seckill().all_orders()
    ]
    with transaction.atomic():
        for event in everything:
            apply(event)
        Note.objects.update_or_create(pk=CURSOR, defaults={"value": str(gone.problem["oldest"])})
