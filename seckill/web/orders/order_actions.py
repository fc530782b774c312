"""What operators do to buyers' orders: cancel and refund."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import money
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.engine.orders.buyer_orders import recorded
from seckill.ports.order_action import Acted, ActionOutcome
from seckill.web.context import Context, context
from seckill.web.orders.buyer_orders import order_number, view, with_buyer
from seckill.web.problems import HttpProblem, invalid, no_such
from seckill.web.requests.parameters import idempotency_key
from seckill.web.requests.request_body import decode, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import NewCancellation, NewRefund

_cancellation = msgspec.json.Decoder(NewCancellation)
_refund = msgspec.json.Decoder(NewRefund)


async def cancel_any_order(request: Request) -> Response:
    ctx = context(request)
    wish = decode(await read_body(request.receive), _cancellation)
    reason, key, number = reason_given(wish.reason), _key(request), _number(request, ctx)
    acted = await ctx.operator_actions.cancel(number, reason=reason, key=key)
    return await _answer(request, number, acted, "Only an unpaid order can be cancelled")


async def refund_order(request: Request) -> Response:
    ctx = context(request)
    wish = decode(await read_body(request.receive), _refund)
    reason, key, number = reason_given(wish.reason), _key(request), _number(request, ctx)
    acted = await ctx.operator_actions.refund(
        number, reason=reason, key=key, amount_cents=wish.amount_cents, return_unit=wish.return_unit
    )
    return await _answer(request, number, acted, "Only a paid order can be refunded")


def _number(request: Request, ctx: Context) -> OrderNumber:
    number = order_number(ctx, request.path_params["order_id"])
    if number is None:
        raise no_such("order", request.path_params["order_id"])
    return number


def _key(request: Request) -> str:
    key = request.headers.get("idempotency-key")
    return idempotency_key(None if key is None else key.encode("latin-1"))


def reason_given(text: str) -> str:
    reason = text.strip()
    if not reason:
        raise invalid("reason", "must not be empty")
    if not reason.isprintable():
        raise invalid("reason", "must be one line of text")
    return reason


async def _answer(request: Request, number: OrderNumber, acted: Acted | None, rule: str) -> Response:
    ctx = context(request)
    if acted is None:
        if await ctx.on_the_way.may_have(number):
            sentence = "The order is not written yet, or there is no such order; try again in a moment."
            raise HttpProblem(409, "still_queued", sentence, state="queued")
        raise no_such("order", request.path_params["order_id"])
    order = acted.order
    await ctx.sale_cache.know([order.sale_id] if order.item else [])
    shown = with_buyer(view(ctx, recorded(order), to_operator=True), order.user)
    if acted.outcome is ActionOutcome.KEY_REUSED:
        raise HttpProblem.of(Outcome.KEY_REUSED)
    if acted.outcome is ActionOutcome.WRONG_STATE:
        raise HttpProblem(409, "wrong_state", f"{rule}; this one is {shown.state}.", state=shown.state, order=shown)
    if acted.outcome is ActionOutcome.TOO_MUCH:
        left = order.price_cents - order.refunded_cents
        sentence = f"Only {money.shown(left, order.currency)} of the order is left to refund."
        raise HttpProblem(409, "too_much", sentence, left_cents=left, state=shown.state, order=shown)
    if acted.outcome is ActionOutcome.OUT_OF_CODES:
        sentence = (
            "The buyer has seen the code, so it is void with a refund, and there is no other code for the unit to be "
            "sold with: upload one first, or refund with return_unit: false."
        )
        raise HttpProblem(409, "out_of_codes", sentence, state=shown.state, order=shown)
    return json_response(shown)
