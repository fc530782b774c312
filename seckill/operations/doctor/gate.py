"""Examines Valkey or Redis, beyond the checks of every start."""

import time
from collections.abc import Mapping

from redis import exceptions
from redis.asyncio import Redis

from seckill.backends.redis.command_rights import refused
from seckill.backends.redis.server_calls import Line
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.server_space import server_spaces
from seckill.backends.redis.servers import Server
from seckill.domain.space import SpaceKind
from seckill.errors import GateUnavailable
from seckill.operations.doctor.certificate import check_certificate
from seckill.operations.doctor.clock_skew import check_clock
from seckill.operations.doctor.disk import note_disk
from seckill.operations.doctor.examination import Health

# With one of these, a mistake or an intruder can empty the gate or change how it stores its data.
_DANGEROUS = (("FLUSHALL",), ("CONFIG SET", "maxmemory", 0))
# A server that uses this share of its maxmemory will soon run out.
_FULL = 0.8


async def examine_gate(url: str, durability: str, *, embedded: bool = False) -> Health:
    """Examines every primary; what is the same for several is said once. `embedded`: our own server, on a socket that
    no other user may open, so its only user may do everything."""
    servers = open_servers(url)
    try:
        primaries = [server.client for server in await servers.primaries()]
        examined = [await _examine(client, durability, embedded=embedded) for client in primaries]
    except (exceptions.RedisError, OSError, TimeoutError) as error:
        raise GateUnavailable(f"The gate does not answer ({type(error).__name__}: {error}).") from error
    finally:
        await servers.close()
    says = list(dict.fromkeys(health.says for health in examined))
    many = f"{len(examined)} primaries: " if len(examined) > 1 else ""
    return Health(
        many + "; ".join(says),
        mend=list(dict.fromkeys(line for health in examined for line in health.mend)),
        advice=list(dict.fromkeys(line for health in examined for line in health.advice)),
    )


async def _examine(client: Redis, durability: str, *, embedded: bool) -> Health:
    info: dict[str, object] = await client.info("everything")
    facts = {name: str(value) for name, value in info.items()}
    before_ms = time.time_ns() // 1_000_000
    seconds, micros = await client.time()
    after_ms = time.time_ns() // 1_000_000
    fsync = await _fsync(client)
    dangerous = [] if embedded else await _dangerous(client)
    health = Health(f"{_product(facts)}, {_kept(facts, fsync)}, {_role(facts)}")
    for space in await server_spaces(Server("", client), "Valkey/Redis"):
        if space.kind is SpaceKind.DISK:  # of its memory there is advice below
            note_disk(health, "Valkey/Redis", space)
    await _check_certificate(client, health)
    check_clock(health, "Valkey/Redis", int(seconds) * 1000 + int(micros) // 1000, before_ms, after_ms)
    health.advice += _advice(facts, fsync, durability)
    if dangerous:
        health.advice.append(
            f"The user of SECKILL_REDIS_URL may run {' and '.join(dangerous)}: give seckill a user of its own without "
            "them (ACL SETUSER … -@dangerous +info)."
        )
    return health


async def _check_certificate(client: Redis, health: Health) -> None:
    connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        check_certificate(health, "Valkey/Redis", getattr(connection, "_writer", None))
    finally:
        await client.connection_pool.release(connection)


async def _fsync(client: Redis) -> str | None:
    try:
        found = await client.config_get("appendfsync")
    except exceptions.ResponseError:  # managed servers hide it
        return None
    return next((_text(value) for value in found.values()), None)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


async def _dangerous(client: Redis) -> list[str]:
    connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]

    try:
        forbidden = await refused(Line(connection, Server("", client)).send, _DANGEROUS)
    finally:
        await client.connection_pool.release(connection)
    return [] if "MULTI" in forbidden else [str(c[0]) for c in _DANGEROUS if c[0] not in forbidden]


def _product(facts: Mapping[str, str]) -> str:
    if "valkey_version" in facts:
        return f"Valkey {facts['valkey_version']}"
    return f"Redis {facts.get('redis_version', 'of an unknown version')}"


def _kept(facts: Mapping[str, str], fsync: str | None) -> str:
    if facts.get("aof_enabled") == "1":
        return f"append-only file with appendfsync {fsync or 'unknown'}"
    return "no append-only file"


def _role(facts: Mapping[str, str]) -> str:
    if facts.get("redis_mode", "standalone") != "standalone":
        return facts["redis_mode"]
    replicas = int(facts.get("connected_slaves", "0"))
    return "no replica" if replicas == 0 else f"{replicas} replica{'s' if replicas > 1 else ''}"


def _advice(facts: Mapping[str, str], fsync: str | None, durability: str) -> list[str]:
    advice = []
    if fsync is None:
        advice.append("CONFIG GET is not allowed, so appendfsync cannot be seen: make sure that it is what you mean.")
    if durability == "fast" and facts.get("aof_enabled") == "0":
        saves = facts.get("rdb_last_save_time")
        advice.append(
            "There is no append-only file: after a crash all queued orders since the last snapshot "
            f"({'which there is' if saves else 'and there is none'}) are gone; set appendonly yes."
        )
    if facts.get("aof_last_write_status", "ok") != "ok" or facts.get("rdb_last_bgsave_status", "ok") != "ok":
        advice.append(
            "The last write to its disk failed, and it will refuse to sell: look into its log, free its disk."
        )
    limit, used = int(facts.get("maxmemory", "0")), int(facts.get("used_memory", "0"))
    if limit and used > _FULL * limit:
        advice.append(
            f"{used / limit:.0%} of maxmemory is in use: raise it before a big sale, when it is full nobody can buy."
        )
    if facts.get("master_link_status", "up") != "up":
        advice.append("Its link to the primary is down.")
    return advice
