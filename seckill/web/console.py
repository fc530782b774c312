"""What the console shows and the rest of the API does not tell: live figures, processes, and the history of orders."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from seckill.engine.claims.claim_figures import WINDOW_S, added, percentile_ms
from seckill.engine.claims.live_figures import LiveRound
from seckill.engine.orders.order_search import OrderRecord
from seckill.ports.board import Seen
from seckill.ports.history import Payment
from seckill.web import dead_letters, orders, schemas
from seckill.web.auth import is_user
from seckill.web.context import Context, context
from seckill.web.parameters import page_size
from seckill.web.payments import refund_view
from seckill.web.problems import invalid
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339

# A process reports each second. One that misses this many reports is stuck or gone.
SILENT_AFTER_MS = 4_000


async def live(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    live = await ctx.live.read()
    return json_response(
        schemas.Live(
            server_time=rfc3339(ctx.sale_cache.now_ms()),
            sales=[_sale(ctx, each) for each in live.rounds],
            answers=_answers(live.seen),
            nodes=[_node(one, live.now_ms) for one in live.seen],
        )
    )


def _sale(ctx: Context, live: LiveRound) -> schemas.LiveSale:
    return schemas.LiveSale(
        sale_id=ctx.sale_cache.public_id(live.sale),
        round=str(live.sale.round.id),
        available=None if live.pulse is None else live.pulse.available,
        accepted_units=None if live.pulse is None else live.pulse.admitted,
        persisted_units=live.written,
        refused=dict(live.refused),
        backlog=live.backlog,
        lag_ms=live.lag_ms,
    )


def _answers(seen: Sequence[Seen]) -> schemas.Answers:
    counts = added(one.report.answers for one in seen)
    return schemas.Answers(
        within_s=WINDOW_S,
        claims=sum(counts),
        p50_ms=percentile_ms(counts, 0.5),
        p99_ms=percentile_ms(counts, 0.99),
    )


def _node(one: Seen, now_ms: int) -> schemas.Node:
    report = one.report
    return schemas.Node(
        id=report.node,
        role=report.role,
        host=report.host,
        pid=report.pid,
        version=report.version,
        state="silent" if now_ms - one.at_ms > SILENT_AFTER_MS else "ok",
        started_at=rfc3339(report.started_ms),
        seen_at=rfc3339(one.at_ms),
        claims=report.claims,
        recorded=report.recorded,
    )


async def find_orders(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    query = request.query_params
    given = [name for name in ("order_id", "user", "sale_id") if name in query]
    if len(given) != 1:
        raise invalid("order_id", "give either order_id, user or sale_id")
    count = page_size(request)
    found: Sequence[OrderRecord] = ()
    if given == ["user"]:
        found = await ctx.search.of_buyer(query["user"], count) if is_user(query["user"]) else ()
    elif given == ["order_id"]:
        number = orders.order_number(ctx, query["order_id"])
        found = () if number is None else await ctx.search.by_number([number])
    else:
        sale = await ctx.sale_cache.find(query["sale_id"])
        found = () if sale is None else await ctx.search.in_round(sale.round.id, count)
    return json_response(schemas.FoundOrders([_found(ctx, each) for each in found]))


def _found(ctx: Context, found: OrderRecord) -> schemas.FoundOrder:
    return schemas.FoundOrder(
        order=None if found.order is None else orders.view(ctx, found.order),
        ordinal=found.ordinal,
        user=found.user,
        events=[
            schemas.OrderEvent(
                at=rfc3339(event.at_ms), before=event.from_state, state=event.to_state, cause=event.cause
            )
            for event in found.events
        ],
        letters=[dead_letters.view(ctx, letter) for letter in found.letters],
        payments=[_payment(ctx, each) for each in found.payments],
    )


def _payment(ctx: Context, payment: Payment) -> schemas.FoundPayment:
    order_ids = ctx.order_ids
    return schemas.FoundPayment(
        payment_id=payment.capture.ref,
        provider=payment.capture.provider,
        amount_cents=payment.capture.amount_cents,
        currency=payment.capture.currency,
        at=rfc3339(payment.at_ms),
        order_id=order_ids.encode(int(payment.number)),
        pays=None if payment.settles is None else order_ids.encode(int(payment.settles)),
        waits=payment.waits,
        refund=None if payment.refund is None else refund_view(ctx, payment.refund),
    )
