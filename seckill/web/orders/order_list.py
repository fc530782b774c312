"""Orders for operators: found with their past, and listed page by page."""

import contextlib
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.buyer_id import BadBuyerId, buyer_id
from seckill.domain.operator import Role
from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.voucher import Voucher
from seckill.engine.orders.order_search import OrderRecord
from seckill.ports.history import OrderFilter, Payment
from seckill.ports.order_action import RecordedAction
from seckill.web import schemas
from seckill.web.context import Context, context
from seckill.web.operators.role_check import operator_in, require_role
from seckill.web.orders import buyer_orders, dead_letters
from seckill.web.orders.payments import refund_view
from seckill.web.problems import invalid
from seckill.web.requests.parameters import instant, known_item, known_sale, only, page_size, row_id
from seckill.web.responses import json_response
from seckill.web.sales.items import unknown_item
from seckill.web.sales.vouchers import voucher_view
from seckill.web.schemas import rfc3339

ALONE = ("order_id", "user")


async def find_orders(request: Request) -> Response:
    ctx = context(request)
    query = request.query_params
    alone = [name for name in ALONE if name in query]
    if alone:
        only(request, (alone[0], "limit"))
        found = await _named(request, ctx, alone[0])
        # a role that may only read sees the order without codes
        with_codes = operator_in(request).role.may_act_as(Role.OPERATOR)
        return json_response(schemas.FoundOrders(await _shown(ctx, found, with_codes=with_codes)))
    page, next_ = await orders_page(request, ctx, page_size(request))
    found = await ctx.search.by_number([order.number for order in page])
    return json_response(schemas.FoundOrders(await _shown(ctx, found, with_codes=asks_for_codes(request)), next_))


async def _named(request: Request, ctx: Context, name: str) -> Sequence[OrderRecord]:
    value = request.query_params[name]
    count = page_size(request)
    if name == "user":
        with contextlib.suppress(BadBuyerId):
            return await ctx.search.of_buyer(buyer_id(value), count)
        return ()
    number = buyer_orders.order_number(ctx, value)
    return () if number is None else await ctx.search.by_number([number])


def asks_for_codes(request: Request) -> bool:
    """The codes of many orders are only shown if asked for: a code that was seen never goes back into the pool."""
    if request.query_params.get("codes", "true") != "true":
        raise invalid("codes", "must be true, or left out")
    if "codes" not in request.query_params:
        return False
    require_role(request, Role.OPERATOR)
    return True


async def _shown(ctx: Context, found: Sequence[OrderRecord], *, with_codes: bool) -> list[schemas.FoundOrder]:
    views = [each.order for each in found if each.order is not None]
    vouchers = await ctx.vouchers.show(views) if with_codes else {}
    return [_found(ctx, each, vouchers.get(each.number)) for each in found]


def _found(ctx: Context, found: OrderRecord, vouchers: Sequence[Voucher] | None) -> schemas.FoundOrder:
    return schemas.FoundOrder(
        order=None if found.order is None else buyer_orders.view(ctx, found.order, vouchers, to_operator=True),
        ordinal=found.ordinal,
        user=found.user,
        buyer=found.user,
        events=[
            schemas.OrderEvent(
                at=rfc3339(event.at_ms), before=event.from_state, state=event.to_state, cause=event.cause
            )
            for event in found.events
        ],
        letters=[dead_letters.view(ctx, letter) for letter in found.letters],
        payments=[_payment(ctx, each) for each in found.payments],
        actions=[_action(each) for each in found.actions],
        vouchers=[voucher_view(ctx, each) for each in vouchers or ()],
    )


def _payment(ctx: Context, payment: Payment) -> schemas.FoundPayment:
    order_ids = ctx.order_ids
    refunds = [refund_view(ctx, refund) for refund in payment.refunds]
    return schemas.FoundPayment(
        payment_id=payment.capture.ref,
        provider=payment.capture.provider,
        amount_cents=payment.capture.amount_cents,
        currency=payment.capture.currency,
        at=rfc3339(payment.at_ms),
        order_id=order_ids.encode(int(payment.number)),
        pays=None if payment.settles is None else order_ids.encode(int(payment.settles)),
        waits=payment.waits,
        refund=refunds[-1] if refunds else None,
        refunds=refunds,
    )


def _action(done: RecordedAction) -> schemas.OrderAction:
    return schemas.OrderAction(
        at=rfc3339(done.at_ms),
        action=done.action.kind,
        amount_cents=done.action.amount_cents,
        return_unit=done.action.return_unit,
        reason=done.action.reason,
    )


async def know_items(ctx: Context, page: Sequence[Order]) -> None:
    """Makes sure that the items are known, so that they can be shown by their titles."""
    await ctx.sale_cache.know({order.sale_id for order in page if order.item})


async def orders_page(request: Request, ctx: Context, count: int) -> tuple[Sequence[Order], str | None]:
    """Returns one page, and what to give as `after` for the next one, if any."""
    found = await ctx.search.page(await orders_wanted(request, ctx), cursor_in(request, ctx), count + 1)
    page = found[:count]
    await know_items(ctx, page)
    return page, ctx.order_ids.encode(int(page[-1].number)) if len(found) > count else None


async def orders_wanted(request: Request, ctx: Context) -> OrderFilter:
    query = request.query_params
    state = query.get("state")
    written = [each.value for each in OrderState if each is not OrderState.QUEUED]
    if state is not None and state not in written:
        raise invalid("state", f"must be one of {', '.join(written)}")
    round_id = None
    if (round_ := query.get("round")) is not None and (round_id := row_id(round_)) is None:
        raise invalid("round", "must be a round's number")
    sale_id, item = await known_sale(ctx, request), await known_item(ctx, request)
    if item is not None and sale_id not in (None, item[1]):
        raise unknown_item("item_id")
    return OrderFilter(
        sale_id=sale_id if item is None else item[1],
        round_id=round_id,
        item=None if item is None else item[0],
        state=None if state is None else OrderState(state),
        user=_buyer(query.get("buyer")),
        since_ms=instant(request, "since"),
        until_ms=instant(request, "until"),
    )


def _buyer(value: str | None) -> str | None:
    try:
        return None if value is None else buyer_id(value)
    except BadBuyerId as error:
        raise invalid("buyer", str(error)) from None


def cursor_in(request: Request, ctx: Context) -> OrderNumber | None:
    cursor = request.query_params.get("after")
    if cursor is None:
        return None
    number = buyer_orders.order_number(ctx, cursor)
    if number is None:
        raise invalid("after", "is not one that this list gave")
    return number
