"""Keeps processes running: starts again what dies, and stops all of them in order."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import structlog

from seckill.embedded.tether import tethered
from seckill.embedded.valkey import EmbeddedValkey
from seckill.errors import StartError
from seckill.loops import Stop

log = structlog.get_logger()

POLL_S = 0.05
BACKOFF_S_MIN = 0.2
BACKOFF_S_MAX = 5.0
# Whoever lived this long had a good start: the next failure is a new one.
GOOD_LIFE_S = 10.0
STOP_WITHIN_S = 15.0


class Process:
    """One of our own roles as a process that dies with us."""

    def __init__(
        self, name: str, arguments: Sequence[str], environ: Mapping[str, str], fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self._arguments = [sys.executable, "-m", "seckill", *arguments]
        self._environ = dict(environ)
        self._fds = tuple(fds)
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603, ASYNC220 (our own command; a fork is quick)
            tethered(self._arguments),
            env=self._environ,
            pass_fds=self._fds,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def wait(self) -> int:
        assert self._process is not None
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 (no event tells of it)
            await asyncio.sleep(POLL_S)
        return code

    async def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await self.wait()
        except TimeoutError:
            log.warning("did not stop in time, killed", process=self.name)
            # The whole group, for the tether that stays beside it on macOS; it may have ended in this very moment.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self.wait()


class Server:
    """The embedded Valkey among the processes."""

    name = "valkey"

    def __init__(self, valkey: EmbeddedValkey) -> None:
        self._valkey = valkey

    async def start(self) -> None:
        await self._valkey.start()
        try:
            await self._valkey.ready()
        except BaseException:
            await self._valkey.stop()
            raise

    async def wait(self) -> int:
        return await self._valkey.wait()

    async def stop(self) -> None:
        await self._valkey.stop()


class Supervisor:
    """Started in the order they are given, stopped in the reverse order."""

    def __init__(self) -> None:
        self._running: list[tuple[Process | Server, asyncio.Task[None], Stop]] = []

    async def add(self, member: Process | Server) -> None:
        await member.start()
        stop = Stop()
        self._running.append((member, asyncio.create_task(self._keep(member, stop)), stop))

    async def _keep(self, member: Process | Server, stop: Stop) -> None:
        backoff_s = BACKOFF_S_MIN
        while True:
            started_s = time.monotonic()
            code = await member.wait()
            if stop.is_set():
                return
            if time.monotonic() - started_s > GOOD_LIFE_S:
                backoff_s = BACKOFF_S_MIN
            log.warning("a process ended, starting it again", process=member.name, code=code, in_s=backoff_s)
            if await stop.wait(backoff_s):
                return
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)
            try:
                await member.start()
            except (StartError, OSError) as error:
                log.error("a process cannot be started", process=member.name, reason=str(error))

    async def stop(self) -> None:
        while self._running:
            member, keeping, stop = self._running.pop()
            stop.set()
            keeping.cancel()  # first, or it could be starting the process again at this very moment
            await asyncio.gather(keeping, return_exceptions=True)
            await member.stop()
            log.info("stopped", process=member.name)
