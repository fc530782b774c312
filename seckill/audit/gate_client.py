"""The auditor's own way to the gate: the library's clients, not the engine's."""

from typing import Any

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from seckill.errors import StartError
from seckill.gates.addresses import HELP, parse_many

TIMEOUT_S = 5.0
_TIMEOUTS: dict[str, Any] = {"socket_connect_timeout": TIMEOUT_S, "socket_timeout": TIMEOUT_S}


def open_client(url: str) -> Any:
    """Reads only, so it does not matter what the library repeats."""
    scheme = url.partition(":")[0]
    try:
        if scheme.endswith("+cluster"):
            return _cluster(url)
        if scheme.endswith("+sentinel"):
            return _sentinel(url)
        client = Redis.from_url(url, retry=Retry(NoBackoff(), 0), retry_on_error=[], **_TIMEOUTS)
        # Only now the library looks at the parameters. It does not connect.
        client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        return client
    except (ValueError, TypeError) as error:
        raise StartError(f"SECKILL_REDIS_URL cannot be understood ({error}): {HELP}.") from error


async def close_client(client: Any) -> None:
    await client.aclose()
    if isinstance(client.connection_pool if isinstance(client, Redis) else None, SentinelConnectionPool):
        for sentinel in client.connection_pool.sentinel_manager.sentinels:  # which the library leaves open
            await sentinel.aclose()


def _cluster(url: str) -> RedisCluster:
    many = parse_many(url)
    nodes = [ClusterNode(host, port) for host, port in many.seeds]
    return RedisCluster(startup_nodes=nodes, **_options(many.of(many.seeds[0])), **_TIMEOUTS)


def _sentinel(url: str) -> Any:
    many = parse_many(url)
    about_sentinels = _options(many.of_sentinel(many.seeds[0])) | _TIMEOUTS
    sentinel = Sentinel(many.seeds, sentinel_kwargs=about_sentinels)  # type: ignore[no-untyped-call]
    about_primary = _options(many.of(many.seeds[0])) | _TIMEOUTS | {"db": many.database}
    return sentinel.master_for(many.name, **about_primary)


def _options(url: str) -> dict[str, Any]:
    """Everything but where it is."""
    options: dict[str, Any] = dict(parse_url(url))
    ssl = options.pop("connection_class", None) is SSLConnection
    for name in ("host", "port", "db"):
        options.pop(name, None)
    return options | ({"ssl": True} if ssl else {})
