"""Every route, with what the OpenAPI document says about it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.audit.document import Audit
from seckill.web import (
    audit,
    console,
    dead_letters,
    demo_sign_in,
    gate_clock,
    health,
    order_events,
    orders,
    payments,
    repair,
    sales,
    schemas,
)

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    summary: str
    handler: Handler | None  # None: answered before the framework, see claim.py
    who: str = "all"  # all | buyer | operator | provider
    status: int = 200
    answer: type[msgspec.Struct] | None = None
    media_type: str = "application/json"
    also: tuple[tuple[int, str], ...] = ()  # other statuses with the same body
    empty_answers: tuple[tuple[int, str], ...] = ()
    body: type[msgspec.Struct] | None = None
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    problems: tuple[int, ...] = ()


ROUTES = (
    Route(
        method="POST",
        path="/v1/sales",
        summary="Announce a sale",
        handler=sales.create_sale,
        who="operator",
        status=201,
        body=schemas.NewSale,
        answer=schemas.Sale,
        problems=(400, 422, 503),
    ),
    Route(
        method="GET",
        path="/v1/sales",
        summary="All sales that are on or to come, and the last 100 that are over",
        handler=sales.list_sales,
        answer=schemas.Sales,
        query=(("before", "`older` of the answer before: 100 sales that were over earlier"),),
        problems=(422,),
    ),
    Route(
        method="GET",
        path="/v1/sales/{sale_id}",
        summary="One sale",
        handler=sales.show_sale,
        answer=schemas.Sale,
        problems=(404,),
    ),
    Route(
        method="PATCH",
        path="/v1/sales/{sale_id}",
        summary="Add units, move the window, change title or limit",
        handler=sales.change_sale,
        who="operator",
        body=schemas.SalePatch,
        answer=schemas.Sale,
        problems=(400, 404, 409, 422, 503),
    ),
    Route(
        method="GET",
        path="/v1/sales/{sale_id}/custody",
        summary="Where every unit is",
        handler=sales.custody,
        who="operator",
        answer=schemas.Custody,
        query=(("round", "Another round of the sale than the current one"),),
        problems=(404, 503),
    ),
    Route(
        method="GET",
        path="/v1/sales/{sale_id}/rounds",
        summary="The rounds of a sale, the newest first, at most 50",
        handler=sales.list_rounds,
        who="operator",
        answer=schemas.SaleRounds,
        query=(("before", "Only those that were made before this round"), ("round", "Only this round")),
        problems=(404, 503),
    ),
    *(
        Route(
            method="POST",
            path=f"/v1/sales/{{sale_id}}/{verb}",
            summary=summary,
            handler=handler,
            who="operator",
            answer=schemas.Sale,
            problems=(404, 409, 503),
        )
        for verb, summary, handler in (
            ("pause", "Stop selling for now", sales.pause_sale),
            ("resume", "Sell on", sales.resume_sale),
            ("close", "End the sale for good, and its repetition", sales.close_sale),
        )
    ),
    Route(
        method="POST",
        path="/v1/sales/{sale_id}/orders",
        summary="Buy: queues an order, or says why not",
        handler=None,
        who="buyer",
        status=202,
        body=schemas.NewOrder,
        answer=schemas.OrderAccepted,
        headers=(("Idempotency-Key", "Repeat with the same key to get the same order, never a second one"),),
        problems=(400, 404, 409, 410, 413, 422, 429, 503),
    ),
    Route(
        method="GET",
        path="/v1/orders/{order_id}",
        summary="One order of the buyer",
        handler=orders.show_order,
        who="buyer",
        answer=schemas.Order,
        query=(
            ("wait", "Seconds to wait, at most 30, until the state is no longer the one seen"),
            ("seen", "The state the buyer knows; `queued` if left out"),
        ),
        problems=(404, 422, 503),
    ),
    Route(
        method="GET",
        path="/v1/orders/{order_id}/events",
        summary="One order of the buyer, now and at each change, as server-sent events",
        handler=order_events.order_events,
        who="buyer",
        answer=schemas.Order,
        media_type=order_events.MEDIA_TYPE,
        empty_answers=((204, "The order is over, and the state that was seen last is its last"),),
        headers=(("Last-Event-ID", "The `id` of the event that was seen last; it is not sent again"),),
        problems=(404, 429, 503),
    ),
    *(
        Route(
            method="POST",
            path=f"/v1/orders/{{order_id}}/{verb}",
            summary=summary,
            handler=handler,
            who="buyer",
            answer=schemas.Order,
            problems=problems,
        )
        for verb, summary, handler, problems in (
            ("pay", "Pay, in the sandbox", orders.pay_order, (403, 404, 409, 503)),
            ("cancel", "Cancel; the unit is on sale again within a second", orders.cancel_order, (404, 409, 503)),
        )
    ),
    Route(
        method="POST",
        path="/v1/payments/callback",
        summary="Money was taken for an order; send the same again until it is answered with 2xx or 4xx",
        handler=payments.payment_callback,
        who="provider",
        body=schemas.PaymentNotice,
        answer=schemas.Order,
        also=((202, "The order was over, and what its money pays for is being decided"),),
        problems=(404, 409, 413, 422, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/refunds",
        summary="Refunds: those still to be made, then the newest",
        handler=payments.list_refunds,
        who="operator",
        answer=schemas.Refunds,
        problems=(503,),
    ),
    Route(
        method="POST",
        path="/v1/admin/refunds/{refund_id}/done",
        summary="Note that a refund was made by hand",
        handler=payments.finish_refund,
        who="operator",
        answer=schemas.Refund,
        problems=(404, 503),
    ),
    Route(
        method="GET",
        path="/v1/orders",
        summary="The buyer's orders, newest first",
        handler=orders.list_orders,
        who="buyer",
        answer=schemas.Orders,
        query=(
            ("cursor", "`next` of the page before"),
            ("limit", "Orders on a page, 1 to 100, 20 if left out"),
        ),
        problems=(422, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/audit",
        summary="Does everything add up? The invariants now, with the ids of what breaks one",
        handler=audit.show_audit,
        who="operator",
        answer=Audit,
        query=(("full", "`true`: compare all orders one by one, also if that was done a moment ago"),),
        problems=(409,),
    ),
    Route(
        method="POST",
        path="/v1/admin/repair",
        summary="What the audit finds and what would mend it; does it with `apply`",
        handler=repair.repair,
        who="operator",
        body=schemas.NewRepair,
        answer=schemas.Repaired,
        problems=(400, 409, 413, 422, 503),
    ),
    Route(
        method="POST",
        path="/v1/admin/windows",
        summary="The next five windows of a sale that would repeat like this",
        handler=sales.show_windows,
        who="operator",
        body=schemas.Repetition,
        answer=schemas.Windows,
        problems=(400, 413, 422),
    ),
    Route(
        method="GET",
        path="/v1/admin/dead",
        summary="Dead letters, newest first",
        handler=dead_letters.list_dead,
        who="operator",
        answer=schemas.DeadLetters,
    ),
    Route(
        method="GET",
        path="/v1/admin/dead/{letter_id}",
        summary="One dead letter with its history",
        handler=dead_letters.show_dead,
        who="operator",
        answer=schemas.DeadLetter,
        problems=(404,),
    ),
    *(
        Route(
            method="POST",
            path=f"/v1/admin/dead/{{letter_id}}/{verb}",
            summary=summary,
            handler=handler,
            who="operator",
            answer=schemas.DeadLetter,
            problems=(404, 409),
        )
        for verb, summary, handler in (
            ("replay", "Try once more to write it", dead_letters.replay_dead),
            ("discard", "Put it away: nothing more is to be done", dead_letters.discard_dead),
        )
    ),
    Route(
        method="GET",
        path="/v1/admin/live",
        summary="Figures of the sales that are on, and every process, as they are now",
        handler=console.live,
        who="operator",
        answer=schemas.Live,
        problems=(503,),
    ),
    Route(
        method="GET",
        path="/v1/admin/orders",
        summary="Orders with every event: one, the newest of a buyer, or the newest of a sale",
        handler=console.find_orders,
        who="operator",
        answer=schemas.FoundOrders,
        query=(
            ("order_id", "One order"),
            ("user", "Or a buyer's orders, newest first, also those that are still queued"),
            ("sale_id", "Or a sale's newest orders"),
            ("limit", "Orders at most, 1 to 100, 20 if left out"),
        ),
        problems=(422, 503),
    ),
    Route(
        method="GET",
        path="/v1/time",
        summary="The time, by the clock that opens and closes sales",
        handler=gate_clock.server_time,
        answer=schemas.ServerTime,
    ),
    Route(method="GET", path="/healthz", summary="Alive", handler=health.healthz),
    Route(method="GET", path="/readyz", summary="Ready to sell", handler=health.readyz, problems=(503,)),
    Route(method="GET", path="/version", summary="Version", handler=health.version),
    Route(method="GET", path="/metrics", summary="Figures for Prometheus", handler=health.metrics, who="operator"),
)

# There only with `seckill up --demo`.
DEMO_ROUTES = (
    Route(
        method="POST",
        path="/v1/demo/sign-in",
        summary="A buyer's token for any name, to try things out",
        handler=demo_sign_in.demo_sign_in,
        body=schemas.DemoBuyer,
        answer=schemas.SignedIn,
        problems=(400, 413, 422),
    ),
)
