"""Keeps processes running: restarts those that die, and at the end stops each one after those that need it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

import structlog

from seckill.errors import StartError
from seckill.local.fork_server import Copy, ForkServer
from seckill.local.tether import tethered
from seckill.local.valkey import EmbeddedValkey
from seckill.loops import Stop

log = structlog.get_logger()

POLL_S_MIN = 0.002
POLL_S_MAX = 0.05
BACKOFF_S_MIN = 0.2
BACKOFF_S_MAX = 5.0
# A process that lived this long started well: the next failure is a new one.
GOOD_LIFE_S = 10.0
STOP_WITHIN_S = 15.0


class Process:
    """One of our own roles, as a process that dies with us. `listener`: a socket on which it listens. `copies`: the
    fork server that makes it, faster than starting a new Python."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        *,
        listener: int | None = None,
        copies: ForkServer | None = None,
    ) -> None:
        self.name = name
        self._arguments = [*arguments, *([] if listener is None else ["--fd"])]
        self._environ = dict(environ)
        self._listener = listener
        self._copies = copies
        self._process: subprocess.Popen[bytes] | Copy | None = None

    async def start(self) -> None:
        copy = self._copies.fork(self._arguments, self._listener) if self._copies else None
        self._process = copy or self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        fds = [] if self._listener is None else [self._listener]
        return subprocess.Popen(  # noqa: S603 (our own command)
            tethered([sys.executable, "-m", "seckill", *self._arguments, *map(str, fds)]),
            env=self._environ,
            pass_fds=fds,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def wait(self) -> int:
        """Returns its exit code. Polls quickly at first, because the process may be short and a user may be waiting for
        it."""
        assert self._process is not None
        pause_s = POLL_S_MIN
        while (code := self._process.poll()) is None:
            await asyncio.sleep(pause_s)  # no event tells of it
            pause_s = min(pause_s * 1.2, POLL_S_MAX)
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
            self.kill()
            await self.wait()

    def kill(self) -> None:
        # The whole group, for the tether that stays beside it on macOS; it may have ended in this very moment.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class SupervisedServer:
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
    """Starts processes in the given order. Those that are added together are stopped together, after all that were
    added later."""

    def __init__(self) -> None:
        self._running: list[list[_Kept]] = []

    async def add(self, *members: Process | SupervisedServer) -> None:
        together: list[_Kept] = []
        self._running.append(together)
        for member in members:
            await member.start()
            together.append(_Kept(member))

    async def stop(self) -> None:
        while self._running:
            async with asyncio.TaskGroup() as stopping:
                for kept in self._running.pop():
                    stopping.create_task(kept.stop())


class _Kept:
    """Starts a process again when it dies, with growing pauses, until it is stopped."""

    def __init__(self, member: Process | SupervisedServer) -> None:
        self._member = member
        self._stop = Stop()
        self._keeping = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        backoff_s = BACKOFF_S_MIN
        name = self._member.name
        while True:
            started_s = time.monotonic()
            code = await self._member.wait()
            if self._stop.is_set():
                return
            if time.monotonic() - started_s > GOOD_LIFE_S:
                backoff_s = BACKOFF_S_MIN
            log.warning("a process ended, starting it again", process=name, code=code, in_s=backoff_s)
            if await self._stop.wait(backoff_s):
                return
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)
            try:
                await self._member.start()
            except (StartError, OSError) as error:
                log.error("a process cannot be started", process=name, reason=str(error))

    async def stop(self) -> None:
        self._stop.set()
        self._keeping.cancel()  # comes first: otherwise it could be restarting the process at this very moment
        await asyncio.gather(self._keeping, return_exceptions=True)
        await self._member.stop()
        log.info("stopped", process=self._member.name)
