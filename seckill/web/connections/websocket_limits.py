"""The WebSocket protocol with limits on how long a connection may make us wait and how much memory it may take.

For a client that does not read, uvicorn lets answers to pings pile up, and when it closes, waits for ever until the
client has taken the rest.
"""

import asyncio
from typing import Any

from seckill.web.connections.uvicorn_adapter import WebSocketConnection

# More than every state of every order that one socket may watch.
UNREAD_BYTES_MAX = 256 * 1024
# How long closing a connection may take.
CLOSE_WITHIN_S = 5.0
# A message of a few kilobytes has no reason to come in more fragments. Empty ones are not limited by size.
FRAGMENTS_MAX = 64


class GuardedWebSocket(WebSocketConnection):
    fragments_max = FRAGMENTS_MAX
    close_within_s = CLOSE_WITHIN_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._was_closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)
        self._tick()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        self.leave()

    def _tick(self) -> None:
        if self._was_closing:
            self.transport.abort()
            return
        self._was_closing = self.transport.is_closing()
        self._timer = self.loop.call_later(CLOSE_WITHIN_S, self._tick)

    def pause_writing(self) -> None:
        """The client has left too much unread: it is cut off at once."""
        self.transport.abort()
