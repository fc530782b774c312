"""`GET /v1/orders/{order_id}/events`: the order's state now and at each change, as server-sent events."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.order import OrderState
from seckill.domain.order_number import OrderNumber
from seckill.engine.orders.buyer_orders import OrderWatch
from seckill.web.context import Context, context
from seckill.web.live_updates.event_stream import EventStream
from seckill.web.orders.buyer_orders import order_number, view
from seckill.web.problems import not_yours
from seckill.web.schemas import Order

# In any other state the order is over, or only money can move: buyers learn about that when they ask again.
_GOES_ON = {OrderState.QUEUED, OrderState.UNPAID}


async def order_events(request: Request) -> Response:
    ctx = context(request)
    buyer = ctx.require_token(request)
    number = order_number(ctx, request.path_params["order_id"])
    if number is None:
        raise not_yours("order")
    return EventStream(request, ctx, buyer, _watched(ctx, buyer.user, number))


@asynccontextmanager
async def _watched(ctx: Context, user: str, number: OrderNumber) -> AsyncIterator["_WatchedOrder"]:
    async with ctx.orders.watch(user, number) as watch:
        if watch is None:
            raise not_yours("order")
        yield _WatchedOrder(ctx, watch)


class _WatchedOrder:
    def __init__(self, ctx: Context, watch: OrderWatch) -> None:
        self._ctx = ctx
        self._watch = watch

    @property
    def name(self) -> str:
        """Returns the state and, if any of the price is refunded, how much."""
        order = self._watch.order
        return f"{order.state}-{order.refunded_cents}" if order.refunded_cents else order.state.value

    @property
    def goes_on(self) -> bool:
        return self._watch.order.state in _GOES_ON

    async def shown(self) -> Order:
        return view(self._ctx, self._watch.order)

    async def change(self) -> bool:
        return await self._watch.change()
