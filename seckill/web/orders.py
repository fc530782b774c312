"""A buyer's own orders."""

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import order as domain
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.tracking import WAIT_S_MAX, OrderView, recorded
from seckill.web.context import Context, context
from seckill.web.parameters import page_size
from seckill.web.problems import HttpProblem, invalid, not_found
from seckill.web.responses import json_response
from seckill.web.schemas import Order, Orders, rfc3339, rfc3339_or_none


def view(ctx: Context, order: OrderView) -> Order:
    return Order(
        order_id=ctx.order_ids.encode(int(order.number)),
        sale_id=ctx.sale_ids.encode(order.sale_id),
        round=str(order.round_id),
        quantity=order.quantity,
        state=order.state,
        price_cents=order.price_cents,
        currency=order.currency,
        created_at=rfc3339(order.created_ms),
        pay_before=rfc3339_or_none(order.pay_before_ms),
        paid_at=rfc3339_or_none(order.paid_ms),
        closed_at=rfc3339_or_none(order.closed_ms),
        replaced_by=None if order.replaced_by is None else ctx.order_ids.encode(int(order.replaced_by)),
    )


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
        with ctx.seats.taken_by(user):
            order = await ctx.orders.wait_for_change(user, number, seen, wait_s, lambda: _gone(request))
    else:
        order = await ctx.orders.find(user, number)
    if order is None:
        raise not_found()
    return json_response(view(ctx, order))


async def _gone(request: Request) -> None:
    """Returns when the client no longer waits for the answer."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def pay_order(request: Request) -> Response:
    """The sandbox: the money is there as soon as the buyer says so."""
    ctx = context(request)
    user = ctx.require_buyer(request)
    if not ctx.actions.sandbox:
        raise HttpProblem(403, "not_sandbox", "Real money is taken here: pay where the shop tells you to.")
    order = await _own(request, ctx, user)
    return _changed(ctx, await ctx.actions.pay(user, order), OrderState.PAID)


async def cancel_order(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    order = await _own(request, ctx, user)
    return _changed(ctx, await ctx.actions.cancel(user, order.number), OrderState.CANCELLED)


async def _own(request: Request, ctx: Context, user: str) -> OrderView:
    number = order_number(ctx, request.path_params["order_id"])
    order = None if number is None else await ctx.orders.find(user, number)
    if order is None:
        raise not_found()
    if order.state is OrderState.QUEUED:
        raise HttpProblem(
            409, "still_queued", "The order is still being written; try again in a moment.", state="queued"
        )
    return order


def _changed(ctx: Context, order: domain.Order | None, wanted: OrderState) -> Response:
    if order is None:
        raise not_found()
    shown = view(ctx, recorded(order))
    if order.state is not wanted:
        raise HttpProblem(409, "order_over", f"The order is {shown.state} already.", state=shown.state, order=shown)
    return json_response(shown)  # even if it already was: repeating is harmless


async def list_orders(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    count = page_size(request)
    before = None
    if (cursor := request.query_params.get("cursor")) is not None:
        before = order_number(ctx, cursor)
        if before is None:
            raise invalid("cursor", "is not one that this list gave")
    orders = [view(ctx, order) for order in await ctx.orders.newest(user, before, count)]
    return json_response(Orders(orders, orders[-1].order_id if len(orders) == count else None))


def order_number(ctx: Context, public_id: str) -> OrderNumber | None:
    number = ctx.order_ids.decode(public_id)
    return None if number is None else OrderNumber.from_int(number)


def _wait_s(request: Request) -> float:
    try:
        wait_s = float(request.query_params.get("wait", "0"))
    except ValueError:
        wait_s = -1
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise invalid("wait", f"must be a number of seconds from 0 to {WAIT_S_MAX:.0f}")
    return wait_s
