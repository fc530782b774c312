"""Limits the connections: in total, and from one address, whatever they do or wait for.

Each connection takes a file descriptor, and when there are none left, clients cannot connect and are not told why. So
at a lower number, new clients are told that the node is full, and one address may only have a share of the places. Our
proxies may have any number, since all clients are behind them.
"""

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from seckill.settings import Settings
from seckill.web.connections.request_limits import Refusal
from seckill.web.incidents import Incident
from seckill.web.requests.client_address import ClientAddresses, prefix_of

# Each costs about 15 kB.
CONNECTIONS_MAX = 50_000
# Descriptors for everything else: gate, ledger, logs, and clients that are told that the node is full.
RESERVE_MAX = 512
RESERVE_SHARE = 4  # a quarter of the descriptors, where there are few
ADDRESS_SHARE = 4  # one address may have a quarter of the places

ADDRESS_CROWDED = Refusal(
    429, "too_many_connections", "There are too many connections from your address; close some.", retry_after_s=5
)
NODE_CROWDED = Refusal(503, "too_many_connections", "Too many people are connected; please try again.", retry_after_s=1)
INCIDENTS = {ADDRESS_CROWDED: Incident.ADDRESS_CROWDED, NODE_CROWDED: Incident.NODE_CROWDED}


@dataclass(frozen=True, slots=True)
class Room:
    in_all: int
    per_address: int
    reserve: int

    @classmethod
    def of(cls, settings: Settings, descriptors: int) -> "Room":
        reserve = min(RESERVE_MAX, descriptors // RESERVE_SHARE)
        in_all = min(settings.connections_max, descriptors - reserve)
        per_address = settings.connections_per_address or in_all // ADDRESS_SHARE
        return cls(in_all, min(per_address, in_all), reserve)


def descriptors() -> int:
    """Returns how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else CONNECTIONS_MAX + RESERVE_MAX


class ConnectionPlaces:
    def __init__(self, room: Room, addresses: ClientAddresses) -> None:
        self.room = room
        self._addresses = addresses
        self._taken: Counter[str] = Counter()
        self.taken = 0

    def take(self, host: str) -> Refusal | Callable[[], None]:
        """Returns why there is no place, or a function that gives the place back, to be called once."""
        if self.taken >= self.room.in_all:
            return NODE_CROWDED
        # Without a host the connection comes over a unix socket, which only a proxy can reach.
        prefix = "" if not host or self._addresses.trusts(host) else prefix_of(host)
        if prefix and self._taken[prefix] >= self.room.per_address:
            return ADDRESS_CROWDED
        self.taken += 1
        self._taken[prefix] += 1

        def leave() -> None:
            self.taken -= 1
            self._taken[prefix] -= 1
            if not self._taken[prefix]:
                del self._taken[prefix]

        return leave
