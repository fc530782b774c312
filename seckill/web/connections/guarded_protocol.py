"""The HTTP protocol with limits on how long and how large a request may be.

uvicorn waits for ever for the rest of a request and keeps whatever arrives. Here every connection has one timer, and
at each of its ticks the connection is compared with its deadlines:

    reading   from the first byte (or the connection) to the end of the head, then to the end of the body, of which
              something must keep coming if it is an upload; between two requests, as long as uvicorn keeps idle
              connections
    writing   while the client does not take what was written for it

Nothing is timed between request and response, so long polls, event streams and WebSockets may last as long as they
need.
"""

import asyncio
import enum
import logging
from typing import Any, ClassVar, NoReturn

import httptools

from seckill.web.connections.request_limits import (
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    TIMEOUT,
    TOO_LARGE,
    URI_TOO_LONG,
    Limits,
    Refusal,
    fault_in_head,
)
from seckill.web.connections.uvicorn_adapter import HttpConnection
from seckill.web.requests.uploads import upload_to

log = logging.getLogger("uvicorn.error")

_TICK_S_MIN = 0.1  # even if idle connections are not kept at all
# How much is parsed at a time. A read brings up to 256 KiB, and a refusal should not have to wait until all of it is
# parsed.
_PIECE_BYTES = 16 * 1024


class _Phase(enum.Enum):
    IDLE = enum.auto()  # no request is arriving
    HEAD = enum.auto()
    BODY = enum.auto()
    OVER = enum.auto()  # whatever still arrives is dropped


_IDLE, _HEAD, _BODY, _OVER = _Phase  # looking up a member of an enum is slow


class GuardedProtocol(HttpConnection):
    limits: ClassVar[Limits] = Limits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limits = self.limits
        self._timer: asyncio.TimerHandle | None = None
        # No deadline is nearer than this when it is set, so setting one does not have to touch the timer.
        deadlines = (limits.head_within_s, limits.body_within_s, limits.unread_within_s, self.keep_alive_s)
        self._tick_s = max(_TICK_S_MIN, min(deadlines))
        self._first_by = 0.0  # the first deadline of all
        self._read_by: float | None = None
        self._write_by: float | None = None
        self._unread_bytes = 0  # when that deadline was set
        self._phase = _IDLE
        self._refusal = BAD_REQUEST
        # Bytes of the request that is arriving. The first piece may also contain the end of an earlier request, so the
        # true count lies between the counts with and without that piece.
        self._arrived_bytes = 0
        self._first_piece_bytes = 0
        self._piece_bytes = 0  # the latest piece
        self._body_bytes = 0
        self._uploads = False
        self._body_limits = limits
        self._upload_by = 0.0
        self._uploaded_bytes = 0  # when the deadline for reading was set

    # The connection and its timer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._read_by = self._first_by = self.loop.time() + self.limits.head_within_s
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)
        self.leave()

    def upgrade(self) -> None:
        self._disarm()
        self._phase = _OVER
        super().upgrade()

    def is_idle(self) -> bool:
        """Whether the connection is open without a request or an answer on it."""
        return self._phase is _IDLE and not self.is_answering() and not self.transport.is_closing()

    def idle_since(self) -> float:
        """Since when an idle connection has been idle, by the event loop's clock."""
        by = self._read_by or 0.0
        return by - (self.limits.head_within_s if by == self._first_by else self.keep_alive_s)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_by = None

    def _expect_reader(self) -> None:
        self._write_by = self.loop.time() + self.limits.unread_within_s
        self._unread_bytes = self.transport.get_write_buffer_size()

    def _arm(self) -> None:
        self._disarm()
        deadlines = [at for at in (self._read_by, self._write_by) if at is not None]
        self._timer = self.loop.call_at(min([self.loop.time() + self._tick_s, *deadlines]), self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        now = self.loop.time()
        if self._write_by is None and self.transport.is_closing():
            # Closing waits until everything is written, which takes for ever when the client does not read.
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
        self._read_by = None
        if self._phase is _IDLE:
            self.transport.close()
        elif self._phase is _OVER:
            self.transport.abort()
        elif self.is_reading_paused() or self.waiting():
            # An earlier request is not answered yet, and its buyer must get the answer. This one can wait with it.
            self._read_by = now + self._tick_s
        elif self._uploads and self._goes_on(now):
            self._expect_upload(now)
        else:
            self._refuse(TIMEOUT)

    def _goes_on(self, now: float) -> bool:
        came_bytes = self._body_bytes - self._uploaded_bytes
        return self._phase is _BODY and came_bytes >= self.limits.upload_bytes_min and now < self._upload_by

    def _expect_upload(self, now: float) -> None:
        self._read_by = now + self.limits.body_within_s
        self._uploaded_bytes = self._body_bytes

    # What arrives

    def data_received(self, data: bytes) -> None:
        if len(data) <= _PIECE_BYTES:
            self._feed(data)
        else:
            for start in range(0, len(data), _PIECE_BYTES):
                self._feed(data[start : start + _PIECE_BYTES])

    def is_quiet(self) -> bool:
        """Whether nothing is arriving, nothing is being answered, and nothing waits for the client to take it."""
        return self._phase is _IDLE and self.is_free()

    def _feed(self, data: bytes) -> None:
        while data and self._phase is not _OVER:
            self._piece_bytes = len(data)
            self._arrived_bytes += len(data)
            try:
                data = self.parse(data)
            except httptools.HttpParserError:
                self._refuse(self._refusal)
                return
            if not data and self._phase not in (_IDLE, _OVER):
                self._check_unfinished()

    def _check_unfinished(self) -> None:
        """Also bounds what the parser keeps or skips without telling: half a header, the framing of chunks."""
        limits = self.limits
        surely_bytes = self._arrived_bytes - self._first_piece_bytes
        if len(self.target()) > limits.target_bytes_max:
            self._refuse(URI_TOO_LONG)
        elif len(self.fields()) > limits.headers_max or (
            self._phase is _HEAD and surely_bytes > limits.target_bytes_max + limits.headers_bytes_max
        ):
            self._refuse(HEADERS_TOO_LARGE)
        elif self._phase is _BODY and surely_bytes > self._body_limits.framed_body_bytes_max:
            self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = _HEAD
        self._read_by = self.loop.time() + self.limits.head_within_s
        self._arrived_bytes = self._first_piece_bytes = self._piece_bytes
        self._body_bytes = 0

    def on_headers_complete(self) -> None:
        version, upgrades = self.version_and_upgrade()
        upload = upload_to(self.method(), self.target())
        self._uploads = upload is not None
        self._body_limits = limits = self.limits if upload is None else self.limits.of_upload(upload.bytes_max)
        refusal = fault_in_head(limits, self.target(), version, self.fields(), self._arrived_bytes, upgrades=upgrades)
        # After an upgrade, a handler still answering an earlier request would never learn that the client is gone.
        too_early = upgrades and self.is_answering() and self.becomes_websocket()
        if refusal is None and (too_early or self.waiting() >= self.limits.pipelined_max):
            refusal = BAD_REQUEST
        if refusal is not None:
            self._stop_parsing(refusal)
        super().on_headers_complete()
        self._phase = _BODY
        self._read_by = self.loop.time() + self.limits.body_within_s
        if self._uploads:
            self._uploaded_bytes = 0
            self._upload_by = self.loop.time() + self.limits.upload_within_s
        if not upgrades:
            self.keep_trailers_apart()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._body_limits.body_bytes_max:
            self._stop_parsing(TOO_LARGE)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase = _IDLE
        self._read_by = None if self.is_answering() else self.loop.time() + self.keep_alive_s

    def answered(self, *, goes_on: bool) -> None:
        if goes_on and self._phase is _BODY:
            # Only now is it the next request's turn.
            self._read_by = self.loop.time() + self.limits.body_within_s
        elif self._phase is _BODY and self._uploads:
            # The request was refused before it was read, for lack of the key or altogether. Its client must not send
            # megabytes in vain.
            self._drop_rest()
        elif not goes_on and self._phase is _IDLE:
            self._read_by = self.loop.time() + self.keep_alive_s

    # Refusing

    def _stop_parsing(self, refusal: Refusal) -> NoReturn:
        self._refusal = refusal
        raise ValueError(refusal.code)  # the parser stops and raises an error of its own

    def _refuse(self, refusal: Refusal) -> None:
        """Answers where that is still possible, and takes nothing more from the connection."""
        log.debug("Refused a request from %s: %s", self.peer(), refusal.code)
        in_body = self._phase is _BODY
        self._phase = _OVER
        self._read_by = None
        if in_body and (self.has_begun_to_answer() or self.waiting()):
            self.transport.close()
            return
        if in_body:
            self.tell_gone()
        elif self.is_answering():
            # Earlier requests on this connection were good: they get their responses, then it is closed.
            self.close_after_answer()
            return
        self.transport.write(refusal.answer(self.default_headers()))
        self._drop_rest()

    def _drop_rest(self) -> None:
        """Drops what still arrives, and closes the connection when the client has had time to take the answer."""
        self._phase = _OVER
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._read_by = self.loop.time() + self.limits.linger_s
            self._arm()
        else:
            self.transport.close()
