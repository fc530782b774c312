"""A primary, its replica and Sentinels that watch them, on this machine: for tests and fault runs, not for sales."""

import subprocess
from pathlib import Path

from seckill.embedded.replicated import HOST, Node, ask, free_ports, start_all, stop_all, until
from seckill.embedded.tether import tethered
from seckill.embedded.valkey import Durability, find_server

NAME = "seckill"
STOP_WITHIN_S = 10.0


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
            f"sentinel failover-timeout {NAME} 10000\n"
        )
        command = [str(self._program or find_server()), str(file), "--sentinel"]
        with (self._folder / "sentinel.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (found by `find_server`)
                tethered(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class LocalSentinel:
    """`start` it from the main thread (see `tether.py`) and `stop` it in the end."""

    def __init__(
        self,
        folder: Path,
        *,
        durability: Durability = "strict",
        sentinels: int = 1,
        down_after_s: float = 1.0,
        program: Path | None = None,
    ) -> None:
        first, second, *rest = free_ports(2 + sentinels)
        self.primary = Node(folder / "primary", first, durability, {}, program)
        self.replica = Node(folder / "replica", second, durability, {"replicaof": f"{HOST} {first}"}, program)
        self.sentinels = [SentinelProcess(folder / f"sentinel-{i}", port, program) for i, port in enumerate(rest)]
        self._down_after_s = down_after_s

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'{HOST}:{sentinel.port}' for sentinel in self.sentinels)}/{NAME}"

    async def start(self) -> None:
        await start_all([self.primary, self.replica])
        await until("the replica has caught up", self.replica.is_linked)
        for sentinel in self.sentinels:
            sentinel.start(self.primary, len(self.sentinels) // 2 + 1, self._down_after_s)
        await until("Sentinel knows the replica", self._knows_replica)

    async def stop(self) -> None:
        for sentinel in self.sentinels:
            sentinel.stop()
        await stop_all([self.primary, self.replica])

    async def until_replaced(self) -> None:
        """Returns when Sentinel has made the replica the primary."""
        await until("Sentinel names the replica", self._names_replica)

    async def _knows_replica(self) -> bool:
        return len(await ask(self.sentinels[0].port, "SENTINEL", "REPLICAS", NAME)) == 1

    async def _names_replica(self) -> bool:
        named = await ask(self.sentinels[0].port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        return int(named[1]) == self.replica.port
