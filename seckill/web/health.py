"""Health, readiness, version and metrics of an API process."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from seckill import __version__
from seckill.engine.readiness import StoreHealth
from seckill.settings import Settings
from seckill.telemetry import media_type
from seckill.web.context import context
from seckill.web.responses import NO_STORE, json_response


async def healthz(_: Request) -> Response:
    return json_response({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Ready means: could sell now."""
    ctx = context(request)
    parts = await ctx.readiness.look()
    ready = parts.ready and ctx.buyers.keys.known
    answer = {"status": "ready" if ready else "not_ready", "gate": parts.gate, "ledger": parts.ledger}
    if not ctx.buyers.keys.known:
        answer["keys"] = StoreHealth.AWAY
    if ready:
        return json_response(answer)
    return json_response(answer, 503, {**NO_STORE, "Retry-After": "1"})


async def version(request: Request) -> Response:
    return json_response({"name": "seckill", "version": __version__, "rehearsal": context(request).settings.rehearsal})


def metrics_are_open(settings: Settings) -> bool:
    return settings.metrics != "operator"


async def metrics(request: Request) -> Response:
    ctx = context(request)
    kind = media_type(request.headers.get("accept", ""))
    text = ctx.exposition.known(kind) or await asyncio.to_thread(ctx.exposition.now, kind)
    return Response(text, headers={**NO_STORE, "Vary": "Accept"}, media_type=kind)
