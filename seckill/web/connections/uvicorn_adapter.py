"""All that we use of uvicorn's internals, under our own names, so that a new version affects this module only.

uvicorn promises `Config` and `Server`, but not how its protocols work, and we build on those.
`tests/web/connections/test_uvicorn_adapter.py` checks each name used here, and says which of them a version lacks.
"""

import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

__all__ = ["STATUS_LINE", "HttpConnection", "HttpServer", "WebSocketConnection"]


def _no_place() -> None:
    """Stands for `leave` on a connection that was not counted."""


class _Heads:
    """The first lines of answers. They change once a second, with the date."""

    def __init__(self) -> None:
        self.default_headers: list[tuple[bytes, bytes]] = []
        self.made: dict[int, bytes] = {}

    def make(self, status: int, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        if default_headers is not self.default_headers:
            self.default_headers, self.made = default_headers, {}
        lines = (b"%b: %b\r\n" % header for header in default_headers)
        head = self.made[status] = b"".join([STATUS_LINE[status], *lines])
        return head


class HttpConnection(HttpToolsProtocol):
    """uvicorn's HTTP protocol. Its `on_...` methods but the last are the parser's, and may be extended; the parser is
    httptools, which is not uvicorn's own."""

    _heads: ClassVar[_Heads] = _Heads()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.application: Any = self.app
        self.keep_alive_s: float = self.timeout_keep_alive
        self.leave: Callable[[], None] = _no_place  # gives the connection's place back
        self._begun: RequestResponseCycle | None = None  # the request that is being answered, or was answered last

    def connection_lost(self, exc: Exception | None) -> None:
        """Also tells requests that others have followed: they would write to a connection that is gone."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._begun = cycle
        super()._start_asgi_task(cycle, app)

    def _unanswered(self) -> list[RequestResponseCycle]:
        """Returns them in the order in which they arrived, which is the order of their answers."""
        waiting = [cycle for cycle, _ in reversed(self.pipeline)]
        begun = self._begun
        return waiting if begun is None or begun.response_complete else [begun, *waiting]

    def peer(self) -> str:
        """The address at the other end; empty if there is none."""
        return self.client[0] if self.client else ""

    # The request that is arriving

    def parse(self, data: bytes) -> bytes:
        """Returns the bytes after the head of an upgrade, where the parser stops. They are for the new protocol. Other
        upgrades than those to a WebSocket are treated as plain requests, and then these bytes are the next request.
        Raises `httptools.HttpParserError`."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            if self.becomes_websocket():
                self.upgrade()
                if rest:
                    self.transport.get_protocol().data_received(rest)  # type: ignore[attr-defined]
                return b""
            return rest
        return b""

    def becomes_websocket(self) -> bool:
        return self._should_upgrade()

    def upgrade(self) -> None:
        """Hands the connection over to another protocol, which is told when the connection is lost."""
        self.handle_websocket_upgrade()
        self.transport.get_protocol().leave = self.leave  # type: ignore[attr-defined]

    def method(self) -> bytes:
        return bytes(self.parser.get_method())

    def target(self) -> bytes:
        return self.url

    def fields(self) -> list[tuple[bytes, bytes]]:
        """The headers that have arrived, with names in lower case."""
        return self.headers

    def keep_trailers_apart(self) -> None:
        """The application has the list of headers. Trailers are collected in another, to keep them out of it."""
        self.headers = []

    def version_and_upgrade(self) -> tuple[str, bool]:
        return self.parser.get_http_version(), self.parser.should_upgrade()

    # The request that is being answered, and those that wait for it

    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def is_free(self) -> bool:
        """Whether nothing is being answered, and the client takes what is written for it."""
        return (self.cycle is None or self.cycle.response_complete) and not self.flow.write_paused

    def has_begun_to_answer(self) -> bool:
        return self.cycle.response_started

    def scope_of_request(self) -> Any:
        """Returns that of the request which arrived last."""
        return self.cycle.scope

    def close_after_answer(self) -> None:
        self.cycle.keep_alive = False

    def answer_after_end(self, is_awaited: Callable[[Any], bool], mark: str) -> bool:
        """Called when the client has sent all that it will. Returns whether a whole request whose answer it may wait
        for is still to be answered. Then each of these has the mark in its scope, and the connection is closed behind
        the last of them."""
        awaited = [cycle for cycle in self._unanswered() if not cycle.more_body and is_awaited(cycle.scope)]
        for cycle in awaited:
            cycle.scope[mark] = True  # type: ignore[literal-required]
            cycle.message_event.set()
        if awaited:
            awaited[-1].keep_alive = False
        return bool(awaited)

    def tell_gone(self) -> None:
        """Tells the application, which already has the request, that the client is gone."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def waiting(self) -> int:
        return len(self.pipeline)

    def is_reading_paused(self) -> bool:
        return self.flow.read_paused

    def on_response_complete(self) -> None:
        """Replaces uvicorn's method, which sets a timer for every response and lets any byte stop it."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            self.answered(goes_on=True)
        else:
            self.answered(goes_on=False)

    def answered(self, *, goes_on: bool) -> None:
        """Called after each answer. `goes_on`: the next request waited for it."""

    # Answers that are made without an application

    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return self.server_state.default_headers

    def begin_answer(self, status: int) -> bytes:
        """Returns the first lines of the answer, which counts as a request."""
        state, heads = self.server_state, self._heads
        state.total_requests += 1
        head = heads.made.get(status) if state.default_headers is heads.default_headers else None
        return head or heads.make(status, state.default_headers)


class WebSocketConnection(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol. Closes what it refuses so that the client learns why."""

    fragments_max: ClassVar[int]
    close_within_s: ClassVar[float]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Both log something for every connection; under this name only errors are logged.
        self.logger = self.conn.logger = logging.getLogger("uvicorn.error.websocket")
        self.leave: Callable[[], None] = _no_place  # gives the connection's place back
        self._refused = False

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def handle_cont(self, event: Any) -> None:
        if len(self.frames) >= self.fragments_max:
            self._refuse(1008)
        elif not self._refused:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:  # uvicorn would log it as our error
                self._refuse(1007)
                return
        super().send_receive_event_to_app()

    def _refuse(self, code: int) -> None:
        self.frames = []
        self.conn.fail(code)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Says why, then drops whatever still arrives until the client has closed. uvicorn closes at once: with the
        rest unread, the kernel resets the connection, and the client does not learn why."""
        if self._refused:
            return
        self._refused = True
        self.close_sent = True
        self.stop_keepalive()
        assert self.conn.close_sent is not None
        self.queue.put_nowait({"type": "websocket.disconnect", "code": self.conn.close_sent.code})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(self.close_within_s, self.transport.abort)
        if self.transport.can_write_eof():
            self.transport.write_eof()


class Listening(Protocol):
    """The part of an asyncio server that is needed to stop it."""

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...


class HttpServer(uvicorn.Server, ABC):
    def __init__(self, application: Any, *, http: type[HttpConnection], **options: Any) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=http,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                **options,
            )
        )
        self._connection_class = http

    @abstractmethod
    def listen(self, listener: socket.socket) -> Listening:
        """Lets clients in, each with a `make_connection`."""

    def make_connection(self) -> HttpConnection:
        return self._connection_class(self.config, self.server_state, self.lifespan.state)

    def connections(self) -> Collection[object]:
        """The connections of all kinds; the same object for as long as the server runs."""
        return self.server_state.connections

    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return self.server_state.default_headers

    def stop(self) -> None:
        """Makes the server answer what it has begun, and end."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Replaces uvicorn's method, which listens on other kinds of sockets as well and leaves accepting to the event
        loop."""
        await self.lifespan.startup()
        self.servers = [self.listen(listener) for listener in sockets or []]  # type: ignore[misc]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
            await listening.wait_closed()  # clients still on the way in must be told, too
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        self.ticked()
        return await super().on_tick(counter)

    def ticked(self) -> None:
        """Called ten times a second."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The command handles signals; uvicorn would raise them again after it has drained."""
        yield
