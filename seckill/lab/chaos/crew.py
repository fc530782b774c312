"""Runs the roles as processes. Each is restarted when it dies, armed with the failpoints of its next life."""

import asyncio
import contextlib
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seckill.failpoints import VARIABLE
from seckill.lab.chaos.failpoint_plan import Spec
from seckill.lab.chaos.servers.server import signal_all
from seckill.local.tether import tethered

POLL_S = 0.02
# Leaves time for others to notice the death. The second start in a row waits longer, because the cause of the failure
# may need a moment to pass.
RESTART_AFTER_S = 0.3
RESTART_AFTER_S_MAX = 2.0
STOP_WITHIN_S = 15.0
# Between the restarts of two processes: starting one takes a second of a core.
BETWEEN_S = 1.0
_FIRED = re.compile(rb"^failpoint ([\w.]+): (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Death:
    at_s: float
    member: str
    role: str
    pid: int
    code: int  # negative: the signal


@dataclass(slots=True)
class Member:
    role: str
    number: int
    arguments: Sequence[str]
    environ: Mapping[str, str]
    log: Path
    life: int = 0
    process: subprocess.Popen[bytes] | None = None
    keeping: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{self.role}-{self.number}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


class Crew:
    """`spec_of`: returns what a member's next life is armed with. Called when it starts, while `armed` is True."""

    def __init__(self, spec_of: Callable[[str, int, int], Spec], clock: Callable[[], float]) -> None:
        self._spec_of = spec_of
        self._clock = clock
        self._members: dict[str, Member] = {}
        self._next: dict[str, Mapping[str, str]] = {}  # member → additions to the environment of its next life
        self._stopping = False
        self.armed = False
        self.deaths: list[Death] = []
        self.starts: Counter[str] = Counter()  # by role

    def add(self, member: Member) -> None:
        self._members[member.name] = member

    def members(self, role: str) -> list[Member]:
        return [member for member in self._members.values() if member.role == role]

    def member(self, name: str) -> Member:
        return self._members[name]

    def start(self) -> None:
        for member in self._members.values():
            self._spawn(member)
            member.keeping = asyncio.create_task(self._keep(member))

    def is_running(self, name: str) -> bool:
        process = self.member(name).process
        return process is not None and process.poll() is None

    def kill(self, name: str) -> int:
        """Sends kill -9 and returns the pid."""
        pid = self.member(name).pid
        signal_all([pid], signal.SIGKILL)
        return pid

    def pause(self, name: str) -> int:
        pid = self.member(name).pid
        signal_all([pid], signal.SIGSTOP)
        return pid

    def resume(self, pid: int) -> None:
        """Takes a pid, because the member may have died meanwhile."""
        if any(member.process and member.pid == pid and member.process.poll() is None for member in self._all()):
            signal_all([pid], signal.SIGCONT)

    def prepare(self, name: str, environ: Mapping[str, str]) -> None:
        """Sets additions to the environment of its next life only."""
        self._next[name] = environ

    async def replace(self, name: str) -> int | None:
        """Sends kill -9 and returns the pid of the next life, or None if it does not start in time."""
        before = self.kill(name)
        give_up_at_s = self._clock() + STOP_WITHIN_S
        while (pid := self.member(name).pid) == before:
            if self._clock() > give_up_at_s:
                return None
            await asyncio.sleep(POLL_S)
        return pid

    async def arm(self) -> None:
        """Restarts the processes armed, one after the other, so that some process of each role is always running."""
        self.armed = True
        for member in sorted(self._all(), key=lambda member: -member.number):
            await self.replace(member.name)
            await asyncio.sleep(BETWEEN_S)

    async def disarm(self) -> None:
        """Restarts all processes at once, with kill -9 and unarmed."""
        self.armed = False
        await asyncio.gather(*(self.replace(name) for name in self._members))

    async def stop(self) -> None:
        self._stopping = True
        for member in self._all():
            if member.keeping is not None:
                member.keeping.cancel()
                await asyncio.gather(member.keeping, return_exceptions=True)
        running = [member.process for member in self._all() if member.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        give_up_at_s = self._clock() + STOP_WITHIN_S
        for process in running:
            while process.poll() is None:
                if self._clock() > give_up_at_s:
                    process.kill()
                await asyncio.sleep(POLL_S)

    def fired(self) -> Counter[str]:
        """Counts the failpoints that have fired, as `name: action`."""
        found: Counter[str] = Counter()
        for member in self._all():
            if member.log.exists():
                hits = _FIRED.findall(member.log.read_bytes())
                found.update(f"{name.decode()}: {action.decode()}" for name, action in hits)
        return found

    def _all(self) -> list[Member]:
        return list(self._members.values())

    def _spawn(self, member: Member) -> None:
        environ = {VARIABLE: str(self._spec_of(member.role, member.number, member.life)) if self.armed else ""}
        environ |= self._next.pop(member.name, {})
        member.life += 1
        self.starts[member.role] += 1
        with member.log.open("ab") as log:
            member.process = subprocess.Popen(  # noqa: S603 (our own command)
                tethered([sys.executable, "-m", "seckill", *member.arguments]),
                env={**member.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def _keep(self, member: Member) -> None:
        wait_s = RESTART_AFTER_S
        while not self._stopping:
            began_s = self._clock()
            assert member.process is not None
            while (code := member.process.poll()) is None:  # noqa: ASYNC110 (no event announces it)
                await asyncio.sleep(POLL_S)
            self.deaths.append(Death(self._clock(), member.name, member.role, member.pid, code))
            quick = code >= 0 and self._clock() - began_s < 5
            wait_s = min(2 * wait_s, RESTART_AFTER_S_MAX) if quick else RESTART_AFTER_S
            await asyncio.sleep(wait_s)
            self._spawn(member)
