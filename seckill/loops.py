"""Runs every background loop: one step after the other until it is told to stop."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import structlog

from seckill.errors import SeckillError

log = structlog.get_logger()

# A failing loop tries again after this, doubled up to the maximum, with jitter so that nodes do not march in step.
BACKOFF_S_MIN = 0.1
BACKOFF_S_MAX = 2.0
# A step that ran for this long was well until then, so its error is a new outage.
WELL_S = 5.0
# An unexpected error is logged with its traceback. While it lasts, it is logged again after this time.
TOLD_AGAIN_S = 60.0


class Stop:
    """Set once, and seen by all loops of a process."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Returns True as soon as it is set, and False when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


# The running steps that ought to end soon: their loop, and when each last said that it gets on. Another thread may read
# this.
_running: dict[object, tuple[str, float]] = {}
_step: ContextVar[object] = ContextVar("step")


def longest_step() -> tuple[str, float]:
    """Returns the running step of this process that has been silent for longest: its loop, and for how long."""
    name, began_s = min(list(_running.values()), key=lambda each: each[1], default=("", time.monotonic()))
    return name, time.monotonic() - began_s


def gets_on() -> None:
    """Called by a step that has much to do, or waits for a server that is away: it takes long, but it does not hang."""
    step = _step.get(None)
    if step in _running:
        _running[step] = _running[step][0], time.monotonic()


@contextmanager
def _noted(name: str, *, lasting: bool) -> Iterator[None]:
    if lasting:
        yield
        return
    step = object()
    _running[step] = name, time.monotonic()
    token = _step.set(step)
    try:
        yield
    finally:
        _step.reset(token)
        _running.pop(step, None)


class _Told:
    """Remembers the error that was logged last. Seventeen loops try again and again, and each traceback is a hundred
    lines."""

    def __init__(self) -> None:
        self._words = ""
        self._at_s = 0.0

    def is_news(self, error: Exception) -> bool:
        """Whether the error differs from the last one, or was logged long ago. From now on it counts as logged."""
        words, now_s = repr(error), time.monotonic()
        if words == self._words and now_s - self._at_s < TOLD_AGAIN_S:
            return False
        self._words, self._at_s = words, now_s
        return True


async def repeat(
    name: str,
    step: Callable[[], Awaitable[object]],
    stop: Stop,
    every_s: float = 0.0,
    *,
    idle_s: float = 0.0,
    once: bool = False,
    lasting: bool = False,
) -> None:
    """Runs `step` until `stop`, or until it has worked `once`. What a step raises is logged, and the loop goes on: a
    loop that ends is an outage. So is one whose step never ends, unless it is a `lasting` one, such as listening.
    `idle_s`: used instead of `every_s`, if it is longer, after a step that has found nothing to do."""
    backoff_s = BACKOFF_S_MIN
    failing = False
    told = _Told()
    while not stop.is_set():
        began_s = time.monotonic()
        try:
            with _noted(name, lasting=lasting):
                done = await step()
        except Exception as error:
            if time.monotonic() - began_s > WELL_S:
                failing, backoff_s = False, BACKOFF_S_MIN
            if not isinstance(error, SeckillError):
                if told.is_news(error):
                    log.exception("a step of the loop failed", loop=name)
            elif not failing:  # once for each outage, not once for each try
                log.warning("waiting", loop=name, reason=str(error))
            failing = True
            await stop.wait(backoff_s * random.uniform(0.5, 1.0))  # noqa: S311 (jitter, not a secret)
            backoff_s = min(backoff_s * 2, BACKOFF_S_MAX)
            continue
        if failing:
            log.info("going on", loop=name)
            told = _Told()
        if once:
            return
        failing = False
        backoff_s = BACKOFF_S_MIN
        if every_s:
            await stop.wait((every_s if done else max(every_s, idle_s)) * random.uniform(0.9, 1.1))  # noqa: S311 (jitter, not a secret)
