"""Asks Valkey/Redis how much memory it has left, and where its file is on this machine, the disk as well."""

from collections.abc import Mapping
from pathlib import Path

from seckill.backends.disk_space import disk_space
from seckill.backends.redis.servers import Server
from seckill.backends.redis.suitability import Facts, look_at, used_memory
from seckill.domain.space import Space, SpaceKind


async def server_spaces(server: Server, where: str) -> list[Space]:
    """`where`: the server's name, for operators. Raises what the library raises if the server does not answer."""
    facts = await look_at(server)
    found = [memory_space(facts.info, where), await _disk_space(server, facts)]
    return [space for space in found if space is not None]


def memory_space(info: Mapping[str, str], where: str) -> Space | None:
    """Where the server has no limit, it may take the machine's memory."""
    size = int(info.get("maxmemory", "0")) or int(info.get("total_system_memory", "0"))
    return Space(SpaceKind.MEMORY, where, max(0, size - used_memory(info)), size) if size else None


async def _disk_space(server: Server, facts: Facts) -> Space | None:
    """Only a server that listens on a socket is certainly on this machine."""
    folder = facts.configured.get("dir")
    if folder is None or "path" not in server.client.connection_pool.connection_kwargs:
        return None
    return await disk_space(Path(folder))
