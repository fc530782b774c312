"""The notices of payment providers, and the refunds that operators see."""

import time

import structlog
from starlette.requests import Request
from starlette.responses import Response

from seckill.domain import money
from seckill.domain.payment_fate import Fate
from seckill.engine.orders.buyer_orders import recorded
from seckill.errors import NotGenuine, NotUnderstood, ProviderUnavailable
from seckill.ports.payment import Capture, Captured, Notice, PaymentProvider, Refund, has_checkout
from seckill.web.context import Context, context
from seckill.web.incidents import Incident
from seckill.web.orders.buyer_orders import order_number, view
from seckill.web.problems import HttpProblem, invalid, no_such, suspicious
from seckill.web.requests.parameters import id_in_path
from seckill.web.requests.request_body import field_and_message, read_body
from seckill.web.responses import json_response
from seckill.web.schemas import Refund as RefundView
from seckill.web.schemas import Refunds, rfc3339, rfc3339_or_none

log = structlog.get_logger()

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
    provider = ctx.provider
    body = await read_body(request.receive)
    try:
        notice = provider.read(dict(request.headers), body, time.time())
    except NotGenuine as error:
        raise suspicious(HttpProblem(401, "not_genuine", str(error)), Incident.BAD_SIGNATURE) from None
    except ProviderUnavailable as error:
        raise HttpProblem(503, "not_set_up", str(error)) from None
    except NotUnderstood as error:
        raise invalid(*field_and_message(str(error))) from None
    if notice is None:
        return _thanks(provider)
    number = order_number(ctx, notice.order_id)
    if number is None:
        raise no_such("order", notice.order_id)
    capture = Capture(
        provider=provider.name, ref=notice.ref, amount_cents=notice.amount_cents, currency=notice.currency
    )
    captured = await ctx.payments.capture(number, capture)
    if captured.fate is Fate.STILL_QUEUED:
        log.info("money came for an order that is not written yet", order=notice.order_id, payment=notice.ref)
        raise HttpProblem(503, "still_queued", "The order is not written yet: send the same again in a moment.")
    if captured.order is None:
        _say_that_it_fits_nothing(captured.fate, notice)
        raise no_such("order", notice.order_id)
    if captured.fate in (Fate.WRONG_AMOUNT, Fate.REF_REUSED):
        _say_that_it_fits_nothing(captured.fate, notice)
    if captured.payment_id and has_checkout(provider):  # whatever it pays for, it is noted and need not come again
        return _thanks(provider)
    return _answer(ctx, captured)


def _say_that_it_fits_nothing(fate: Fate, notice: Notice) -> None:
    """The engine does not refund it: people have to compare it with the provider's list."""
    log.error(
        "money came that fits no order",
        fate=fate.value,
        order=notice.order_id,
        payment=notice.ref,
        amount=money.shown(notice.amount_cents, notice.currency),
    )


def _thanks(provider: PaymentProvider) -> Response:
    return Response(provider.acknowledgement if has_checkout(provider) else "", 200, media_type="text/plain")


def _answer(ctx: Context, captured: Captured) -> Response:
    assert captured.order is not None
    shown = view(ctx, recorded(captured.order))
    if captured.fate in _CODES:
        raise HttpProblem(409, _CODES[captured.fate], _REFUSED[captured.fate], state=shown.state)
    return json_response(shown, 202 if captured.fate is Fate.LATE else 200)


async def list_refunds(request: Request) -> Response:
    ctx = context(request)
    return json_response(Refunds([refund_view(ctx, refund) for refund in await ctx.refunds.newest(LIST_MAX)]))


async def finish_refund(request: Request) -> Response:
    """For refunds made by hand."""
    ctx = context(request)
    refund_id = id_in_path(request, "refund_id", "refund")
    refund = await ctx.refunds.made_by_hand(refund_id)
    if refund is None:
        raise no_such("refund", str(refund_id))
    return json_response(refund_view(ctx, refund))


def refund_view(ctx: Context, refund: Refund) -> RefundView:
    return RefundView(
        id=str(refund.id),
        order_id=ctx.order_ids.encode(int(refund.number)),
        provider=refund.capture.provider,
        payment_id=refund.capture.ref,
        amount_cents=refund.amount_cents,
        currency=refund.capture.currency,
        reason=refund.reason,
        attempts=refund.attempts,
        created_at=rfc3339(refund.created_ms),
        done_at=rfc3339_or_none(refund.done_ms),
        explanation=refund.explanation,
        refused=refund.refused,
    )
