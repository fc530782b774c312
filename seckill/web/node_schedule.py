"""What an API node does without a request, and how often: it refreshes the data that it keeps in memory."""

import asyncio

from seckill.bootstrap.engine import Engine
from seckill.engine.access.access_book import LOOK_EVERY_S
from seckill.engine.claims.unpaid_units import UnpaidUnits
from seckill.loops import Stop, repeat
from seckill.telemetry import BACKLOG, ROUNDS_MISSING, WAITING_CLIENTS
from seckill.web.context import Context

SALES_EVERY_S = 0.5
# Returned units are announced. This is the safety net for lost announcements.
PULSES_EVERY_S = 0.4
PACE_EVERY_S = 0.25
LOOK_UP_EVERY_S = 1.0
SERVERS_EVERY_S = 0.5
FIGURES_EVERY_S = 1.0
# Each look takes a query for each sold-out round.
UNPAID_EVERY_S = 3.0


def begin_schedule(ctx: Context, engine: Engine, unpaid_units: UnpaidUnits, stop: Stop) -> list[asyncio.Task[None]]:
    async def pulses() -> None:
        ctx.desk.forget(await ctx.sale_cache.refresh_pulses())

    async def figures() -> None:
        BACKLOG.set(await engine.transport.backlog(ctx.sale_cache.lanes()))
        ROUNDS_MISSING.set(len(ctx.sale_cache.without_pulse()))
        WAITING_CLIENTS.set(ctx.seats.taken)

    async def listen() -> None:
        await ctx.orders.listen(engine.transport)

    async def hear_of_units() -> None:
        await ctx.desk.sold_out.listen(engine.transport)

    return [
        asyncio.create_task(loop)
        for loop in (
            repeat("sales", ctx.sale_cache.refresh_sales, stop, SALES_EVERY_S),
            repeat("pulses", pulses, stop, PULSES_EVERY_S),
            repeat("pace", ctx.desk.keep_pace, stop, PACE_EVERY_S),
            repeat("unpaid units", unpaid_units.count, stop, UNPAID_EVERY_S),
            repeat("lists", ctx.lists.refresh, stop, SALES_EVERY_S),
            repeat("access", ctx.access_book.refresh, stop, LOOK_EVERY_S),
            repeat("servers", engine.gate.watch_servers, stop, SERVERS_EVERY_S),
            repeat("states", listen, stop, lasting=True),
            repeat("versions", hear_of_units, stop, lasting=True),
            repeat("figures", figures, stop, FIGURES_EVERY_S),
            repeat("waiting", ctx.orders.look_up_waiting, stop, LOOK_UP_EVERY_S),
            *([repeat("keys", ctx.buyers.keys.follow, stop, lasting=True)] if ctx.settings.jwks_url else []),
            repeat("entries", ctx.line.watches.look, stop, LOOK_UP_EVERY_S),
        )
    ]
