"""`GET /v1/time`: the time of the clock that opens and closes sales. Pages use it for their countdown."""

from starlette.requests import Request
from starlette.responses import Response

from seckill.web.context import context
from seckill.web.responses import json_response
from seckill.web.schemas import ServerTime, rfc3339


async def server_time(request: Request) -> Response:
    """Never cached, and answered from memory."""
    return json_response(ServerTime(rfc3339(context(request).sale_cache.now_ms())))
