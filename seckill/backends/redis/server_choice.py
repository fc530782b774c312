"""Chooses by its address what a server is: a single one, a cluster, or a primary behind Sentinel."""

import re

from seckill.backends.redis.addresses import HELP
from seckill.backends.redis.cluster import ClusterServers
from seckill.backends.redis.sentinel import SentinelServers
from seckill.backends.redis.servers import CONNECTIONS_MAX, OneServer, Servers
from seckill.errors import StartError


def open_servers(url: str, connections_max: int = CONNECTIONS_MAX) -> Servers:
    """Does not connect before the first call."""
    match = re.match(r"rediss?\+([^:]*):", url)
    if match is None:
        return OneServer(url, connections_max)
    if match[1] == "cluster":
        return ClusterServers(url, connections_max)
    if match[1] == "sentinel":
        return SentinelServers(url, connections_max)
    raise StartError(f"SECKILL_REDIS_URL cannot be understood (there is no kind {match[1]!r}): {HELP}.")
