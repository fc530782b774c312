"""Starts, watches and kills the processes of a strategy."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from seckill.errors import StartError
from seckill.lab.compare.child import AT_EASE, GO_ON, READY, STANDING, ChildOrders, main
from seckill.lab.compare.ladder import LADDER
from seckill.lab.compare.strategy import CompareServers, Role

START_WITHIN_S = 60.0
POLL_S = 0.005

# A fork server that has imported everything starts each process in a few milliseconds. It ends with us, and its
# children notice that through their pipes.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["seckill.lab.compare.child"])


class ComparedProcess:
    """One process. It may be killed and started again."""

    def __init__(self, orders: ChildOrders) -> None:
        self.orders = orders
        self.said: list[str] = []

    @property
    def role(self) -> Role:
        return self.orders.role

    async def start(self, stand_at: tuple[int, ...] = ()) -> None:
        self.said = []
        Path(self.orders.socket).unlink(missing_ok=True)  # noqa: ASYNC240 (quick)
        ours, theirs = multiprocessing.Pipe()
        self._control: Connection = ours
        told = ChildOrders(
            strategy=self.orders.strategy,
            role=self.role,
            servers=self.orders.servers,
            socket=self.orders.socket,
            stand_at=stand_at,
        )
        self._process = _FORKS.Process(target=main, args=(told, theirs), daemon=True)
        await asyncio.to_thread(self._process.start)
        theirs.close()
        if not await self.until(READY, START_WITHIN_S):
            raise StartError(f"A process of {told.strategy} did not start: run it with --debug to see why.")

    def alive(self) -> bool:
        return self._process.is_alive()

    async def until(self, word: str, within_s: float) -> bool:
        """Returns False if the process has ended, or did not say the word in time."""
        give_up_at_s = time.monotonic() + within_s
        while not self._heard(word):
            if not self.alive() or time.monotonic() > give_up_at_s:
                return self._heard(word)
            await asyncio.sleep(POLL_S)
        return True

    def _heard(self, word: str) -> bool:
        with contextlib.suppress(EOFError, OSError):
            while self._control.poll():
                self.said.append(self._control.recv())
        return word in self.said

    async def stands(self, within_s: float) -> bool:
        """Waits until the process stands still at one of its moments, or has died there."""
        return await self.until(STANDING, within_s) or not self.alive()

    def go_on(self) -> None:
        """Lets the process go on to the next such moment."""
        self.said.remove(STANDING)
        self._control.send(GO_ON)

    def at_ease(self) -> None:
        """Lets the process go on without standing still again."""
        self._control.send(AT_EASE)

    async def kill(self) -> None:
        """Ends the process as a power cut would: no handler runs and nothing is flushed."""
        if self._process.pid is not None and self.alive():
            os.kill(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.join)
        self._control.close()
        self._process.close()


class Staff:
    """All processes of one strategy."""

    def __init__(self, strategy: str, servers: CompareServers, folder: Path) -> None:
        self.members = [
            ComparedProcess(
                ChildOrders(strategy=strategy, role=role, servers=servers, socket=str(folder / f"shop{number}.sock"))
            )
            for number, role in enumerate(LADDER[strategy].roles)
        ]

    def of(self, role: Role) -> Iterator[ComparedProcess]:
        return (member for member in self.members if member.role == role)

    @property
    def doors(self) -> list[str]:
        return [member.orders.socket for member in self.of("shop")]

    async def start(self, standing: Role | None = None, stand_at: tuple[int, ...] = ()) -> None:
        """Processes of the role `standing` stand still at these moments."""
        for member in self.members:
            await member.start(stand_at if member.role == standing else ())

    async def kill(self) -> None:
        for member in self.members:
            with contextlib.suppress(AttributeError, ValueError):  # never started, or killed before
                await member.kill()
