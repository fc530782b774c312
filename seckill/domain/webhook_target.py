"""Decides where webhooks may go: which addresses an operator may name, and to which of them we may connect. Pure.

Anyone who may name an address for us to call could explore our network with it. So a name is resolved once for each
delivery, every address that it resolves to is checked here, and the connection goes to one of these.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

URL_LENGTH_MAX = 2048
# Ports of web servers. Others belong to mail servers, databases, caches and brokers, which understand parts of HTTP.
PORTS = (80, 443, 8080, 8443)
# In one's own network a receiver may be on any port that needs no privileges to listen on.
OWN_PORT_MIN = 1024

# The characters that RFC 3986 allows in an address, without a fragment, so that it means the same to every reader.
_URL = re.compile(r"https?://[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
# Some programs take `2130706433`, `0x7f.1` and `127.1` for 127.0.0.1, others for names.
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")
_LOOPBACK_NAME = re.compile(r"(?:.*\.)?localhost\.?", re.IGNORECASE)

Address = IPv4Address | IPv6Address

# Networks in addition to those excluded by `is_global`, which differs between versions of Python: multicast, old and
# future use.
_NEVER = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of a provider
            "127.0.0.0/8",
            "169.254.0.0/16",  # with the metadata services of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "::/96",  # unspecified, loopback, and what once stood for IPv4
            "64:ff9b:1::/48",  # NAT64 of one's own
            "100::/64",
            "2001::/23",  # with Teredo, which leads to an IPv4 address
            "2001:db8::/32",
            "2002::/16",  # 6to4, likewise
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
        ),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    host: str  # a name or an address, without brackets
    port: int
    secure: bool
    path: str  # with the query
    authority: str  # as the Host header has it


class BadTarget(ValueError):
    """The message is the end of a sentence that begins with the field's name."""


def read_target(url: str, *, private: bool) -> Target:
    """Reads an operator's address and checks it as far as possible without a look-up. Raises BadTarget."""
    parts = _split(url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    if "@" in parts.netloc:
        raise BadTarget("must not have a user name or password in it: deliveries are signed")
    if port not in PORTS and not (private and port >= OWN_PORT_MIN):
        others = f" and those from {OWN_PORT_MIN} on" if private else ""
        raise BadTarget(f"has a port that webhooks do not go to; there are {', '.join(map(str, PORTS))}{others}")
    literal = _literal(host)
    if literal is None and (not _NAME.fullmatch(host) or len(host) > 253 or _NUMERIC.fullmatch(host)):
        raise BadTarget("has a host that is neither a name nor an address")
    if not private and (_LOOPBACK_NAME.fullmatch(host) or (literal is not None and not is_public(literal))):
        raise BadTarget("must lead to a public address (SECKILL_WEBHOOK_PRIVATE=on allows others)")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(host=host, port=port, secure=secure, path=path, authority=parts.netloc)


def is_public(address: Address) -> bool:
    """Whether the address is public: in no private network, no multicast group, and no tunnel to one."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return not any(address in network for network in _NEVER if network.version == address.version)


def _split(url: str) -> SplitResult:
    if len(url) > URL_LENGTH_MAX:
        raise BadTarget(f"must have at most {URL_LENGTH_MAX} characters")
    if not _URL.fullmatch(url):
        raise BadTarget("must be an address that begins with https:// or http://, without spaces and fragment")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises if it is none)
    except ValueError:
        raise BadTarget("must be an address that begins with https:// or http://") from None
    if not parts.hostname or parts.port == 0:
        raise BadTarget("must name a host")
    return parts


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
