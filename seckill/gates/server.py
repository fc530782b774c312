"""Can this Valkey/Redis server keep the gate's promises?"""

import asyncio
from collections.abc import Mapping

from redis import exceptions

from seckill.errors import StartError
from seckill.gates.clients import Server, Servers
from seckill.gates.cluster import SLOTS, ClusterServers
from seckill.gates.connections import Line
from seckill.gates.rights import check_rights

# Nobody waits for the answer but the one who starts it.
LOOKED_AT_WITHIN_S = 5.0
VERSION_MIN = 7  # streams with entries-added, XAUTOCLAIM that reports deleted entries, script flags


async def check_servers(servers: Servers, durability: str, replica_acks: int, timeout_s: float) -> list[str]:
    """Raises StartError if a server cannot do. Returns what should rather be changed, a sentence each."""
    advice: list[str] = []
    timeout_s = max(timeout_s, LOOKED_AT_WITHIN_S)
    try:
        async with asyncio.timeout(timeout_s):
            primaries = await servers.primaries()
        for server in primaries:
            async with asyncio.timeout(timeout_s):
                facts, configured = await _look_at(server)
            check_server(
                facts, configured.get("appendfsync"), durability, clustered=isinstance(servers, ClusterServers)
            )
            advice += check_replicas(facts, configured.get("min-replicas-to-write"), replica_acks)
        if isinstance(servers, ClusterServers) and servers.uncovered:
            raise StartError(
                f"The cluster has nobody for {servers.uncovered} of its {SLOTS} slots, so some sales cannot be held: "
                "give every slot a primary (`valkey-cli --cluster fix`)."
            )
    except (exceptions.RedisError, OSError, TimeoutError) as error:
        remedy = "start it, or mend SECKILL_REDIS_URL"
        if "cluster support disabled" in str(error):
            remedy = "it is no cluster, so write SECKILL_REDIS_URL as redis://host:port/0"
        raise StartError(
            f"Valkey/Redis at {servers.where} cannot be used ({str(error) or type(error).__name__}): {remedy}."
        ) from error
    return list(dict.fromkeys(advice))  # once for all primaries


async def _look_at(server: Server) -> tuple[dict[str, str], dict[str, str]]:
    """What it says of itself, and how it is configured as far as it shows that: managed servers hide it."""
    pool = server.client.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        line = Line(connection, server)
        names = ("appendfsync", "min-replicas-to-write")
        info, *settings = await line.send([("INFO", "everything"), *(("CONFIG", "GET", name) for name in names)])
        await check_rights(line.send)
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)
    if isinstance(info, Exception):
        raise info
    configured = {name: value for name, reply in zip(names, settings, strict=True) if (value := setting(reply))}
    return parse_info(info), configured


def check_server(
    facts: Mapping[str, str], appendfsync: str | None, durability: str, *, clustered: bool = False
) -> None:
    version = facts.get("redis_version", "0")
    if int(version.split(".")[0]) < VERSION_MIN:
        raise StartError(f"The Redis server is version {version}; seckill needs Redis 7 or Valkey, please upgrade it.")
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StartError(
            f"The Redis server evicts keys when memory is full (maxmemory-policy {policy}), which would forget who "
            "bought: set maxmemory-policy to noeviction."
        )
    if facts.get("role", "master") != "master":
        raise StartError("The Redis server is a read-only replica: point SECKILL_REDIS_URL at the primary.")
    if facts.get("cluster_enabled") == "1" and not clustered:
        raise StartError(
            "The Redis server is a node of a cluster: write SECKILL_REDIS_URL as redis+cluster://host:port,host:port."
        )
    if durability == "strict":
        _check_strict(facts, appendfsync)


def check_replicas(facts: Mapping[str, str], min_replicas: str | None, acks: int) -> list[str]:
    replicas = int(facts.get("connected_slaves", "0"))
    if replicas < acks:
        raise StartError(
            f"A primary has {replicas} replicas, and {acks} must have every order before its answer: "
            "start or add replicas, or set SECKILL_REPLICA_ACKS=0 and accept that a failover may lose orders."
        )
    if not replicas:
        return []
    advice = []
    if not acks:
        advice.append(
            "There are replicas that nobody waits for, so a failover may lose orders that were answered: "
            "set SECKILL_REPLICA_ACKS=1."
        )
    if min_replicas == "0":
        advice.append(
            "A primary goes on writing when it is cut off from its replicas, and what it takes then is lost: "
            "set min-replicas-to-write to 1 (and min-replicas-max-lag to a few seconds)."
        )
    return advice


def _check_strict(facts: Mapping[str, str], fsync: str | None) -> None:
    remedy = "or accept the loss of up to a second of queued orders with SECKILL_DURABILITY=fast."
    if facts.get("aof_enabled") == "0":
        raise StartError(
            f"The Redis server keeps no append-only file: set appendonly yes and appendfsync always, {remedy}"
        )
    if fsync is not None and fsync != "always":
        raise StartError(
            f"The Redis server writes its append-only file with appendfsync {fsync}: set appendfsync always, {remedy}"
        )


def parse_info(info: bytes | str) -> dict[str, str]:
    text = info.decode() if isinstance(info, bytes) else info
    lines = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


def setting(reply: object) -> str | None:
    """CONFIG GET answers a map in RESP3 and a flat list in RESP2."""
    if isinstance(reply, dict):
        reply = [item for pair in reply.items() for item in pair]
    if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], bytes):
        return reply[1].decode()
    return None
