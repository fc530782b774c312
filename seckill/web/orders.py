"""A buyer's own orders."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.buyer_orders import WAIT_S_MAX, OrderView, recorded
from seckill.domain import OrderState
from seckill.numbers import OrderNumber
from seckill.payment_ports import Capture
from seckill.ports import Changed
from seckill.web.context import Context, context
from seckill.web.problems import Problem, invalid, not_found
from seckill.web.schemas import Order, Orders, rfc3339

PAGE_MAX = 100
PAGE_DEFAULT = 20


def view(ctx: Context, order: OrderView) -> Order:
    return Order(
        order_id=ctx.engine.order_ids.encode(int(order.number)),
        sale_id=ctx.engine.sale_ids.encode(order.sale_id),
        round=str(order.round_id),
        quantity=order.quantity,
        state=order.state,
        price_cents=order.price_cents,
        currency=order.currency,
        created_at=rfc3339(order.created_ms),
        pay_before=_rfc3339_or_none(order.pay_before_ms),
        paid_at=_rfc3339_or_none(order.paid_ms),
        closed_at=_rfc3339_or_none(order.closed_ms),
        replaced_by=None if order.replaced_by is None else ctx.engine.order_ids.encode(int(order.replaced_by)),
    )


def _rfc3339_or_none(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


async def show_order(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    number = order_number(ctx, request.path_params["order_id"])
    wait_s = _wait_s(request)
    seen = request.query_params.get("seen", OrderState.QUEUED.value)
    if seen not in set(OrderState):
        raise invalid("seen", f"must be one of {', '.join(OrderState)}")
    if number is None:
        raise not_found()
    if wait_s > 0:
        order = await ctx.orders.wait_for_change(user, number, seen, wait_s)
    else:
        order = await ctx.orders.find(user, number)
    if order is None:
        raise not_found()
    return _json(view(ctx, order))


async def pay_order(request: Request) -> Response:
    """The sandbox: the money is there as soon as the buyer says so."""
    ctx = context(request)
    user = ctx.require_buyer(request)
    if not ctx.engine.provider.sandbox:
        raise Problem(403, "not_sandbox", "Real money is taken here: pay where the shop tells you to.")
    order = await _own(request, ctx, user)
    capture = Capture(
        provider=ctx.engine.provider.name,
        # One for each order, and none that a callback could use.
        ref=f"*{ctx.engine.order_ids.encode(int(order.number))}",
        amount_cents=order.price_cents,
        currency=order.currency,
    )
    return await _changed(ctx, await ctx.engine.ledger.pay(order.number, user, capture), OrderState.PAID)


async def cancel_order(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    order = await _own(request, ctx, user)
    return await _changed(ctx, await ctx.engine.ledger.cancel(order.number, user), OrderState.CANCELLED)


async def _own(request: Request, ctx: Context, user: str) -> OrderView:
    number = order_number(ctx, request.path_params["order_id"])
    order = None if number is None else await ctx.orders.find(user, number)
    if order is None:
        raise not_found()
    if order.state is OrderState.QUEUED:
        raise Problem(409, "still_queued", "The order is still being written; try again in a moment.", state="queued")
    return order


async def _changed(ctx: Context, changed: Changed | None, wanted: OrderState) -> Response:
    if changed is None:
        raise not_found()
    shown = view(ctx, recorded(changed.order))
    if changed.order.state is not wanted:
        raise Problem(409, "order_over", f"The order is {shown.state} already.", state=shown.state, order=shown)
    return _json(shown)  # also when it was so before: repeating is harmless


async def list_orders(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    count = _count(request)
    before = None
    if (cursor := request.query_params.get("cursor")) is not None:
        before = order_number(ctx, cursor)
        if before is None:
            raise invalid("cursor", "is not one that this list gave")
    orders = [view(ctx, order) for order in await ctx.orders.newest(user, before, count)]
    return _json(Orders(orders, orders[-1].order_id if len(orders) == count else None))


def order_number(ctx: Context, public_id: str) -> OrderNumber | None:
    number = ctx.engine.order_ids.decode(public_id)
    return None if number is None else OrderNumber.from_int(number)


def _wait_s(request: Request) -> float:
    try:
        wait_s = float(request.query_params.get("wait", "0"))
    except ValueError:
        wait_s = -1
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise invalid("wait", f"must be a number of seconds from 0 to {WAIT_S_MAX:.0f}")
    return wait_s


def _count(request: Request) -> int:
    text = request.query_params.get("limit", str(PAGE_DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= PAGE_MAX):
        raise invalid("limit", f"must be a number from 1 to {PAGE_MAX}")
    return int(text)


def _json(content: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(content), 200, {"Cache-Control": "no-store"}, "application/json")
