"""The services that the engine is compared with: `python -m seckill.lab.bench.services ceiling|plain FD`.

ceiling  the engine's HTTP server, with its limits, and a handler that does nothing but answer
plain    the last step of the tutorials as a plain FastAPI service, run as they run it: the token decoded with PyJWT,
         one script call a request, one entry an order. Its consumer is that of async-stream: one entry a time, one
         transaction an order
"""

import asyncio
import os
import socket
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jwt
import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from seckill.lab.compare.moments import Moments
from seckill.lab.compare.strategies.async_stream import AsyncStream
from seckill.lab.compare.strategy import CompareServers
from seckill.web.connections.guarded_protocol import GuardedProtocol

# FastAPI comes with the extra `bench`. Without it, the plain service uses the libraries below FastAPI, which makes it
# faster and our ratio smaller.
HAS_FASTAPI = find_spec("fastapi") is not None

# The plain service has at most this many calls to Redis under way. Without a limit the first rush opens hundreds of
# connections at once, of which many fail, and the library's own limit makes a request cost half as much again.
AT_ONCE = 64

SERVERS = "BENCH_SERVERS"
SECRET = "BENCH_SECRET"  # noqa: S105 (its name)
ANSWER = b'{"order_id":"0000000000000","state":"queued","sale_id":"0000000000000","round":"1","quantity":1}'


def framework() -> str:
    return "FastAPI" if HAS_FASTAPI else "Starlette (FastAPI is not installed)"


async def ceiling(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


def plain(strategy: AsyncStream, secret: str) -> Any:
    asking = asyncio.Semaphore(AT_ONCE)

    async def buy(token: str) -> dict[str, Any]:
        claims = jwt.decode(token, secret, algorithms=["HS256"])
        async with asking:
            order = await strategy.buy(int(claims["sub"].removeprefix("buyer-")))
        return {"success": order is not None, "order_id": str(order)}

    if HAS_FASTAPI:
        fastapi, security = import_module("fastapi"), import_module("fastapi.security")

        signed_in_with = fastapi.Depends(security.HTTPBearer())

        async def press(signed_in: Any = signed_in_with) -> Any:
            return await buy(signed_in.credentials)

        app = fastapi.FastAPI()
        app.post("/orders")(press)
        return app

    async def endpoint(request: Request) -> Response:
        return JSONResponse(await buy(request.headers["authorization"].removeprefix("Bearer ")))

    return Starlette(routes=[Route("/orders", endpoint, methods=["POST"])])


async def main(what: str, fd: int) -> None:
    options: dict[str, Any] = {"lifespan": "off", "log_config": None, "access_log": False}
    if what == "plain":
        servers = msgspec.json.decode(os.environ[SERVERS], type=CompareServers)
        strategy = AsyncStream(servers, Moments())
        await strategy.open("shop")
        config = uvicorn.Config(plain(strategy, os.environ[SECRET]), http="httptools", **options)
    else:
        config = uvicorn.Config(ceiling, http=GuardedProtocol, server_header=False, **options)
    await uvicorn.Server(config).serve(sockets=[socket.socket(fileno=fd)])


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
