"""What the console shows and the rest of the API does not tell: live figures, processes, and the history of orders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.buyer_orders import recorded
from seckill.figures import WINDOW_S, added, percentile_ms
from seckill.insight import Event, Payment, Seen
from seckill.letters import Letter
from seckill.numbers import OrderNumber
from seckill.web import dead, orders, schemas
from seckill.web.auth import is_user
from seckill.web.context import Context, context
from seckill.web.payments import refund_view
from seckill.web.problems import invalid
from seckill.web.schemas import rfc3339

PAGE_MAX = 100
PAGE_DEFAULT = 20
# A process reports each second. Whoever misses this many is stuck or gone.
SILENT_AFTER_MS = 4_000


async def live(request: Request) -> Response:
    ctx = context(request)
    ctx.require_operator(request)
    now_ms, seen = await ctx.engine.board.reports()
    return _json(
        schemas.Live(
            server_time=rfc3339(ctx.catalogue.now_ms()),
            sales=await _sales(ctx, seen),
            answers=_answers(seen),
            nodes=[_node(one, now_ms) for one in seen],
        )
    )


async def _sales(ctx: Context, seen: Sequence[Seen]) -> list[schemas.LiveSale]:
    rounds = ctx.catalogue.watched()
    if not rounds:
        return []
    refused: dict[str, Counter[str]] = {}
    for one in seen:
        for round_id, counted in one.report.refused.items():
            refused.setdefault(round_id, Counter()).update(counted)
    # Read before the gate's pulse is looked at, so that more can never seem written than was accepted.
    by_round = await ctx.engine.ledger.counted([round_.id for round_ in rounds])
    waiting = await ctx.engine.board.waiting({lane for round_ in rounds for lane in round_.every_lane})
    now_ms = ctx.catalogue.now_ms()
    found = []
    for round_ in rounds:
        sale = ctx.catalogue.sale_of_round(round_.id)
        pulse = ctx.catalogue.pulse(round_.id)
        lanes = [waiting[lane] for lane in round_.every_lane]
        oldest_ms = min((lane.oldest_ms for lane in lanes if lane.oldest_ms is not None), default=None)
        if sale is not None:
            found.append(
                schemas.LiveSale(
                    sale_id=ctx.catalogue.public_id(sale),
                    round=str(round_.id),
                    available=None if pulse is None else pulse.available,
                    accepted_units=None if pulse is None else pulse.admitted,
                    persisted_units=by_round[round_.id].written,
                    refused=dict(refused.get(str(round_.id), {})),
                    backlog=sum(lane.entries for lane in lanes),
                    lag_ms=0 if oldest_ms is None else max(0, now_ms - oldest_ms),
                )
            )
    return found


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
    count = _count(request)
    if given == ["user"]:
        return _json(schemas.FoundOrders(await _of_user(ctx, query["user"], count)))
    if given == ["order_id"]:
        number = orders.order_number(ctx, query["order_id"])
        numbers = [] if number is None else [number]
    else:
        sale = await ctx.catalogue.find(query["sale_id"])
        until_ms = 0 if sale is None else sale.round.ends_ms
        numbers = [] if sale is None else await ctx.engine.history.latest(sale.round.id, until_ms, count)
    return _json(schemas.FoundOrders(await _by_number(ctx, numbers)))


async def _of_user(ctx: Context, user: str, count: int) -> list[schemas.FoundOrder]:
    if not is_user(user):
        return []
    views = await ctx.orders.newest(user, None, count)  # also what is queued and in no ledger yet
    past = await _past(ctx, [view.number for view in views])
    return [_found(ctx, view.number, orders.view(ctx, view), user, past) for view in views]


async def _by_number(ctx: Context, numbers: Sequence[OrderNumber]) -> list[schemas.FoundOrder]:
    if not numbers:
        return []
    known = {order.number: order for order in await ctx.engine.ledger.orders(numbers)}
    past = await _past(ctx, numbers)
    found = []
    for number in numbers:
        order = known.get(number)
        if order is not None or number in past.letters:
            shown = None if order is None else orders.view(ctx, recorded(order))
            user = None if order is None else order.user
            found.append(_found(ctx, number, shown, user, past))
    return found


@dataclass(frozen=True, slots=True)
class _Past:
    """Everything that is known of some orders beyond what they are now."""

    events: Mapping[OrderNumber, Sequence[Event]]
    letters: Mapping[OrderNumber, Sequence[Letter]]
    payments: Sequence[Payment]


async def _past(ctx: Context, numbers: Sequence[OrderNumber]) -> _Past:
    history = ctx.engine.history
    return _Past(await history.events(numbers), await history.letters(numbers), await history.payments(numbers))


def _found(
    ctx: Context, number: OrderNumber, order: schemas.Order | None, user: str | None, past: _Past
) -> schemas.FoundOrder:
    return schemas.FoundOrder(
        order=order,
        user=user,
        events=[
            schemas.OrderEvent(
                at=rfc3339(event.at_ms), before=event.from_state, state=event.to_state, cause=event.cause
            )
            for event in past.events.get(number, ())
        ],
        letters=[dead.view(ctx, letter) for letter in past.letters.get(number, ())],
        payments=[_payment(ctx, each) for each in past.payments if number in (each.number, each.settles)],
    )


def _payment(ctx: Context, payment: Payment) -> schemas.FoundPayment:
    order_ids = ctx.engine.order_ids
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


def _count(request: Request) -> int:
    text = request.query_params.get("limit", str(PAGE_DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= PAGE_MAX):
        raise invalid("limit", f"must be a number from 1 to {PAGE_MAX}")
    return int(text)


def _json(content: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(content), 200, {"Cache-Control": "no-store"}, "application/json")
