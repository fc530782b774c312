"""Our own servers that replicate each other, on ports of this machine, to try out what happens when they fail."""

import asyncio
import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from seckill.errors import StartError
from seckill.lab.servers.freezing import freeze
from seckill.lab.servers.ports import HOST
from seckill.local.valkey import Durability, EmbeddedValkey

T = TypeVar("T")

POLL_S = 0.02
# A Sentinel that got no turn for two seconds on a busy machine does nothing for thirty.
SETTLED_WITHIN_S = 180.0

COMMON = {
    "bind": HOST,
    "repl-diskless-sync-delay": "0",
    "repl-diskless-sync": "yes",
    # A replica that was paused or started again catches up from here instead of copying everything.
    "repl-backlog-size": "8mb",
}


async def until(what: str, look: Callable[[], Awaitable[T | None]], within_s: float = SETTLED_WITHIN_S) -> T:
    """Waits until `look` returns something true, and returns that. A server that does not answer counts as not ready
    yet."""
    give_up_at = time.monotonic() + within_s
    while True:
        with contextlib.suppress(exceptions.RedisError, OSError):
            if found := await look():
                return found
        if time.monotonic() >= give_up_at:
            raise StartError(f"The servers did not get so far within {within_s:g} s: {what}.")
        await asyncio.sleep(POLL_S)


async def ask(port: int, *command: object) -> Any:
    """Returns the reply as the server gives it, without the library's conversions."""
    client = redis.asyncio.Redis(host=HOST, port=port, protocol=2, socket_timeout=5, retry=Retry(NoBackoff(), 0))
    async with client:
        client.response_callbacks.clear()
        return await client.execute_command(*command)  # type: ignore[no-untyped-call]


class Node:
    """One server on a port. It may be killed, paused and started again."""

    def __init__(
        self, folder: Path, port: int, durability: Durability, options: dict[str, str], program: Path | None = None
    ) -> None:
        self.port = port
        self.folder = folder
        self._durability = durability
        self._program = program
        self._options: dict[str, str] = {"port": str(port), **COMMON}
        self._paused = False
        self.configure(options)

    def configure(self, options: Mapping[str, str]) -> None:
        """Adds options, which apply from the next start on."""
        self._options |= options
        self._server = EmbeddedValkey(
            self.folder, durability=self._durability, program=self._program, options=self._options
        )

    async def start(self) -> None:
        await self._server.start()
        await self._server.ready()

    async def stop(self) -> None:
        self.resume()
        await self._server.stop()

    @property
    def pid(self) -> int:
        return self._server.pid

    @property
    def is_alive(self) -> bool:
        """True even if it is paused."""
        return self._server.is_running

    @property
    def is_running(self) -> bool:
        """False if it is paused."""
        return not self._paused and self.is_alive

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    async def kill(self) -> None:
        """Sends kill -9, and returns when the process is gone."""
        self._paused = False
        os.kill(self.pid, signal.SIGKILL)
        await self._server.wait()

    def pause(self) -> None:
        """Makes it keep its connections and do nothing: a replica lags behind, a primary is silent."""
        freeze(self.pid)
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            os.kill(self.pid, signal.SIGCONT)
        self._paused = False

    async def ask(self, *command: object) -> Any:
        return await ask(self.port, *command)

    async def facts(self, section: str) -> dict[str, str]:
        text = (await self.ask("INFO", section)).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    async def is_linked(self) -> bool:
        return (await self.facts("replication")).get("master_link_status") == "up"

    async def has_all_of(self, primary: "Node") -> bool:
        """Whether this replica has everything that the primary has written so far."""
        mine, other = await self.facts("replication"), await primary.facts("replication")
        return mine.get("slave_repl_offset") == other.get("master_repl_offset")


class ReplicatedServers(ABC):
    """Primaries and their replicas. Nodes may die in between."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._silent: dict[int, Node] = {}  # port of the primary → its replica

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def primary_of(self, key: str) -> Node: ...

    @abstractmethod
    async def _takes_over(self, replica: Node) -> bool:
        """Returns whether the replica has taken over. Called again until it has."""

    async def heal(self) -> None:
        """Resumes paused servers and restarts killed ones, as replicas if others have taken their place."""
        self.resume()
        await self._revive([node for node in self.nodes if not node.is_running])

    @abstractmethod
    async def _revive(self, dead: Sequence[Node]) -> None:
        """Returns when every replica has caught up."""

    async def stop(self) -> None:
        await stop_all(self.nodes)

    def resume(self) -> None:
        """Resumes paused servers."""
        self._silent.clear()
        for node in self.nodes:
            node.resume()

    async def replica_of(self, primary: Node) -> Node:
        """Returns a replica of the primary, as soon as one has caught up."""
        return await until("a replica has caught up", lambda: self._replica(primary))

    async def until_replicated(self, key: str) -> Node:
        """Returns the primary of the key, as soon as it has a replica that can be silenced or take over: after a
        failover, a primary may be named that is just being replaced."""

        async def look() -> Node | None:
            primary = await self.primary_of(key)
            return primary if primary.is_running and await self._replica(primary) else None

        return await until("the primary has a replica", look)

    async def _replica(self, primary: Node) -> Node | None:
        replica = (await primary.facts("replication")).get("slave0", "")
        fields = dict(field.partition("=")[::2] for field in replica.split(","))
        return self._at(int(fields["port"])) if fields.get("state") == "online" else None

    async def silence(self, primary: Node) -> Node:
        """From now on the replica stays connected but takes nothing in, as if all that is sent to it were swallowed. It
        can be resumed."""
        replica = await self.replica_of(primary)
        self._silent[primary.port] = replica
        replica.pause()
        return replica

    async def fail_over(self, primary: Node) -> Node:
        """Sends kill -9 to a primary and lets its replica take over. A replica that was silent does so with what it had
        taken in."""
        silent = self._silent.pop(primary.port, None)
        replica = silent or await self.replica_of(primary)
        await primary.kill()
        if silent is not None:  # otherwise it would still read all that was sent to it meanwhile
            await silent.kill()
            await silent.start()
        await until("the replica takes over", lambda: self._takes_over(replica))
        return replica

    def _at(self, port: int) -> Node:
        return next(node for node in self.nodes if node.port == port)

    def _answering(self) -> list[Node]:
        return [node for node in self.nodes if node.is_running]


async def start_all(nodes: Sequence[Node]) -> None:
    await asyncio.gather(*(node.start() for node in nodes))


async def stop_all(nodes: Sequence[Node]) -> None:
    for node in nodes:
        node.resume()
    await asyncio.gather(*(node.stop() for node in nodes))
