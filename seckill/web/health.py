"""Is it alive, is it ready, which version, and its figures."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill import __version__
from seckill.errors import GateError, LedgerError
from seckill.telemetry import exposition
from seckill.web.context import Context, context

READY_WITHIN_S = 2.0


async def healthz(_: Request) -> Response:
    return _json({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Ready means: could sell now. That needs the gate only: without the ledger, orders queue up to the backlog cap."""
    parts = await _parts(context(request))
    ready = parts["gate"] == "ok"
    return _json({"status": "ready" if ready else "not_ready", **parts}, 200 if ready else 503)


async def _parts(ctx: Context) -> dict[str, str]:
    parts = {"gate": "away", "ledger": "away"}

    async def gate() -> None:
        await ctx.engine.gate.ping()
        parts["gate"] = "ok"

    async def ledger() -> None:
        await ctx.engine.ledger.ping()
        parts["ledger"] = "ok"

    try:
        async with asyncio.timeout(READY_WITHIN_S):
            results = await asyncio.gather(gate(), ledger(), return_exceptions=True)
    except TimeoutError:
        return parts
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, GateError | LedgerError):
            raise result
    return parts


async def version(_: Request) -> Response:
    return _json({"name": "seckill", "version": __version__})


async def metrics(request: Request) -> Response:
    ctx = context(request)
    if ctx.settings.metrics == "operator":
        ctx.require_operator(request)
    return Response(await asyncio.to_thread(exposition), media_type="text/plain; version=0.0.4; charset=utf-8")


def _json(content: dict[str, str], status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": "1"} if status == 503 else {})
    return Response(msgspec.json.encode(content), status, headers, "application/json")
