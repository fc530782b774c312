"""Addresses that stand for several servers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from seckill.errors import StartError

Address = tuple[str, int]

HELP = "use redis://host:port/0, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/name"
_MANY = re.compile(r"(rediss?)\+(cluster|sentinel)://(?:([^@/]*)@)?([^/?@]+)(?:/([^/?]*))?(?:/(\d+))?(?:\?(.*))?")
_FOR_SENTINEL = "sentinel_password="


@dataclass(frozen=True, slots=True)
class ManyUrl:
    """`redis+cluster://[user:password@]host:port,…` or
    `redis+sentinel://[user:password@]host:port,…/name[/database][?sentinel_password=…]`."""

    scheme: str
    credentials: str
    seeds: Sequence[Address]
    name: str
    database: int
    options: str
    sentinel_password: str

    def of(self, address: Address) -> str:
        return self._url(address, self.credentials, self.database)

    def of_sentinel(self, address: Address) -> str:
        return self._url(address, f":{self.sentinel_password}" if self.sentinel_password else "", 0)

    def _url(self, address: Address, credentials: str, database: int) -> str:
        host, port = address
        host = f"[{host}]" if ":" in host else host
        login = f"{credentials}@" if credentials else ""
        return f"{self.scheme}://{login}{host}:{port}/{database}{f'?{self.options}' if self.options else ''}"


def parse_many(url: str) -> ManyUrl:
    match = _MANY.fullmatch(url)
    if match is None:
        raise StartError(f"SECKILL_REDIS_URL cannot be understood: {HELP}.")
    scheme, kind, credentials, hosts, name, database, query = match.groups()
    seeds = []
    for part in hosts.split(","):
        host, _, port = part.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise StartError(f"SECKILL_REDIS_URL cannot be understood ({part!r} is no host:port): {HELP}.")
        seeds.append((host.strip("[]"), int(port)))
    if kind == "sentinel" and not name:
        raise StartError(f"SECKILL_REDIS_URL does not name the primary that Sentinel watches: {HELP}.")
    if kind == "cluster" and (name not in (None, "", "0") or database):
        raise StartError("SECKILL_REDIS_URL names a database, but a cluster has only one: leave it out.")
    options = [option for option in (query or "").split("&") if option]
    own = [option for option in options if option.startswith(_FOR_SENTINEL)]
    return ManyUrl(
        scheme=scheme,
        credentials=credentials or "",
        seeds=seeds,
        name=name or "",
        database=int(database or 0),
        options="&".join(option for option in options if option not in own),
        sentinel_password=own[-1].removeprefix(_FOR_SENTINEL) if own else "",
    )


def beside(url: str, address: Address) -> str:
    """The address `url`, but with another server in it. `url` names a single server. If that one is on a socket of this
    machine, the others are on ports."""
    parts = urlsplit(url)
    host, port = address
    login, at, _ = parts.netloc.rpartition("@")
    netloc = f"{login}{at}{f'[{host}]' if ':' in host else host}:{port}"
    if parts.scheme == "unix":
        return urlunsplit(("redis", netloc, "", "", ""))
    return urlunsplit(parts._replace(netloc=netloc))
