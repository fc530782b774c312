"""A buyer's own orders."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import order as domain
from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.public_id import PublicIds
from seckill.domain.voucher import Voucher
from seckill.engine.money.checkouts import Visitor
from seckill.engine.orders.buyer_orders import OrderView, recorded
from seckill.engine.sale_cache import SaleCache
from seckill.errors import CheckoutRefused, ProviderUnavailable
from seckill.web.connections.waiting_seats import gone
from seckill.web.context import Context, context
from seckill.web.orders.phone_browser import is_on_phone
from seckill.web.orders.qr_code import qr_code
from seckill.web.problems import HttpProblem, invalid, not_yours
from seckill.web.requests.parameters import page_size, wait_s
from seckill.web.responses import json_response
from seckill.web.sales.item_ids import ItemIds
from seckill.web.sales.vouchers import codes
from seckill.web.schemas import ExportedOrder, Order, Orders, OrderToPay, rfc3339, rfc3339_or_none


class Names(Protocol):
    """Makes public ids from numbers, and knows the titles of items."""

    @property
    def sale_ids(self) -> PublicIds: ...

    @property
    def order_ids(self) -> PublicIds: ...

    @property
    def entry_ids(self) -> PublicIds: ...

    @property
    def item_ids(self) -> ItemIds: ...

    @property
    def sale_cache(self) -> SaleCache: ...


def view(
    ctx: Names, order: OrderView, vouchers: Sequence[Voucher] | None = None, *, to_operator: bool = False
) -> Order:
    """`vouchers`: the order's codes, if its sale gives codes and they may be shown here."""
    item = ctx.sale_cache.item(order.sale_id, order.item) if order.item else None
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
        refunded_cents=order.refunded_cents,
        closed_by=order.closed_by,
        metadata=msgspec.json.decode(order.metadata) if order.metadata else msgspec.UNSET,
        codes=msgspec.UNSET if vouchers is None else codes(vouchers),
        item_id=ctx.item_ids.of(order.item) if order.item else msgspec.UNSET,
        item_title=msgspec.UNSET if item is None else item.title,
        item_external_id=item.external_id if to_operator and item is not None else msgspec.UNSET,
    )


def with_buyer(shown: Order, buyer: str) -> ExportedOrder:
    """Returns the order as operators see it."""
    return ExportedOrder(**msgspec.structs.asdict(shown), buyer=buyer)


async def views(ctx: Context, orders: Sequence[OrderView], *, to_operator: bool = False) -> list[Order]:
    """Shows orders with their codes: only for the orders' buyer and for operators."""
    vouchers = await ctx.vouchers.show(orders)
    return [view(ctx, order, vouchers.get(order.number), to_operator=to_operator) for order in orders]


async def show_order(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    number = order_number(ctx, request.path_params["order_id"])
    seconds = wait_s(request)
    seen = request.query_params.get("seen", OrderState.QUEUED.value)
    if seen not in set(OrderState):
        raise invalid("seen", f"must be one of {', '.join(OrderState)}")
    if number is None:
        raise not_yours("order")
    if seconds > 0:
        with ctx.seats.taken_by(user, ctx.counted_address(request)):
            order = await ctx.orders.wait_for_change(user, number, seen, seconds, gone(request.receive))
    else:
        order = await ctx.orders.find(user, number)
    if order is None:
        raise not_yours("order")
    [shown] = await views(ctx, [order])
    return json_response(shown)


async def pay_order(request: Request) -> Response:
    """In the sandbox, an order is paid as soon as the buyer says so. With a provider that has its own page, the answer
    says where that is."""
    ctx = context(request)
    user = ctx.require_buyer(request)
    ctx.door.refuse_blocked(user)
    if ctx.checkouts.offered:
        return await _where_to_pay(request, ctx, await _own(request, ctx, user))
    if not ctx.actions.sandbox:
        raise HttpProblem(403, "not_sandbox", "Real money is taken here: pay where the shop tells you to.")
    order = await _own(request, ctx, user)
    return _changed(ctx, await ctx.actions.pay(user, order), OrderState.PAID)


async def _where_to_pay(request: Request, ctx: Context, order: OrderView) -> Response:
    shown = view(ctx, order)
    if order.state is OrderState.PAID:
        return json_response(shown)
    if order.state is not OrderState.UNPAID:
        raise _over(shown)
    visitor = Visitor(on_phone=is_on_phone(request.headers), address=ctx.client_of(request))
    try:
        checkout = await ctx.checkouts.of(order, visitor)
    except ProviderUnavailable:  # the provider's words are in the log and do not concern the buyer
        raise HttpProblem(
            503, "provider_away", "The payment provider does not answer: try again in a moment.", retry_after_s=2
        ) from None
    except CheckoutRefused:
        raise HttpProblem(409, "payment_refused", "The payment provider does not take this payment.") from None
    to_pay = OrderToPay(**msgspec.structs.asdict(shown), pay_url=checkout.address)
    if not checkout.address.startswith(("https://", "http://")):
        to_pay.pay_qr = qr_code(checkout.address)
    return json_response(to_pay, 202)


async def cancel_order(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    order = await _own(request, ctx, user)
    return _changed(ctx, await ctx.actions.cancel(user, order.number), OrderState.CANCELLED)


async def _own(request: Request, ctx: Context, user: str) -> OrderView:
    number = order_number(ctx, request.path_params["order_id"])
    order = None if number is None else await ctx.orders.find(user, number)
    if order is None:
        raise not_yours("order")
    if order.state is OrderState.QUEUED:
        raise HttpProblem(
            409, "still_queued", "The order is still being written; try again in a moment.", state="queued"
        )
    return order


def _changed(ctx: Context, order: domain.Order | None, wanted: OrderState) -> Response:
    if order is None:
        raise not_yours("order")
    shown = view(ctx, recorded(order))
    if order.state is not wanted:
        raise _over(shown)
    return json_response(shown)  # even if it already was: repeating is harmless


def _over(shown: Order) -> HttpProblem:
    return HttpProblem(409, "order_over", f"The order is {shown.state} already.", state=shown.state, order=shown)


async def list_orders(request: Request) -> Response:
    ctx = context(request)
    user = ctx.require_buyer(request)
    count = page_size(request)
    before = None
    if (cursor := request.query_params.get("cursor")) is not None:
        before = order_number(ctx, cursor)
        if before is None:
            raise invalid("cursor", "is not one that this list gave")
    orders = await views(ctx, await ctx.orders.newest(user, before, count))
    return json_response(Orders(orders, orders[-1].order_id if len(orders) == count else None))


def order_number(ctx: Context, public_id: str) -> OrderNumber | None:
    number = ctx.order_ids.decode(public_id)
    return None if number is None else OrderNumber.from_int(number)
