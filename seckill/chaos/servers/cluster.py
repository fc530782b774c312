"""A Valkey Cluster of our own: three primaries that sync before every answer, each with a replica."""

from pathlib import Path

from seckill.chaos.proxy import Address
from seckill.chaos.servers.server import Can
from seckill.embedded.cluster import LocalCluster
from seckill.embedded.replicated import Node
from seckill.gates import keys


class ClusterServer:
    """What is done to it is done to the primary that has the first lane: killed, it is replaced by its replica; started
    again, it becomes that one's. Nodes tell each other's addresses, so no proxy can stand before them."""

    can = frozenset({Can.KILL, Can.PAUSE})

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self._cluster = LocalCluster(folder, node_timeout_s=2.0)
        self._formed = False
        self._victim: Node | None = None

    @property
    def name(self) -> str:
        return "Valkey Cluster of 3 primaries and 3 replicas, appendfsync always"

    @property
    def url(self) -> str:
        return self._cluster.url

    @property
    def address(self) -> Address:
        return "127.0.0.1", self._cluster.nodes[0].port

    def url_through(self, port: int) -> str:
        return self.url

    def pids(self) -> list[int]:
        """Of the node that is killed or paused next, or was last."""
        node = self._victim or self._cluster.nodes[0]
        return [node.pid] if node.is_running else []

    async def start(self) -> None:
        if self._formed:
            await self._cluster.heal()
        else:
            await self._cluster.start()
            self._formed = True
        self._victim = await self._cluster.primary_of(keys.orders(0))

    async def stop(self) -> None:
        await self._cluster.stop()

    async def kill(self) -> None:
        self._victim = await self._cluster.primary_of(keys.orders(0))
        await self._cluster.fail_over(self._victim)

    def pause(self) -> None:
        assert self._victim is not None
        self._victim.pause()

    def resume(self) -> None:
        for node in self._cluster.nodes:
            node.resume()
