"""uvicorn's WebSocket protocol with limits on what a connection may keep us waiting for, and keep in our memory.

uvicorn lets answers to pings pile up for a client that does not read, and waits for ever for that client to take the
rest when it closes. It also closes at once on a frame that is too large: with the rest of it unread, the kernel resets
the connection, and the client does not learn why.
"""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# More than every state of every order that one socket may watch.
UNREAD_BYTES_MAX = 256 * 1024
# How long a connection that is being closed may take for it.
CLOSE_WITHIN_S = 5.0
# A message of a few kilobytes has no reason to come in more. Empty ones are not limited by size.
FRAGMENTS_MAX = 64


class GuardedWebSocket(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger("uvicorn.error.websocket")
        self._timer: asyncio.TimerHandle | None = None
        self._was_closing = False
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)
        self._tick()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _tick(self) -> None:
        if self._was_closing:
            self.transport.abort()
            return
        self._was_closing = self.transport.is_closing()
        self._timer = self.loop.call_later(CLOSE_WITHIN_S, self._tick)

    def pause_writing(self) -> None:
        """The client has left so much unread: it is cut, and nobody waits for it."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def handle_cont(self, event: Any) -> None:
        if len(self.frames) >= FRAGMENTS_MAX:
            self._refuse(1008)
        elif not self._refused:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:  # uvicorn would log it as an error of ours
                self._refuse(1007)
                return
        super().send_receive_event_to_app()

    def _refuse(self, code: int) -> None:
        self.frames = []
        self.conn.fail(code)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Says why, then drops whatever still arrives until the client has understood."""
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
        self.close_timer = self.loop.call_later(CLOSE_WITHIN_S, self.transport.abort)
        if self.transport.can_write_eof():
            self.transport.write_eof()
