"""The frame around every background loop: one step after the other until told to stop."""

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
# A step that ran for this long was well until then: what ends it is a new outage.
WELL_S = 5.0
# An error that nobody expects is logged with its traceback, and while it lasts, again after this time.
TOLD_AGAIN_S = 60.0


class Stop:
    """Told once, seen by all loops of a process."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        """True as soon as it is set, False when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


# Steps that run now and are to end soon: which loop's, and since when they have told nothing. Another thread may read
# it.
_running: dict[object, tuple[str, float]] = {}
_step: ContextVar[object] = ContextVar("step")


def longest_step() -> tuple[str, float]:
    """Of the steps that run now in this process, the one that has told nothing for longest: whose, and for how long."""
    name, began_s = min(list(_running.values()), key=lambda each: each[1], default=("", time.monotonic()))
    return name, time.monotonic() - began_s


def gets_on() -> None:
    """Said by a step that has much to do, or waits for what is away: it takes long, and does not hang."""
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
    """The error that was logged last: seventeen loops try again and again, and each traceback is a hundred lines."""

    def __init__(self) -> None:
        self._words = ""
        self._at_s = 0.0

    def is_news(self, error: Exception) -> bool:
        """Whether it is another error than the last one, or it was told long ago. Counts as told from now on."""
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
    `idle_s`: in the place of `every_s` after a step that says that there was nothing to do, if that is longer."""
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
