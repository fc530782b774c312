"""`GET /v1/orders/{order_id}/events`: the order's state now and at each change, as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.buyer_orders import OrderView, OrderWatch
from seckill.web.buyer_tokens import Buyer
from seckill.web.context import Context, context
from seckill.web.orders import order_number, view
from seckill.web.problems import not_yours
from seckill.web.responses import NO_STORE

MEDIA_TYPE = "text/event-stream"
# Shorter than the time after which proxies and phone networks forget a silent connection.
HEARTBEAT_EVERY_S = 15.0
RETRY_MS = 1000
EVENT_HEADERS = {**NO_STORE, "X-Accel-Buffering": "no"}
# Everything else is the end, or only money moves after it: that is told to buyers who ask again.
_GOES_ON = {OrderState.QUEUED, OrderState.UNPAID}


async def order_events(request: Request) -> Response:
    ctx = context(request)
    buyer = ctx.require_token(request)
    number = order_number(ctx, request.path_params["order_id"])
    if number is None:
        raise not_yours("order")
    return _OrderEvents(ctx, buyer, ctx.counted_address(request), number, request.headers.get("last-event-id"))


class _OrderEvents(StreamingResponse):
    """Looks when it is sent, so that what it holds is given back however the sending ends."""

    def __init__(self, ctx: Context, buyer: Buyer, address: str, number: OrderNumber, seen: str | None) -> None:
        super().__init__((), headers=EVENT_HEADERS, media_type=MEDIA_TYPE)
        self._ctx = ctx
        self._buyer = buyer
        self._address = address
        self._number = number
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._ctx.seats.taken_by(self._buyer.user, self._address):
            await self._send(scope, receive, send)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._ctx.orders.watch(self._buyer.user, self._number) as watch:
            if watch is None:
                raise not_yours("order")
            if _name(watch.order) == self._seen and watch.order.state not in _GOES_ON:
                # The one answer after which an EventSource does not come back.
                await Response(None, 204, NO_STORE)(scope, receive, send)
            elif scope["method"] == "HEAD":
                await Response(None, 200, EVENT_HEADERS, MEDIA_TYPE)(scope, receive, send)
            else:
                self.body_iterator = self._events(watch)
                await super().__call__(scope, receive, send)

    async def _events(self, watch: OrderWatch) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        expires_at = loop.time() + self._buyer.good_until_s - time.time()
        yield b"retry: %d\n\n" % RETRY_MS
        if _name(watch.order) != self._seen:
            yield self._event(watch.order)
        while watch.order.state in _GOES_ON and (left_s := expires_at - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(HEARTBEAT_EVERY_S, left_s)):
                    goes_on = await watch.change()
            except TimeoutError:
                yield b":\n\n"
                continue
            if not goes_on or not self._ctx.buyers.trusts(self._buyer):
                return
            yield self._event(watch.order)

    def _event(self, order: OrderView) -> bytes:
        data = msgspec.json.encode(view(self._ctx, order))
        return b"id: %b\nevent: state\ndata: %b\n\n" % (_name(order).encode(), data)


def _name(order: OrderView) -> str:
    """Of what a buyer has seen: the state, and how much of the price is refunded if any of it is."""
    return f"{order.state}-{order.refunded_cents}" if order.refunded_cents else order.state.value
