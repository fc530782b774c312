"""What payment providers say, and the refunds that operators see."""

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.buyer_orders import recorded
from seckill.errors import NotGenuine, NotUnderstood, ProviderUnavailable
from seckill.payment_ports import Capture, Captured, Fate, Refund
from seckill.payments import may_be_queued
from seckill.web.body import field_and_message, read_body
from seckill.web.context import Context, context
from seckill.web.orders import order_number, view
from seckill.web.problems import Problem, invalid, not_found
from seckill.web.schemas import Refund as RefundView
from seckill.web.schemas import Refunds, rfc3339

LIST_MAX = 200

_REFUSED = {
    Fate.WRONG_AMOUNT: "The order costs another amount, or it is in another currency. Nothing was changed.",
    Fate.REF_REUSED: "This payment_id was used for another order. Nothing was changed.",
    Fate.SURPLUS: "The order was paid with another payment; this one is refunded.",
}
_CODES = {
    Fate.WRONG_AMOUNT: "wrong_amount",
    Fate.REF_REUSED: "payment_id_reused",
    Fate.SURPLUS: "already_paid",
}


async def payment_callback(request: Request) -> Response:
    ctx = context(request)
    provider = ctx.engine.provider
    body = await read_body(request.receive)
    try:
        notice = provider.read(dict(request.headers), body, time.time())
    except NotGenuine as error:
        raise Problem(401, "not_genuine", str(error)) from None
    except ProviderUnavailable as error:
        raise Problem(503, "not_set_up", str(error)) from None
    except NotUnderstood as error:
        raise invalid(*field_and_message(str(error))) from None
    number = order_number(ctx, notice.order_id)
    if number is None:
        raise not_found()
    capture = Capture(
        provider=provider.name, ref=notice.ref, amount_cents=notice.amount_cents, currency=notice.currency
    )
    captured = await ctx.payments.capture(number, capture)
    if captured.order is None:
        if may_be_queued(number, ctx.catalogue.now_ms(), ctx.catalogue.lanes()):
            raise Problem(503, "still_queued", "The order is not written yet: send the same again in a moment.")
        raise not_found()
    return _answer(ctx, captured)


def _answer(ctx: Context, captured: Captured) -> Response:
    assert captured.order is not None
    shown = view(ctx, recorded(captured.order))
    if captured.fate in _CODES:
        raise Problem(409, _CODES[captured.fate], _REFUSED[captured.fate], state=shown.state)
    return _json(shown, 202 if captured.fate is Fate.LATE else 200)


async def list_refunds(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    return _json(Refunds([refund_view(ctx, refund) for refund in await ctx.engine.ledger.payments.refunds(LIST_MAX)]))


async def finish_refund(request: Request) -> Response:
    """For those that were made by hand."""
    ctx = context(request)
    ctx.require_operator(request)
    text = request.path_params["refund_id"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise not_found()
    ledger = ctx.engine.ledger.payments
    await ledger.refund_done(int(text))
    refund = await ledger.refund(int(text))
    if refund is None:
        raise not_found()
    return _json(refund_view(ctx, refund))


def refund_view(ctx: Context, refund: Refund) -> RefundView:
    return RefundView(
        id=str(refund.id),
        order_id=ctx.engine.order_ids.encode(int(refund.number)),
        provider=refund.capture.provider,
        payment_id=refund.capture.ref,
        amount_cents=refund.capture.amount_cents,
        currency=refund.capture.currency,
        reason=refund.reason,
        attempts=refund.attempts,
        created_at=rfc3339(refund.created_ms),
        done_at=None if refund.done_ms is None else rfc3339(refund.done_ms),
    )


def _json(content: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, {"Cache-Control": "no-store"}, "application/json")
