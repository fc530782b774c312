"""Running the API on a socket."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from seckill.loops import Stop
from seckill.memory_store import MemoryStore
from seckill.settings import Settings
from seckill.web.app import Api
from seckill.web.auth import TOKEN_BYTES_MAX
from seckill.web.claiming import ClaimingProtocol
from seckill.web.socket_guard import GuardedWebSocket
from seckill.wiring import open_engine

KEEP_ALIVE_S = 15
PING_EVERY_S = 20
# The longest token that is accepted anywhere, and the message around it.
MESSAGE_BYTES_MAX = TOKEN_BYTES_MAX + 64
# Slow readers get this long to finish when the process is told to stop.
DRAIN_S_MAX = 10


class Server(uvicorn.Server):
    def __init__(self, api: Api) -> None:
        super().__init__(
            uvicorn.Config(
                api,
                http=ClaimingProtocol,
                ws=GuardedWebSocket,
                ws_max_size=MESSAGE_BYTES_MAX,
                ws_ping_interval=PING_EVERY_S,
                ws_ping_timeout=PING_EVERY_S,
                ws_per_message_deflate=False,  # for messages this small it costs memory and saves nothing
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=DRAIN_S_MAX,
            )
        )

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the command's business; uvicorn would raise them again after it has drained."""
        yield


async def serve(settings: Settings, listener: socket.socket, stop: Stop, memory: MemoryStore | None = None) -> None:
    """Answers until told to stop, then finishes what it has begun."""
    async with open_engine(settings, memory, role="api") as engine:
        api = Api(settings, engine)
        async with api.running():
            await serve_until(stop, Server(api), listener, api)


async def serve_until(stop: Stop, server: uvicorn.Server, listener: socket.socket, api: Api) -> None:
    async def watch() -> None:
        await stop.wait()
        api.context.orders.close()  # whoever waits would hold up the end
        server.should_exit = True

    watching = asyncio.create_task(watch())
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()
