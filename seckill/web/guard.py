"""uvicorn's HTTP protocol with limits on how long and how large a request may be.

uvicorn waits for ever for the rest of a request and keeps whatever arrives. Here every connection has one timer, and
at each of its ticks the connection is compared with its deadlines:

    reading   from the first byte (or the connection) to the end of the head, then to the end of the body
    writing   while the client does not read what was written for it

Nothing is timed between request and response, so long polls, event streams and WebSockets last as long as they like.
"""

import asyncio
import enum
import json
from dataclasses import dataclass
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    target_bytes_max: int = 8 * 1024
    headers_bytes_max: int = 16 * 1024
    headers_max: int = 100
    body_bytes_max: int = 64 * 1024
    head_within_s: float = 10.0
    body_within_s: float = 10.0
    # How long a client may leave its response unread.
    unread_within_s: float = 30.0
    # How long an error answer waits for the client to stop sending: closing at once would reset the connection,
    # and the client would lose the answer.
    linger_s: float = 2.0
    # A few kilobytes can hold thousands of requests, each of which becomes an object that waits.
    pipelined_max: int = 16


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    code: str
    detail: str

    def answer(self, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        title = STATUS_LINE[self.status].split(b" ", 2)[2].strip().decode()
        problem = {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        body = json.dumps(problem).encode()
        headers = [
            *default_headers,
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        return b"".join([STATUS_LINE[self.status], *(b"%b: %b\r\n" % header for header in headers), b"\r\n", body])


BAD_REQUEST = Refusal(400, "bad_request", "This is not a valid HTTP/1.1 request.")
TIMEOUT = Refusal(408, "timeout", "The request took too long to arrive.")
TOO_LARGE = Refusal(413, "too_large", "The body of the request is too large.")
URI_TOO_LONG = Refusal(414, "uri_too_long", "The address of the request is too long.")
HEADERS_TOO_LARGE = Refusal(431, "headers_too_large", "The headers of the request are too many or too large.")


class _Refused(Exception):
    """Ends the parsing of a request; the parser passes it on as the cause of its own error."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class _Phase(enum.Enum):
    WAITING = enum.auto()  # no request is arriving
    HEAD = enum.auto()
    BODY = enum.auto()
    OVER = enum.auto()  # refused: whatever still arrives is dropped


class GuardedProtocol(HttpToolsProtocol):
    limits: ClassVar[Limits] = Limits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limits = self.limits
        # No deadline is nearer than this when it is set, so the timer never has to be moved forward.
        self._tick_s = min(limits.head_within_s, limits.body_within_s, limits.unread_within_s)
        self._timer: asyncio.TimerHandle | None = None
        self._phase = _Phase.WAITING
        self._read_by: float | None = None
        self._write_by: float | None = None
        self._headers_seen = 0
        self._header_bytes = 0
        self._body_bytes = 0
        self._raw_bytes = 0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._read_by = self.loop.time() + self.limits.head_within_s
        self._timer = self.loop.call_later(self._tick_s, self._tick)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_by = self.loop.time() + self.limits.unread_within_s

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_by = None

    def handle_websocket_upgrade(self) -> None:
        # From here on the connection belongs to another protocol, which is told when it is lost.
        self._stop_timer()
        super().handle_websocket_upgrade()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        now = self.loop.time()
        if self._write_by is None and self.transport.is_closing():
            # Closing waits until everything is written, and so for ever when the client does not read.
            self._write_by = now + self.limits.unread_within_s
        if self._write_by is not None and now >= self._write_by:
            self.transport.abort()
            return
        if self._read_by is not None and now >= self._read_by:
            if self.flow.read_paused:
                # It is we who do not read, until the response to an earlier request is done.
                self._read_by = now + self.limits.body_within_s
            else:
                self._overdue()
        ...
