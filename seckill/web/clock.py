"""`GET /v1/time`: what the time is, by the clock that opens and closes sales. Pages count down by it."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from seckill.web.context import context
from seckill.web.schemas import ServerTime, rfc3339


async def server_time(request: Request) -> Response:
    """Never kept by anybody, and answered from memory."""
    content = ServerTime(rfc3339(context(request).catalogue.now_ms()))
    return Response(msgspec.json.encode(content), 200, {"Cache-Control": "no-store"}, "application/json")
