"""Data that only the console shows: live figures, processes, and the history of orders."""

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.engine.claims.claim_figures import WINDOW_S, added, percentile_ms
from seckill.engine.claims.live_figures import LiveRound
from seckill.ports.board import Seen
from seckill.web import schemas
from seckill.web.context import Context, context
from seckill.web.responses import json_response
from seckill.web.schemas import rfc3339

# A process reports each second. One that misses this many reports is stuck or gone.
SILENT_AFTER_MS = 4_000


async def live(request: Request) -> Response:
    ctx = context(request)
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
        items=_items(ctx, live) if live.pulse and live.pulse.items else msgspec.UNSET,
    )


def _items(ctx: Context, live: LiveRound) -> list[schemas.LiveItem]:
    left = {} if live.pulse is None else live.pulse.items
    return [
        schemas.LiveItem(item_id=ctx.item_ids.of(item.id), available=left[item.id])
        for item in live.sale.items
        if item.id in left
    ]


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
        cpu_s=report.cpu_s,
        memory_bytes=report.memory_bytes,
    )
