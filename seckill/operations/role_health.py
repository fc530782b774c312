"""Whether a role is well: its event loop runs, none of its steps hangs, and its stores answer. The event loop notes
this, and the thread of the metrics port reports it, since that one still answers when the loop does not."""

import asyncio
import platform
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import msgspec

from seckill import __version__
from seckill.engine.readiness import Parts, Readiness, StoreHealth
from seckill.loops import Stop, longest_step, repeat
from seckill.telemetry import (
    ALIVE_AT,
    BUILD_INFO,
    CPU_SECONDS,
    LOOP_LAG,
    PROCESSES,
    READY,
    RESIDENT_BYTES,
    START_TIME,
    STEP_SECONDS,
    STORE_UP,
)

BEAT_EVERY_S = 0.5
TELL_EVERY_S = 5.0
LOOK_EVERY_S = 2.0
# A loop that has not run for this long hangs. A busy machine only delays it by a second or two.
HUNG_AFTER_S = 15.0
# A step that has not ended after this long hangs. Rebuilding or auditing a large round may take minutes.
STUCK_AFTER_S = 600.0
# A look at the stores that is older than this means nothing any more.
SEEN_WITHIN_S = 10.0


class HealthReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a probe."""

    status: str
    good: bool = True
    gate: str = ""
    ledger: str = ""
    loop: str = ""
    seconds: float = 0.0

    def told(self) -> dict[str, str | float]:
        return {name: value for name, value in msgspec.to_builtins(self).items() if name != "good"}

    def body(self) -> bytes:
        return msgspec.json.encode(self.told()) + b"\n"


def can_sell(parts: Parts) -> bool:
    return parts.ready


def can_write(parts: Parts) -> bool:
    """Whether orders can be written, even with a gate that is unfit to sell: those sold before still have to be
    written."""
    return parts.gate is not StoreHealth.AWAY and parts.ledger is StoreHealth.OK


class Vitals:
    """`enough`: decides whether the role can work with the stores that answer."""

    def __init__(
        self,
        role: str,
        enough: Callable[[Parts], bool] = can_write,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.role = role
        self._enough = enough
        self._monotonic = monotonic
        self._beat_s = monotonic()  # set now, so that a start that hangs is noticed as well
        self._seen: tuple[float, Parts] | None = None

    def health(self) -> HealthReport:
        silent_s = self._monotonic() - self._beat_s
        if silent_s > HUNG_AFTER_S:
            return HealthReport("hung", good=False, seconds=round(silent_s, 1))
        loop, runs_s = longest_step()
        if runs_s > STUCK_AFTER_S:
            return HealthReport("stuck", good=False, loop=loop, seconds=round(runs_s, 1))
        return HealthReport("ok")

    def readiness(self) -> HealthReport:
        health = self.health()
        if not health.good:
            return health
        if self._seen is None:
            return HealthReport("starting", good=False)
        seen_s, parts = self._seen
        if self._monotonic() - seen_s > SEEN_WITHIN_S:
            parts = Parts()  # as far as is known, they are away
        good = self._enough(parts)
        return HealthReport("ready" if good else "not_ready", good=good, gate=parts.gate, ledger=parts.ledger)

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Notes the beat of the event loop from the start of the process to its end."""
        BUILD_INFO.labels(__version__, platform.python_version()).set(1)
        PROCESSES.labels(self.role).set(1)
        START_TIME.labels(self.role).set(time.time())
        heart = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
            PROCESSES.labels(self.role).set(0)

    @asynccontextmanager
    async def watching(self, readiness: Readiness) -> AsyncIterator[None]:
        """Watches the stores while they are open."""

        async def look() -> None:
            parts = await readiness.look()
            self._seen = self._monotonic(), parts
            READY.labels(self.role).set(self._enough(parts))
            for store, health in (("gate", parts.gate), ("ledger", parts.ledger)):
                STORE_UP.labels(self.role, store).set(health is not StoreHealth.AWAY)

        stop = Stop()
        watching = asyncio.create_task(repeat("vitals", look, stop, LOOK_EVERY_S))
        try:
            yield
        finally:
            stop.set()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            self._seen = None
            READY.labels(self.role).set(0)

    async def _beat(self) -> None:
        told_s, cpu_s, worst_s = self._monotonic(), 0.0, 0.0
        while True:
            before_s = self._monotonic()
            await asyncio.sleep(BEAT_EVERY_S)
            self._beat_s = self._monotonic()
            worst_s = max(worst_s, self._beat_s - before_s - BEAT_EVERY_S)
            if self._beat_s - told_s >= TELL_EVERY_S or not cpu_s:
                ALIVE_AT.labels(self.role).set(time.time())
                LOOP_LAG.labels(self.role).set(worst_s)
                STEP_SECONDS.labels(self.role).set(longest_step()[1])
                RESIDENT_BYTES.labels(self.role).set(resident_bytes())
                used_s = time.process_time()
                CPU_SECONDS.labels(self.role).inc(used_s - cpu_s)
                told_s, cpu_s, worst_s = self._beat_s, used_s, 0.0


def watched(vitals: Vitals | None, readiness: Readiness) -> AbstractAsyncContextManager[None]:
    """Does nothing where several roles are one process: no one asks for their health there."""
    return nullcontext() if vitals is None else vitals.watching(readiness)


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux: use the highest value so far
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
