"""A real uvicorn server with short limits, and a client that sends whatever bytes it is told to."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seckill.web.guard import GuardedProtocol
from seckill.web.limits import Limits

SHORT = Limits(
    target_bytes_max=1000,
    headers_bytes_max=2000,
    headers_max=20,
    body_bytes_max=5000,
    head_within_s=0.4,
    body_within_s=0.4,
    unread_within_s=0.5,
    taken_bytes_min=2000,
    linger_s=0.3,
    pipelined_max=4,
)
LONGER_S = 1.2  # than any of the deadlines above
KEEP_ALIVE_S = 1
LOOPS = ["asyncio", "uvloop"]

GET = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = b"GET /hello HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

PATIENCE_S = 10.0
SLACK_S = 4.0  # what a busy machine may add to a deadline


class ShortProtocol(GuardedProtocol):
    limits = SHORT


class EchoWebSocket(asyncio.Protocol):
    """Stands for a WebSocket library: gets the request again, answers 101, then echoes."""

    def __init__(self, **_more: Any) -> None:
        self.upgraded = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data if self.upgraded else b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        self.upgraded = True


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@dataclass
class App:
    """Does what the path says."""

    gone: list[str] = field(default_factory=list)  # paths of requests whose client went away

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        if path == "/early":
            await self._answer(send, 401, b"no")
            return
        headers = len(scope["headers"])
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.append(path)
                return
            body += message["body"]
            more = message["more_body"]
        if path == "/slow":
            await asyncio.sleep(LONGER_S)
        if path == "/events":
            await self._stream(send, [b"one", b"two", b"three"], LONGER_S / 2)
        elif path == "/flood":
            await self._stream(send, [bytes(1 << 20)] * 64, 0)
            self.gone.append(path)
        elif path == "/page":
            await self._answer(send, 200, bytes(50_000), (b"connection", b"close"))
        else:
            trailers = len(scope["headers"]) - headers
            await self._answer(send, 200, json.dumps({"path": path, "body": len(body), "trailers": trailers}).encode())

    async def _answer(self, send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, send: Any, parts: list[bytes], pause_s: float) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(pause_s)
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Guarded:
    port: int
    server: uvicorn.Server
    app: App

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def connect(self) -> "Client":
        return Client(self.port)

    def is_serving(self) -> bool:
        with self.connect() as client:
            client.send(GET)
            return client.response().status == 200


@contextlib.contextmanager
def running(loop: Literal["asyncio", "uvloop"], protocol: type[HttpToolsProtocol] = ShortProtocol) -> Iterator[Guarded]:
    app = App()
    listener = socket.create_server(("127.0.0.1", 0))
    # Accepted connections inherit it: what a client does not read soon waits in the server, not in the kernel.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws=EchoWebSocket,
        loop=loop,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        eventually(lambda: server.started)
        yield Guarded(listener.getsockname()[1], server, app)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def on_each_loop(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    with running(request.param) as server:
        yield server


def is_empty_afterwards(server: Guarded) -> Iterator[None]:
    """S32: whatever a client does, its connection is gone when it is."""
    yield
    eventually(lambda: server.connections == 0)


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        assert self.headers["connection"] == "close"
        value: dict[str, Any] = json.loads(self.body)
        assert value["status"] == self.status
        return value


class Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE_S)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes, every_s: float = 0.02) -> float:
        """Sends byte by byte until the server has something to say; returns how long that took."""
        began = time.monotonic()
        self.socket.settimeout(every_s)
        for byte in data:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.socket.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                self.socket.recv(1, socket.MSG_PEEK)
                break
        else:
            raise AssertionError("the server took it all")
        self.socket.settimeout(PATIENCE_S)
        return time.monotonic() - began

    def sends_until_cut(self, data: bytes) -> bool:
        """Never reads, and sends again and again whatever the server takes."""
        self.socket.settimeout(0.05)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                try:
                    self.socket.sendall(data)
                except ConnectionError:
                    return True
        return False

    def response(self) -> Response:
        status = int(self.file.readline().split()[1])
        headers: dict[str, str] = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        if "content-length" in headers:
            return Response(status, headers, self.file.read(int(headers["content-length"])))
        body = b""
        while size := int(self.file.readline(), 16):
            body += self.file.read(size + 2)[:-2]
        self.file.readline()
        return Response(status, headers, body)

    def is_closed(self) -> bool:
        """Waits for the end of the connection, with nothing more before it."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True
