"""Accepts connections: in each turn of the event loop, all that wait.

uvloop accepts one connection a turn. A turn in which 500 buyers are answered takes 15 ms, so only 65 of the buyers who
arrive during a sale would get in every second. This class accepts all that wait, up to a number that bounds how long
connected buyers wait for arriving ones.

Clients that arrive when the server is full are told so. An answer is lost when the connection is closed with something
unread, so these connections are kept for a moment in which the clients can read it, and nothing else is done for them.
"""

import asyncio
import contextlib
import errno
import socket
from collections import deque
from collections.abc import Callable

import structlog

from seckill.web.connections.connection_limits import INCIDENTS, ConnectionPlaces
from seckill.web.connections.request_limits import Refusal
from seckill.web.connections.uvicorn_adapter import HttpConnection
from seckill.web.incidents import Incidents

log = structlog.get_logger()

# About 0.1 s of work: connected buyers wait no longer than that for arriving ones. With fewer, the kernel's queue
# (4096 on most systems) would be full before a rush of ten thousand in a second is over.
ACCEPTED_PER_TURN_MAX = 1000
LINGER_S = 1.0
# The pause when the system has no resources left for a connection.
REST_S = 0.1
_UNREAD_PIECES_MAX = 8
_PIECE_BYTES = 64 * 1024
_OUT_OF = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Acceptor:
    """Has the interface of an asyncio server, as far as stopping it needs."""

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], HttpConnection],
        places: ConnectionPlaces,
        incidents: Incidents,
        make_room: Callable[[], None],
        default_headers: Callable[[], list[tuple[bytes, bytes]]],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make_protocol = make_protocol
        self._places = places
        self._incidents = incidents
        self._make_room = make_room
        self._default_headers = default_headers
        self._arriving: set[asyncio.Task[None]] = set()
        self._leaving: deque[tuple[float, socket.socket]] = deque()
        self._leaving_max = max(1, places.room.reserve // 2)
        self._closed = False

    def start(self) -> None:
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """May be called again."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listener)
            while self._leaving:
                _see_off(self._leaving.popleft()[1])

    async def wait_closed(self) -> None:
        """Waits until the server knows every client that was let in."""
        while self._arriving:
            await asyncio.wait(self._arriving)

    def _accept(self) -> None:
        self._make_room()
        for _ in range(ACCEPTED_PER_TURN_MAX):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF:
                    self._rest(error)
                    return
                continue  # that client has already hung up
            connection.setblocking(False)
            host = address[0] if isinstance(address, tuple) else ""
            place = self._places.take(host)
            if isinstance(place, Refusal):
                self._turn_away(connection, host, place)
            else:
                task = self._loop.create_task(self._let_in(connection, place))
                self._arriving.add(task)
                task.add_done_callback(self._arriving.discard)

    async def _let_in(self, connection: socket.socket, leave: Callable[[], None]) -> None:
        def make() -> HttpConnection:
            protocol = self._make_protocol()
            protocol.leave = leave
            return protocol

        try:
            await self._loop.connect_accepted_socket(make, connection)
        except OSError:  # the client was gone before it was let in
            connection.close()
            leave()

    def _rest(self, error: OSError) -> None:
        """Pauses, because otherwise the loop would spin: the connection that cannot be let in is reported again at
        once."""
        log.error("no connection can be let in", reason=error.strerror, connections=self._places.taken)
        self._loop.remove_reader(self._listener)
        self._loop.call_later(REST_S, self._resume)

    def _resume(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    def _turn_away(self, connection: socket.socket, host: str, refusal: Refusal) -> None:
        self._incidents.note(INCIDENTS[refusal], host)
        with contextlib.suppress(OSError):
            connection.send(refusal.answer(self._default_headers()))
            connection.shutdown(socket.SHUT_WR)
        if not self._leaving:
            self._loop.call_later(LINGER_S, self._see_off_due)
        elif len(self._leaving) >= self._leaving_max:
            _see_off(self._leaving.popleft()[1])
        self._leaving.append((self._loop.time() + LINGER_S, connection))

    def _see_off_due(self) -> None:
        now = self._loop.time()
        while self._leaving and self._leaving[0][0] <= now:
            _see_off(self._leaving.popleft()[1])
        if self._leaving:
            self._loop.call_at(self._leaving[0][0], self._see_off_due)


def _see_off(connection: socket.socket) -> None:
    """Reads what has arrived, so that closing does not reset the connection before the client has read its answer."""
    with contextlib.suppress(OSError), connection:
        for _ in range(_UNREAD_PIECES_MAX):
            if not connection.recv(_PIECE_BYTES):
                break
