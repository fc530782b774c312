"""What the engine is measured against: `python -m seckill.bench.services ceiling|plain FD`.

ceiling  the same HTTP server with a handler that does nothing but answer
plain    the last step of the tutorials as a plain web service: one script call a request, one entry an order. Its
         consumer is that of async-stream: one entry a time, one transaction an order
"""

import os
import socket
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from seckill.compare.moments import Moments
from seckill.compare.strategies.async_stream import AsyncStream
from seckill.compare.strategy import Servers

# Without it the plain service is made of what FastAPI is made of: faster, so that our ratio is smaller.
FastAPI: Any = import_module("fastapi").FastAPI if find_spec("fastapi") else None

SERVERS = "BENCH_SERVERS"
ANSWER = b'{"order_id":"0000000000000","state":"queued","sale_id":"0000000000000","round":"1","quantity":1}'


def framework() -> str:
    return "Starlette (FastAPI is not installed)" if FastAPI is None else "FastAPI"


async def ceiling(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


def plain(strategy: AsyncStream) -> Any:
    async def buy(buyer: int) -> dict[str, Any]:
        order = await strategy.buy(buyer)
        return {"success": order is not None, "order_id": str(order)}

    if FastAPI is not None:
        app = FastAPI()
        app.post("/orders")(buy)
        return app

    async def endpoint(request: Request) -> Response:
        return JSONResponse(await buy(int(request.query_params["buyer"])))

    return Starlette(routes=[Route("/orders", endpoint, methods=["POST"])])


async def main(what: str, fd: int) -> None:
    app: Any = ceiling
    if what == "plain":
        servers = msgspec.json.decode(os.environ[SERVERS], type=Servers)
        strategy = AsyncStream(servers, Moments())
        await strategy.open("shop")
        app = plain(strategy)
    config = uvicorn.Config(app, http="httptools", lifespan="off", log_config=None, access_log=False)
    await uvicorn.Server(config).serve(sockets=[socket.socket(fileno=fd)])


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
