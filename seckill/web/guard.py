"""uvicorn's HTTP protocol with limits on how long and how large a request may be.

uvicorn waits for ever for the rest of a request and keeps whatever arrives. Here every connection has one timer, and
at each of its ticks the connection is compared with its deadlines:

    reading   from the first byte (or the connection) to the end of the head, then to the end of the body
    writing   while the client does not take what was written for it

Nothing is timed between request and response, so long polls, event streams and WebSockets last as long as they like.
"""

import asyncio
import enum
from typing import Any, ClassVar, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seckill.web.limits import BAD_REQUEST, HEADERS_TOO_LARGE, TIMEOUT, TOO_LARGE, URI_TOO_LONG, Limits, Refusal

# Bytes on the wire for each byte of a chunked body: enough for small chunks, not for endless extensions of them.
_FRAMING_FACTOR = 4


class _Phase(enum.Enum):
    WAITING = enum.auto()  # no request is arriving
    HEAD = enum.auto()
    BODY = enum.auto()
    OVER = enum.auto()  # refused: whatever still arrives is dropped


class GuardedProtocol(HttpToolsProtocol):
    limits: ClassVar[Limits] = Limits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        # No deadline is nearer than this when it is set, so setting one does not have to touch the timer.
        self._tick_s = min(self.limits.head_within_s, self.limits.body_within_s, self.limits.unread_within_s)
        self._read_by: float | None = None
        self._write_by: float | None = None
        self._unread_bytes = 0  # when that deadline was set
        self._phase = _Phase.WAITING
        self._refusal = BAD_REQUEST
        # Of the request that is arriving.
        self._ordinal = 0
        self._header_count = 0
        self._header_bytes = 0
        self._body_bytes = 0
        self._raw_bytes = 0

    # The connection and its timer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._read_by = self.loop.time() + self.limits.head_within_s
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        # From here on the connection belongs to another protocol, and that one is told when it is lost.
        self._disarm()
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_by = None

    def _arm(self) -> None:
        self._disarm()
        now = self.loop.time()
        deadlines = [at for at in (self._read_by, self._write_by) if at is not None]
        self._timer = self.loop.call_later(max(0, min([now + self._tick_s, *deadlines]) - now), self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expect_reader(self) -> None:
        self._write_by = self.loop.time() + self.limits.unread_within_s
        self._unread_bytes = self.transport.get_write_buffer_size()

    def _tick(self) -> None:
        now = self.loop.time()
        if self._write_by is None and self.transport.is_closing():
            # Closing waits until everything is written, which is for ever when the client does not read.
            self._expect_reader()
        elif self._write_by is not None and now >= self._write_by:
            taken_bytes = self._unread_bytes - self.transport.get_write_buffer_size()
            if taken_bytes < self.limits.taken_bytes_min:
                self.transport.abort()
            self._expect_reader()
        elif self._read_by is not None and now >= self._read_by:
            self._overdue(now)
        self._arm()

    def _overdue(self, now: float) -> None:
        if self._phase in (_Phase.WAITING, _Phase.OVER):
            self.transport.abort()  # there is nothing left to be written
            self._read_by = None
        elif self.flow.read_paused or self.pipeline:
            # An earlier request is not answered yet, and its buyer shall have the answer. This one can wait with it.
            self._read_by = now + self._tick_s
        else:
            self._refuse(TIMEOUT)

    # What arrives

    def data_received(self, data: bytes) -> None:
        if self._phase is _Phase.OVER:
            return
        self._unset_keepalive_if_required()
        ordinal = self._ordinal
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Another upgrade than to a WebSocket is not done, and the request was taken as a plain one.
            if self._should_upgrade():
                self.handle_websocket_upgrade()
                return
        except httptools.HttpParserError:
            self._refuse(self._refusal)
            return
        if ordinal == self._ordinal:
            self._count_raw(len(data))

    def _count_raw(self, size: int) -> None:
        """Bounds what the parser keeps or skips without telling: half a header, the framing of chunks, line ends."""
        limits = self.limits
        self._raw_bytes += size
        if self._phase is _Phase.HEAD and self._raw_bytes > limits.target_bytes_max + limits.headers_bytes_max:
            self._refuse(HEADERS_TOO_LARGE)
        elif self._phase is _Phase.BODY and self._raw_bytes > _FRAMING_FACTOR * limits.body_bytes_max:
            self._refuse(TOO_LARGE)
        elif self._phase is _Phase.WAITING and self._read_by is None and not self._answering():
            self._read_by = self.loop.time() + limits.head_within_s

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = _Phase.HEAD
        self._read_by = self.loop.time() + self.limits.head_within_s
        self._ordinal += 1
        self._header_count = self._header_bytes = self._body_bytes = self._raw_bytes = 0

    def on_url(self, url: bytes) -> None:
        if len(self.url) + len(url) > self.limits.target_bytes_max:
            self._stop_parsing(URI_TOO_LONG)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._header_bytes += len(name) + len(value) + len(b": \r\n")
        limits = self.limits
        if self._header_count > limits.headers_max or self._header_bytes > limits.headers_bytes_max:
            self._stop_parsing(HEADERS_TOO_LARGE)
        # A trailer comes when the application already has the headers; it must not get among them.
        if self._phase is _Phase.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._check_head()
        super().on_headers_complete()
        self._phase = _Phase.BODY
        self._read_by = self.loop.time() + self.limits.body_within_s

    def _check_head(self) -> None:
        version = self.parser.get_http_version()
        values: dict[bytes, list[bytes]] = {b"host": [], b"content-length": [], b"transfer-encoding": []}
        for name, value in self.headers:
            if name in values:
                values[name].append(value)
        hosts, lengths, encodings = values.values()
        # Two ways of telling where a body ends are how one request is smuggled inside another.
        framed = len(lengths) + len(encodings)
        if (
            version not in ("1.0", "1.1")
            or len(hosts) > 1
            or (version == "1.1" and not hosts)
            or framed > 1
            or (encodings and (version == "1.0" or encodings[0].lower() != b"chunked"))
            # The parser takes what follows an upgrade as the new protocol, not as a body.
            or (framed and self.parser.should_upgrade())
            or len(self.pipeline) >= self.limits.pipelined_max
        ):
            self._stop_parsing(BAD_REQUEST)
        if lengths and int(lengths[0]) > self.limits.body_bytes_max:
            self._stop_parsing(TOO_LARGE)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self.limits.body_bytes_max:
            self._stop_parsing(TOO_LARGE)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase = _Phase.WAITING
        self._read_by = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._phase is _Phase.BODY and self._answering():
            # It is this request's turn only now.
            self._read_by = self.loop.time() + self.limits.body_within_s

    # Refusing

    def _stop_parsing(self, refusal: Refusal) -> NoReturn:
        self._refusal = refusal
        raise ValueError(refusal.code)  # the parser stops and raises an error of its own

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, refusal: Refusal) -> None:
        """Answers where that is still possible, and takes nothing more from the connection."""
        self.logger.debug("Refused a request from %s: %s", self.client, refusal.code)
        in_body = self._phase is _Phase.BODY
        self._phase = _Phase.OVER
        self._read_by = None
        if in_body and (self.cycle.response_started or self.pipeline):
            self.transport.close()
            return
        if in_body:
            # The application has the request already: it is told that the client is gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        elif self._answering():
            # Earlier requests on this connection were good: they get their responses, then it is closed.
            self.cycle.keep_alive = False
            return
        self.transport.write(refusal.answer(self.server_state.default_headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._read_by = self.loop.time() + self.limits.linger_s
            self._arm()
        else:
            self.transport.close()
