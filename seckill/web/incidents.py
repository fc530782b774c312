"""Records signs of attacks: a count of every kind, and a line in the log that says where they come from.

One attacker can cause thousands of refusals a second. So each is counted, but only the first of a kind is logged at
once; those that follow are logged together, at most every ten seconds.
"""

import asyncio
from collections import Counter
from enum import StrEnum

import structlog

from seckill.telemetry import INCIDENTS, Tallies
from seckill.web.requests.client_address import prefix_of

log = structlog.get_logger()

TOLD_EVERY_S = 10.0
# How many addresses are told apart until they are logged; further ones count as one.
ADDRESSES_MAX = 1_000
ADDRESSES_TOLD = 5
OTHERS = "others"


class Incident(StrEnum):
    UNAUTHENTICATED = "unauthenticated"  # no token, or one that is not valid (any more)
    BAD_SIGNATURE = "bad_signature"  # of a token or a payment callback: it is forged
    ADMIN_GUESS = "admin_guess"  # a wrong admin key
    FORBIDDEN = "forbidden"
    RATE_LIMITED = "rate_limited"
    SOCKET_REFUSED = "socket_refused"
    ADDRESS_CROWDED = "address_crowded"  # too many connections of one address
    NODE_CROWDED = "node_crowded"  # too many connections in all


_ALARMING = {Incident.BAD_SIGNATURE, Incident.ADMIN_GUESS, Incident.ADDRESS_CROWDED, Incident.NODE_CROWDED}
_COUNTERS = {incident: INCIDENTS.labels(incident.value) for incident in Incident}


class Incidents:
    def __init__(self) -> None:
        self._tallies = Tallies()
        self._untold: dict[Incident, Counter[str]] = {}

    def note(self, incident: Incident, address: str) -> None:
        self._tallies.add(_COUNTERS[incident])
        untold = self._untold.get(incident)
        if untold is None:
            self._untold[incident] = Counter()
            _tell(incident, Counter({prefix_of(address): 1}))
            self._tell_later(incident)
        else:
            prefix = prefix_of(address)
            untold[prefix if prefix in untold or len(untold) < ADDRESSES_MAX else OTHERS] += 1

    def _tell_later(self, incident: Incident) -> None:
        asyncio.get_running_loop().call_later(TOLD_EVERY_S, self.tell, incident)

    def tell(self, incident: Incident) -> None:
        """Logs what has gathered since the last time. If nothing has, the next incident is logged at once again."""
        untold = self._untold.pop(incident)
        if untold:
            self._untold[incident] = Counter()
            _tell(incident, untold)
            self._tell_later(incident)


def _tell(incident: Incident, untold: Counter[str]) -> None:
    level = log.warning if incident in _ALARMING else log.info
    level(
        "refused",
        incident=incident.value,
        times=untold.total(),
        addresses=len(untold),
        most=dict(untold.most_common(ADDRESSES_TOLD)),
    )
