"""How many connections there may be: in total, and from one address, whatever they do or wait for.

Each connection is a file, and when there are no more, no client gets in, without a word. So there is a lower number at
which new clients are told that it is full, and one address may have only a share of it. Our proxies may have any
number: all clients stand behind them.
"""

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from seckill.settings import Settings
from seckill.web.client_address import ClientAddresses, prefix_of
from seckill.web.incidents import Incident
from seckill.web.request_limits import Refusal

# Each costs about 15 kB.
CONNECTIONS_MAX = 50_000
# For everything else that is a file: gate, ledger, logs, and clients being told that it is full.
RESERVE_MAX = 512
RESERVE_SHARE = 4  # a quarter of the files, where there are few
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
    """Files that this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else CONNECTIONS_MAX + RESERVE_MAX


class ConnectionPlaces:
    def __init__(self, room: Room, addresses: ClientAddresses) -> None:
        self.room = room
        self._addresses = addresses
        self._taken: Counter[str] = Counter()
        self.taken = 0

    def take(self, host: str) -> Refusal | Callable[[], None]:
        """Why not; or what gives the place back, to be called once."""
        if self.taken >= self.room.in_all:
            return NODE_CROWDED
        # Without a host it is a socket of this machine, which only a proxy can reach.
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
