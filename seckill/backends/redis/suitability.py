"""Checks whether a Valkey/Redis server can keep the gate's promises."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from redis import exceptions

from seckill.backends.redis.addresses import Address
from seckill.backends.redis.append_only_file import FileHistory
from seckill.backends.redis.cluster import SLOTS, ClusterServers
from seckill.backends.redis.command_rights import check_rights
from seckill.backends.redis.server_calls import Line
from seckill.backends.redis.servers import Server, Servers
from seckill.errors import StartError

T = TypeVar("T")

# Generous, because only the operator who starts the process waits for the answer.
LOOKED_AT_WITHIN_S = 5.0
# The first rewrite of an append-only file is usually short: a start waits up to two seconds for it.
LOOK_AGAIN_AFTER_S = 0.1
LOOKS_AGAIN_MAX = 20
# A replica that does not answer within this time is not judged.
REPLICA_WITHIN_S = 1.0
VERSION_MIN = 7  # streams with entries-added, XAUTOCLAIM that reports deleted entries, script flags

AWAY = (exceptions.RedisError, OSError, TimeoutError)
_INFO = ("INFO", "default", "commandstats")
_SETTINGS = (
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "min-replicas-to-write",
    "cluster-replica-no-failover",
    "dir",
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says about itself, and its configuration, as far as it shows that: managed servers hide theirs."""

    info: Mapping[str, str]
    configured: Mapping[str, str]


class FileNotWhole(StartError):
    """The server's append-only file is not complete yet. This passes by itself when the server has written it."""


async def check_servers(
    servers: Servers, durability: str, replica_acks: int, timeout_s: float, files: FileHistory
) -> list[str]:
    """Raises StartError if a server is unfit. Returns recommended changes, one sentence each."""
    advice: list[str] = []
    timeout_s = max(timeout_s, LOOKED_AT_WITHIN_S)
    try:
        async with asyncio.timeout(timeout_s):
            primaries = await servers.primaries()
        for server in primaries:
            advice += await _once_whole(
                functools.partial(_check, servers, server, durability, replica_acks, timeout_s, files)
            )
        if isinstance(servers, ClusterServers) and servers.uncovered:
            raise StartError(
                f"No server of the cluster has {servers.uncovered} of its {SLOTS} slots, so some sales cannot be held: "
                "give every slot a primary (`valkey-cli --cluster fix`)."
            )
    except AWAY as error:
        remedy = "start it, or mend SECKILL_REDIS_URL"
        if "cluster support disabled" in str(error):
            remedy = "it is no cluster, so write SECKILL_REDIS_URL as redis://host:port/0"
        raise StartError(
            f"Valkey/Redis at {servers.where} cannot be used ({str(error) or type(error).__name__}): {remedy}."
        ) from error
    return list(dict.fromkeys(advice))  # each sentence once for all primaries


async def _once_whole(check: Callable[[], Awaitable[list[str]]]) -> list[str]:
    for _ in range(LOOKS_AGAIN_MAX):
        try:
            return await check()
        except FileNotWhole:
            await asyncio.sleep(LOOK_AGAIN_AFTER_S)
    return await check()


async def _check(
    servers: Servers, server: Server, durability: str, replica_acks: int, timeout_s: float, files: FileHistory
) -> list[str]:
    async with asyncio.timeout(timeout_s):
        facts = await look_at(server)
        await look_at_rights(server)
    check_server(facts, durability, files, clustered=isinstance(servers, ClusterServers))
    return check_replicas(facts, replica_acks) + [
        f"The replica at {where} cannot be looked at from here: make sure that it is configured as its primary is, "
        "because it may take over."
        for where in await look_at_replicas(servers, facts, durability, files)
    ]


async def look_at_replicas(servers: Servers, facts: Facts, durability: str, files: FileHistory) -> list[str]:
    """Checks the replicas to which a lane may move. Returns the addresses of those that do not answer us."""

    async def look(address: Address) -> Facts | None:
        try:
            async with asyncio.timeout(REPLICA_WITHIN_S):
                return await look_at(Server("", servers.client_at(address)))
        except AWAY:
            return None

    addresses = list(_replicas(facts))
    found = await asyncio.gather(*map(look, addresses))
    for (host, port), replica in zip(addresses, found, strict=True):
        if replica is not None and _may_take_over(replica):
            copies_sent = facts.info.get("sync_full", "")
            check_keeping(replica, durability, files, who=f"The replica at {host}:{port}", copies_sent=copies_sent)
    return [f"{host}:{port}" for (host, port), replica in zip(addresses, found, strict=True) if replica is None]


async def look_at(server: Server) -> Facts:
    return await _ask(server, read_facts)


async def look_at_rights(server: Server) -> None:
    """Raises StartError if our user lacks a right that it needs."""
    await _ask(server, lambda line: check_rights(line.send))


async def _ask(server: Server, question: Callable[[Line], Awaitable[T]]) -> T:
    pool = server.client.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        return await question(Line(connection, server))
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)


async def read_facts(line: Line) -> Facts:
    info, *replies = await line.send([_INFO, *(("CONFIG", "GET", name) for name in _SETTINGS)])
    if isinstance(info, Exception):
        raise info
    configured = {name: value for name, reply in zip(_SETTINGS, replies, strict=True) if (value := setting(reply))}
    return Facts(parse_info(info), configured)


def check_server(facts: Facts, durability: str, files: FileHistory, *, clustered: bool = False) -> None:
    version = facts.info.get("redis_version", "0")
    if int(version.split(".")[0]) < VERSION_MIN:
        raise StartError(f"The Redis server is version {version}; seckill needs Redis 7 or Valkey, please upgrade it.")
    check_keeping(facts, durability, files)
    if facts.info.get("role", "master") != "master":
        raise StartError("The Redis server is a read-only replica: point SECKILL_REDIS_URL at the primary.")
    if facts.info.get("cluster_enabled") == "1" and not clustered:
        raise StartError(
            "The Redis server is a node of a cluster: write SECKILL_REDIS_URL as redis+cluster://host:port,host:port."
        )


def check_replicas(facts: Facts, acks: int) -> list[str]:
    replicas = int(facts.info.get("connected_slaves", "0"))
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
    if facts.configured.get("min-replicas-to-write") == "0":
        advice.append(
            "A primary goes on writing when it is cut off from its replicas, and what it takes then is lost: "
            "set min-replicas-to-write to 1 (and min-replicas-max-lag to a few seconds)."
        )
    return advice


def check_keeping(
    facts: Facts, durability: str, files: FileHistory, who: str = "The Redis server", copies_sent: str = ""
) -> None:
    """Checks that the server forgets nothing and, with `strict`, has everything on its disk before it answers."""
    policy = facts.info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StartError(
            f"{who} evicts keys when memory is full (maxmemory-policy {policy}), which would forget who "
            "bought: set maxmemory-policy to noeviction."
        )
    if durability != "strict":
        return
    remedy = "or accept the loss of up to a second of queued orders with SECKILL_DURABILITY=fast."
    if facts.info.get("aof_enabled") == "0":
        raise StartError(f"{who} keeps no append-only file: set appendonly yes and appendfsync always, {remedy}")
    fsync = facts.configured.get("appendfsync", "always")
    if fsync != "always":
        raise StartError(
            f"{who} writes its append-only file with appendfsync {fsync}: set appendfsync always, {remedy}"
        )
    if facts.configured.get("no-appendfsync-on-rewrite") == "yes":
        raise StartError(
            f"{who} does not sync its append-only file while it writes it anew: set no-appendfsync-on-rewrite no, "
            f"{remedy}"
        )
    if not files.counts(facts.info, copies_sent):
        raise FileNotWhole(
            f"{who} is writing its append-only file, which may count only when that is done: "
            "wait until INFO says aof_rewrite_in_progress:0 and aof_rewrite_scheduled:0."
        )


def is_full(facts: Facts) -> bool:
    """Decides as the server itself does when it refuses a command that needs memory."""
    return 0 < int(facts.info.get("maxmemory", "0")) < used_memory(facts.info)


def used_memory(info: Mapping[str, str]) -> int:
    """The memory that the server counts: without buffers for its replicas and its file."""
    return int(info.get("used_memory", "0")) - int(info.get("mem_not_counted_for_evict", "0"))


def _replicas(facts: Facts) -> Iterator[Address]:
    """Yields the replicas that the primary knows: `slave0:ip=…,port=…,state=online,…`. One that is still being filled
    cannot take over."""
    for name, value in facts.info.items():
        if name.startswith("slave") and name.removeprefix("slave").isdecimal():
            fields = dict(field.partition("=")[::2] for field in value.split(","))
            if fields.get("state") == "online":
                yield fields["ip"], int(fields["port"])


def _may_take_over(replica: Facts) -> bool:
    """Whether the replica may become the primary: it may unless the operator has ruled that out."""
    never = replica.configured.get("cluster-replica-no-failover") == "yes"
    return not never and replica.info.get("slave_priority") != "0"


def parse_info(info: bytes | str) -> dict[str, str]:
    text = info.decode() if isinstance(info, bytes) else info
    lines = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


def setting(reply: object) -> str | None:
    """Reads a reply of CONFIG GET, which is a map in RESP3 and a flat list in RESP2."""
    if isinstance(reply, dict):
        reply = [item for pair in reply.items() for item in pair]
    if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], bytes):
        return reply[1].decode()
    return None
