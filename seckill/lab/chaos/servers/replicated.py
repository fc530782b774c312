"""Our own Valkeys with replicas, which all sync before every answer: a cluster, or a primary behind Sentinel."""

from collections.abc import Callable
from pathlib import Path

from seckill.backends.redis import keys
from seckill.errors import StartError
from seckill.lab.chaos.servers.server import Can
from seckill.lab.servers.cluster import LocalCluster
from seckill.lab.servers.proxy import Address
from seckill.lab.servers.replicated import Node, ReplicatedServers
from seckill.lab.servers.sentinel import LocalSentinel

# How long the watchers wait before they fail over from a server that stands still.
NOTICED_AFTER_S = 2.0
SENTINELS = 3
# As docs/cluster.md demands: a primary that is cut off from its replicas stops writing.
OPTIONS = {"min-replicas-to-write": "1", "min-replicas-max-lag": "10"}


class ReplicatedServer:
    """Faults hit the primary that has the first lane, or its replica. A killed primary is replaced by its replica; when
    started again, it becomes the replica of that one. Nodes tell clients each other's addresses, so no proxy can stand
    before them."""

    can = frozenset({Can.KILL, Can.PAUSE, Can.SILENCE})

    def __init__(self, folder: Path, name: str, make: Callable[[Path], ReplicatedServers]) -> None:
        self.folder: Path | None = folder
        self.name = name
        self._servers = make(folder)
        for node in self._servers.nodes:
            node.configure(OPTIONS)
        self._formed = False
        self._victim: Node | None = None

    @property
    def url(self) -> str:
        return self._servers.url

    @property
    def address(self) -> Address:
        return "127.0.0.1", self._servers.nodes[0].port

    def url_through(self, port: int) -> str:
        return self.url

    def pids(self) -> list[int]:
        """The pid of the node that is killed or paused next, or was last."""
        node = self._victim or self._servers.nodes[0]
        return [node.pid] if node.is_alive else []

    async def start(self) -> None:
        if self._formed:
            await self._servers.heal()
        else:
            await self._servers.start()
            self._formed = True
        self._victim = await self._primary()

    async def stop(self) -> None:
        await self._servers.stop()

    async def kill(self) -> None:
        self._victim = await self._primary()
        await self._servers.fail_over(self._victim)

    def pause(self) -> None:
        assert self._victim is not None
        self._victim.pause()

    def resume(self) -> None:
        self._servers.resume()

    async def silence(self) -> None:
        await self._servers.silence(await self._primary())

    async def unheard(self) -> int:
        primary = await self._servers.primary_of(keys.orders(0))
        facts = await primary.facts("replication")
        if "state=online" not in (replica := facts.get("slave0", "")):
            raise StartError(f"The silent replica is not counted any more: {replica or 'it is gone'}.")
        heard = dict(field.split("=") for field in replica.split(","))["offset"]
        return int(facts["master_repl_offset"]) - int(heard)

    async def _primary(self) -> Node:
        return await self._servers.until_replicated(keys.orders(0))


def cluster(folder: Path) -> ReplicatedServer:
    name = "Valkey Cluster of 3 primaries and 3 replicas, appendfsync always"
    return ReplicatedServer(folder, name, lambda folder: LocalCluster(folder, node_timeout_s=NOTICED_AFTER_S))


def sentinel(folder: Path) -> ReplicatedServer:
    name = f"Valkey with a replica behind {SENTINELS} Sentinels, appendfsync always"
    return ReplicatedServer(
        folder, name, lambda folder: LocalSentinel(folder, sentinels=SENTINELS, down_after_s=NOTICED_AFTER_S)
    )
