"""Can this Valkey/Redis server keep the gate's promises?"""

from collections.abc import Mapping

from seckill.errors import StartError

VERSION_MIN = 7  # streams with entries-added, XAUTOCLAIM that reports deleted entries, script flags


def check_server(info: bytes | str, appendfsync: object, durability: str) -> None:
    facts = parse_info(info)
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
    if durability == "strict":
        _check_strict(facts, fsync_setting(appendfsync))


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


def fsync_setting(reply: object) -> str | None:
    """CONFIG GET answers a map in RESP3 and a flat list in RESP2."""
    if isinstance(reply, dict):
        reply = [item for pair in reply.items() for item in pair]
    if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], bytes):
        return reply[1].decode()
    return None
