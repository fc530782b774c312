"""Running the API on a socket."""

import asyncio
import socket

import structlog

from seckill.backends.memory.store import MemoryStore
from seckill.bootstrap.engine import open_engine
from seckill.loops import Stop
from seckill.operations.role_health import Vitals, watched
from seckill.settings import Settings
from seckill.telemetry import CONNECTIONS, CONNECTIONS_MAX
from seckill.web.app import Api
from seckill.web.buyers.buyer_tokens import TOKEN_BYTES_MAX
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.claims.traced_protocol import TracedProtocol
from seckill.web.connections.acceptor import Acceptor
from seckill.web.connections.connection_limits import ConnectionPlaces, Room, descriptors
from seckill.web.connections.idle_connections import IdleConnections
from seckill.web.connections.uvicorn_adapter import HttpServer
from seckill.web.connections.websocket_limits import GuardedWebSocket

log = structlog.get_logger()

KEEP_ALIVE_S = 15
PING_EVERY_S = 20
# The longest token that is accepted anywhere, and the message around it.
MESSAGE_BYTES_MAX = TOKEN_BYTES_MAX + 64
# Slow readers get this long to finish when the process is told to stop.
DRAIN_S_MAX = 10


class ApiServer(HttpServer):
    def __init__(self, api: Api) -> None:
        super().__init__(
            api,
            http=ClaimingProtocol if api.traced is None else TracedProtocol,
            ws=GuardedWebSocket,
            ws_max_size=MESSAGE_BYTES_MAX,
            ws_ping_interval=PING_EVERY_S,
            ws_ping_timeout=PING_EVERY_S,
            ws_per_message_deflate=False,  # for messages this small it costs memory and saves nothing
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=DRAIN_S_MAX,
        )
        ctx = api.context
        self.places = ConnectionPlaces(Room.of(ctx.settings, descriptors()), ctx.addresses)
        self._incidents = ctx.incidents
        self._idle = IdleConnections(self.connections(), self.places)

    def listen(self, listener: socket.socket) -> Acceptor:
        room = self.places.room
        log.info("connections", at_most=room.in_all, of_one_address=room.per_address, open_files=descriptors())
        acceptor = Acceptor(
            listener, self.make_connection, self.places, self._incidents, self._idle.make_room, self.default_headers
        )
        acceptor.start()
        return acceptor

    def ticked(self) -> None:
        CONNECTIONS.set(self.places.taken)
        CONNECTIONS_MAX.set(self.places.room.in_all)


async def serve(
    settings: Settings,
    listener: socket.socket,
    stop: Stop,
    memory: MemoryStore | None = None,
    vitals: Vitals | None = None,
) -> None:
    """Answers until told to stop, then finishes the requests under way."""
    async with open_engine(settings, memory, role="api") as engine:
        api = Api(settings, engine)
        async with api.running(), watched(vitals, api.context.readiness):
            await serve_until(stop, ApiServer(api), listener, api)


async def serve_until(stop: Stop, server: HttpServer, listener: socket.socket, api: Api) -> None:
    async def watch() -> None:
        await stop.wait()
        api.context.answer_waiting()
        server.stop()

    watching = asyncio.create_task(watch())
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()
