"""Servers of our own that replicate each other, on ports of this machine, to try out what happens when they fail."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from seckill.embedded.valkey import Durability, EmbeddedValkey
from seckill.errors import StartError

HOST = "127.0.0.1"
POLL_S = 0.02
SETTLED_WITHIN_S = 60.0

COMMON = {
    "bind": HOST,
    "repl-diskless-sync-delay": "0",
    "repl-diskless-sync": "yes",
    # A replica that was paused or started again catches up from here instead of copying everything.
    "repl-backlog-size": "8mb",
}


def free_ports(count: int) -> list[int]:
    """Free at this moment, and different from each other."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [int(listener.getsockname()[1]) for listener in listeners]


async def until(what: str, look: Callable[[], Awaitable[object]], within_s: float = SETTLED_WITHIN_S) -> None:
    """Returns when `look` finds something true. A server that does not answer is not there yet."""
    give_up_at = time.monotonic() + within_s
    while True:
        with contextlib.suppress(exceptions.RedisError, OSError):
            if await look():
                return
        if time.monotonic() >= give_up_at:
            raise StartError(f"The servers did not get so far within {within_s:g} s: {what}.")
        await asyncio.sleep(POLL_S)


async def ask(port: int, *command: object) -> Any:
    """The reply as the server gives it, without the library's shapes."""
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
        self._server = EmbeddedValkey(
            folder, durability=durability, program=program, options={"port": str(port), **COMMON, **options}
        )
        self._paused = False

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
    def is_running(self) -> bool:
        """Paused is not running."""
        return not self._paused and self._server.is_running

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    async def kill(self) -> None:
        """kill -9, and gone when this returns."""
        self._paused = False
        os.kill(self.pid, signal.SIGKILL)
        await self._server.wait()

    def pause(self) -> None:
        """It keeps its connections and does nothing: a replica lags behind, a primary is silent."""
        os.kill(self.pid, signal.SIGSTOP)
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
        """As a replica: everything that the primary has written so far."""
        mine, other = await self.facts("replication"), await primary.facts("replication")
        return mine.get("slave_repl_offset") == other.get("master_repl_offset")


async def start_all(nodes: Sequence[Node]) -> None:
    await asyncio.gather(*(node.start() for node in nodes))


async def stop_all(nodes: Sequence[Node]) -> None:
    for node in nodes:
        node.resume()
    await asyncio.gather(*(node.stop() for node in nodes))
