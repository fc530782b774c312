"""When places get scarce, idle connections make room for new ones.

A browser that comes back opens another connection and notices nothing, while a buyer who is turned away does.
"""

import asyncio
from collections.abc import Iterable

from seckill.web.connections.connection_limits import ConnectionPlaces
from seckill.web.connections.guarded_protocol import GuardedProtocol

# The share of places in use from which room is made. Finding the oldest connections means looking at all of them, so
# many are found at a time, and not too often.
CROWDED_SHARE = 0.95
MADE_SHARE = 0.05
EVERY_S = 0.5
# A client that has just connected may be about to ask.
IDLE_S_MIN = 1.0


class IdleConnections:
    def __init__(self, connections: Iterable[object], places: ConnectionPlaces) -> None:
        self._connections = connections
        self._places = places
        self._not_before_s = 0.0

    def make_room(self) -> None:
        in_all = self._places.room.in_all
        now = asyncio.get_running_loop().time()
        if self._places.taken < in_all * CROWDED_SHARE or now < self._not_before_s:
            return
        self._not_before_s = now + EVERY_S
        idle = [
            each
            for each in self._connections
            if isinstance(each, GuardedProtocol) and each.is_idle() and each.idle_since() <= now - IDLE_S_MIN
        ]
        idle.sort(key=GuardedProtocol.idle_since)
        for connection in idle[: max(1, int(in_all * MADE_SHARE))]:
            connection.shutdown()
