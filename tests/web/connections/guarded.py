"""A real uvicorn server with short limits."""

import asyncio
import contextlib
import json
import logging
import socket
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seckill.web.connections.guarded_protocol import GuardedProtocol
from seckill.web.connections.request_limits import Limits
from tests.patience import PATIENCE_S
from tests.web.connections.raw_client import Client, eventually
from tests.web.connections.requests import GET

SHORT = Limits(
    target_bytes_max=1000,
    headers_bytes_max=2000,
    headers_max=20,
    body_bytes_max=5000,
    framed_body_bytes_max=20_000,
    head_within_s=0.4,
    body_within_s=0.6,
    unread_within_s=0.5,
    taken_bytes_min=8000,
    linger_s=0.3,
    upload_bytes_min=1000,
    upload_within_s=3.0,
    pipelined_max=4,
)
LONGER_S = 0.8  # than any of the deadlines above
KEEP_ALIVE_S = 1
LOOPS = ["asyncio", "uvloop"]


class ShortProtocol(GuardedProtocol):
    limits = SHORT
    alive: ClassVar[weakref.WeakSet["ShortProtocol"]] = weakref.WeakSet()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.alive.add(self)


class EchoWebSocket(asyncio.Protocol):
    """Stands for a WebSocket library: gets the request again, answers 101, then echoes."""

    def __init__(self, **_more: Any) -> None:
        self.upgraded = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data if self.upgraded else b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        self.upgraded = True


@dataclass
class App:
    """Does what the path says."""

    gone: list[str] = field(default_factory=list)  # paths of requests whose client went away

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        if "early" in path:
            await self._answer(send, 401, b"no")
            return
        if path == "/hasty":
            for _ in range(2):
                await receive()
            await self._answer(send, 200, b"half of it will do")
            return
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
            await self._stream(send, [b"one", b"two"], LONGER_S)
        elif path == "/flood":
            await self._stream(send, [bytes(1 << 20)] * 64, 0)
            self.gone.append(path)
        elif path == "/page":
            await self._answer(send, 200, bytes(50_000), (b"connection", b"close"))
        else:
            facts = {"path": path, "body": len(body), "headers": len(scope["headers"])}
            await self._answer(send, 200, json.dumps(facts).encode())

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

    def connect(self) -> Client:
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


def without_deadlines(server: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits for tests that are not about deadlines: on a busy machine a client may be slow to send."""
    patient = replace(SHORT, head_within_s=PATIENCE_S, body_within_s=PATIENCE_S, unread_within_s=PATIENCE_S)
    monkeypatch.setattr(ShortProtocol, "limits", patient)
    monkeypatch.setattr(server.server.config, "timeout_keep_alive", int(PATIENCE_S))


def is_quiet_and_empty(server: Guarded, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a client does, its connection is gone when it is, and nothing broke over it (S32)."""
    yield
    eventually(lambda: server.connections == 0)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
