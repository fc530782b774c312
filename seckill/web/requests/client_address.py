"""Decides which client address a connection or a request has. Nothing else does.

A connection has the address of its peer. Behind a proxy that is the proxy's address, and the client's is in a header,
which anyone can write. So headers are only believed if the peer is one of `SECKILL_TRUSTED_PROXIES`, and only as far as
those proxies wrote them: they are read from the right, up to the first address that is not one of our proxies.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import structlog

from seckill.settings.kinds import Network

log = structlog.get_logger()

Headers = Iterable[tuple[bytes, bytes]]  # with names in lower case

# A provider's customer gets at least a network of this size, and could use another IPv6 address for each connection.
IPV6_PREFIX_BITS = 64
# More hops than any chain of proxies has. There is a limit because each has to be looked at.
HOPS_MAX = 20
_REMEMBERED_MAX = 4096
# At most this many warnings, because any client may pretend to be a proxy.
SUSPECTED_MAX = 10
# Matches may begin anywhere, so that a quotation mark that a client has left open does not swallow what our proxy has
# added behind it.
_FORWARDED_FOR = re.compile(rb'(?=(?:^|[;,])\s*for\s*=\s*(?:"([^"]*)"|([^;,\s"]*)))', re.IGNORECASE)


@lru_cache(_REMEMBERED_MAX)
def prefix_of(host: str) -> str:
    """Returns what counts as one client: an IPv4 address, or an IPv6 /64."""
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
        # Only for a proxy's headers, given as a tuple: a client comes back with the same ones. It saves 4 µs for each
        # claim.
        self.counted_again = lru_cache(_REMEMBERED_MAX)(self.counted)

    def trusts(self, host: str) -> bool:
        """Whether the host is a proxy of ours."""
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
        """Whether the host is a proxy of ours, or this machine."""
        return self.trusts(host) or _is_of_this_machine(host)

    def suspect(self, peer: str, headers: Headers) -> None:
        """Called for a peer that is refused because too much comes from it. If it forwards requests, it may be a proxy
        of ours that is missing in the settings, and then all clients behind it are refused as one."""
        if self.trusts(peer) or peer in self._suspected or len(self._suspected) >= SUSPECTED_MAX or not _hops(headers):
            return
        self._suspected.add(peer)
        log.warning(
            "limited as one client, though it names others", address=peer, trust_it_with="SECKILL_TRUSTED_PROXIES"
        )

    def of(self, peer: str, headers: Headers) -> str:
        """Returns the client's address, as far as the headers that state it are trusted."""
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
        """Returns the address by which limits count. It is empty, which means no limit, for requests from this machine
        and from a proxy of ours that does not say for whom it asks: any number of clients may be behind both."""
        client = self.of(peer, headers)
        return "" if self.trusts(client) or _is_of_this_machine(client) else prefix_of(client)


def _hops(headers: Headers) -> list[str]:
    """Prefers `X-Forwarded-For`: nearly all proxies write it, and some pass on a client's own `Forwarded`."""
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
