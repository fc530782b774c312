"""Whose address a connection or a request has: the only place that decides it.

A connection has the address of its peer. Behind a proxy that is the proxy's, and the client's stands in a header, which
anyone can write. So headers are believed only when the peer is one of `SECKILL_TRUSTED_PROXIES`, and of what they say
only what those have added: read from the right, up to the first address that is not one of our proxies'.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from seckill.settings.kinds import Network

Headers = Iterable[tuple[bytes, bytes]]  # with names in lower case

# One customer of a provider has at least this much of IPv6, and could use another address for each connection.
IPV6_PREFIX_BITS = 64
# More hops than any chain of proxies has; each has to be looked at.
HOPS_MAX = 20
_REMEMBERED_MAX = 4096
_FORWARDED_FOR = re.compile(rb'(?:^|[;,])\s*for\s*=\s*(?:"([^"]*)"|([^;,\s"]*))', re.IGNORECASE)


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


class ClientAddresses:
    def __init__(self, trusted: Sequence[Network]) -> None:
        self._trusted = trusted
        self._known: dict[str, bool] = {}

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
