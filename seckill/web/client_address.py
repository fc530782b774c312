"""Whose address a connection or a request has: the only place that decides it.

A connection has the address of its peer. Behind a proxy that is the proxy's, and the client's stands in a header, which
anyone can write. So headers are believed only when the peer is one of `SECKILL_TRUSTED_PROXIES`, and of what they say
only what those have added: read from the right, up to the first address that is not one of our proxies'.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import structlog

from seckill.settings.kinds import Network

log = structlog.get_logger()

Headers = Iterable[tuple[bytes, bytes]]  # with names in lower case

# One customer of a provider has at least this much of IPv6, and could use another address for each connection.
IPV6_PREFIX_BITS = 64
# More hops than any chain of proxies has; each has to be looked at.
HOPS_MAX = 20
_REMEMBERED_MAX = 4096
# Any client may pretend to be a proxy: it makes no more noise than this.
SUSPECTED_MAX = 10
# Each is looked for from wherever it may begin: a quotation mark that a client has left open does not swallow what our
# proxy has added behind it.
_FORWARDED_FOR = re.compile(rb'(?=(?:^|[;,])\s*for\s*=\s*(?:"([^"]*)"|([^;,\s"]*)))', re.IGNORECASE)


@lru_cache(_REMEMBERED_MAX)
def prefix_of(host: str) -> str:
    """What counts as one client: an IPv4 address, or a /64 of IPv6."""
    if ":" not in host:
        return host
    address = _parsed(host)
    if not isinstance(address, IPv6Address):
        return host if address is None else str(address)
    return str(ip_network((int(address) >> IPV6_PREFIX_BITS << IPV6_PREFIX_BITS, IPV6_PREFIX_BITS)))


def _parsed(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


@lru_cache(_REMEMBERED_MAX)
def _is_of_this_machine(host: str) -> bool:
    address = _parsed(host)
    return address is None or address.is_loopback


class ClientAddresses:
    def __init__(self, trusted: Sequence[Network]) -> None:
        self._trusted = trusted
        self._known: dict[str, bool] = {}
        self._suspected: set[str] = set()
        # For the headers of a proxy alone, as a tuple: a client comes back with the same. It saves 4 µs of a claim.
        self.counted_again = lru_cache(_REMEMBERED_MAX)(self.counted)

    def trusts(self, host: str) -> bool:
        """A proxy of ours."""
        if not self._trusted:
            return False
        known = self._known.get(host)
        if known is None:
            address = _parsed(host)
            known = address is not None and any(address in network for network in self._trusted)
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.clear()
            self._known[host] = known
        return known

    def is_near(self, host: str) -> bool:
        """A proxy of ours, or something on this machine."""
        return self.trusts(host) or _is_of_this_machine(host)

    def suspect(self, peer: str, headers: Headers) -> None:
        """Of whoever is refused because too much comes from there. If it passes on what others ask, it may be a proxy
        of ours that nobody has named, and then all clients behind it are refused as one."""
        if self.trusts(peer) or peer in self._suspected or len(self._suspected) >= SUSPECTED_MAX or not _hops(headers):
            return
        self._suspected.add(peer)
        log.warning(
            "limited as one client, though it names others", address=peer, trust_it_with="SECKILL_TRUSTED_PROXIES"
        )

    def of(self, peer: str, headers: Headers) -> str:
        """The client's address, as far as those who state it are trusted."""
        if not self.trusts(peer):
            return peer
        client = peer
        for hop in reversed(_hops(headers)):
            address = _parsed(hop)
            if address is None:
                break
            client = str(address)
            if not self.trusts(client):
                break
        return client

    def counted(self, peer: str, headers: Headers) -> str:
        """What the limits of one address count by. Empty: nobody in particular, who is not limited. That is what comes
        from this machine, and a proxy of ours that does not say for whom it asks: behind both may stand everybody."""
        client = self.of(peer, headers)
        return "" if self.trusts(client) or _is_of_this_machine(client) else prefix_of(client)


def _hops(headers: Headers) -> list[str]:
    """`X-Forwarded-For` if it is there: nearly all proxies write it, and some pass on a `Forwarded` of the client's."""
    found = list(headers)
    simple = b",".join(value for name, value in found if name == b"x-forwarded-for")
    if simple:
        hops = simple.split(b",")
    else:
        standard = b",".join(value for name, value in found if name == b"forwarded")
        hops = [quoted or plain for quoted, plain in _FORWARDED_FOR.findall(standard)]
    return [_host(hop.decode("latin-1").strip()) for hop in hops[-HOPS_MAX:]]


def _host(hop: str) -> str:
    """Without a port or the brackets of IPv6."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
