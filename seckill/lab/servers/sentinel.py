"""A primary, its replica and Sentinels that watch them, on this machine: for tests and fault runs, not for sales."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from seckill.lab.servers.ports import HOST, free_ports
from seckill.lab.servers.replicated import Node, ReplicatedServers, ask, start_all, until
from seckill.local.tether import tethered
from seckill.local.valkey import Durability, find_server

NAME = "seckill"
STOP_WITHIN_S = 10.0
# After twice this time, Sentinel repeats a failover that has failed, for instance because the replica was just
# starting.
FAILOVER_WITHIN_S = 3.0
# A server that gets no CPU time on a busy machine is silent for seconds, and no Sentinel should replace it for that.
CALM_S = 3600.0


class SentinelProcess:
    """One Sentinel. It keeps what it knows in its configuration file."""

    def __init__(self, folder: Path, port: int, program: Path | None) -> None:
        self.port = port
        self._folder = folder
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, primary: Node, quorum: int, down_after_s: float) -> None:
        self._folder.mkdir(parents=True)
        file = self._folder / "sentinel.conf"
        file.write_text(
            f"port {self.port}\nbind {HOST}\ndir {self._folder}\n"
            f"sentinel monitor {NAME} {HOST} {primary.port} {quorum}\n"
            f"sentinel down-after-milliseconds {NAME} {int(down_after_s * 1000)}\n"
            f"sentinel failover-timeout {NAME} {int(FAILOVER_WITHIN_S * 1000)}\n"
        )
        command = [str(self._program or find_server()), str(file), "--sentinel"]
        with (self._folder / "sentinel.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (found by `find_server`)
                tethered(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class LocalSentinel(ReplicatedServers):
    """`start` it from the main thread (see `tether.py`) and `stop` it at the end."""

    def __init__(
        self,
        folder: Path,
        *,
        durability: Durability = "strict",
        sentinels: int = 1,
        down_after_s: float = 1.0,
        calm: bool = False,
        program: Path | None = None,
    ) -> None:
        """`calm`: a primary is replaced only by `fail_over` and while `noticing`."""
        first, second, *rest = free_ports(2 + sentinels)
        primary = Node(folder / "one", first, durability, {}, program)
        replica = Node(folder / "other", second, durability, {"replicaof": f"{HOST} {first}"}, program)
        super().__init__([primary, replica])
        self.sentinels = [SentinelProcess(folder / f"sentinel-{i}", port, program) for i, port in enumerate(rest)]
        self._down_after_s = down_after_s
        self._usually_down_after_s = CALM_S if calm else down_after_s

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'{HOST}:{sentinel.port}' for sentinel in self.sentinels)}/{NAME}"

    async def start(self) -> None:
        primary, replica = self.nodes
        await start_all(self.nodes)
        await until("the replica has caught up", replica.is_linked)
        for sentinel in self.sentinels:
            sentinel.start(primary, len(self.sentinels) // 2 + 1, self._usually_down_after_s)
        await until("Sentinel knows the replica", self._knows_replica)

    async def stop(self) -> None:
        for sentinel in self.sentinels:
            await asyncio.to_thread(sentinel.stop)
        await super().stop()

    @asynccontextmanager
    async def noticing(self) -> AsyncIterator[None]:
        """Within the block, Sentinel replaces a primary that is silent."""
        await self._replace_after(self._down_after_s)
        try:
            yield
        finally:
            await self._replace_after(self._usually_down_after_s)

    async def _replace_after(self, seconds: float) -> None:
        for sentinel in self.sentinels:
            await ask(sentinel.port, "SENTINEL", "SET", NAME, "down-after-milliseconds", int(seconds * 1000))

    async def fail_over(self, primary: Node) -> Node:
        async with self.noticing():
            return await super().fail_over(primary)

    async def primary_of(self, key: str = "") -> Node:
        named = await ask(self.sentinels[0].port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        return self._at(int(named[1]))

    async def _revive(self, dead: Sequence[Node]) -> None:
        primary = await self.primary_of()
        for node in dead:
            node.configure({"replicaof": "no one" if node is primary else f"{HOST} {primary.port}"})
        await start_all(dead)
        await self.until_replicated("")

    async def _knows_replica(self) -> bool:
        return len(await ask(self.sentinels[0].port, "SENTINEL", "REPLICAS", NAME)) == 1

    async def _takes_over(self, replica: Node) -> bool:
        return await self.primary_of() is replica
