"""An event loop whose time is made up: there is no real waiting, and chance decides which task goes on."""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from tests.simulation.processes import process_of

T = TypeVar("T")


class Stuck(Exception):
    """Every task waits, and for nothing that could still happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """When no task can go on, time jumps to the next moment that one of them waits for. Among those that can, one is
    drawn. So the same seed always gives the same order, whatever the machine does meanwhile."""

    def __init__(self, chance: Random | None = None) -> None:
        super().__init__()
        self.chance = chance
        self.steps = 0
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []  # compared without a call of ours
        self._made = 0

    def time(self) -> float:
        return self._now_s

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._made += 1
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, self._made, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def _run_once(self) -> None:
        self.steps += 1
        loop: Any = self
        ready = loop._ready
        self._move_due(ready)
        while not ready:
            if not self._timers:
                raise Stuck
            self._now_s = max(self._now_s, self._timers[0][0])
            self._move_due(ready)
        if self.chance is not None and len(ready) > 1:
            ready.rotate(-int(self.chance.random() * len(ready)))
        handle = ready.popleft()
        if handle._cancelled:
            return
        process = process_of(handle._context)
        if process is not None and process.is_stopped:
            process.held_up.append(handle)
        else:
            handle._run()

    def _move_due(self, ready: Any) -> None:
        timers = self._timers
        while timers and (timers[0][0] <= self._now_s or timers[0][2].cancelled()):
            _, _, handle = heapq.heappop(timers)
            if not handle.cancelled():
                ready.append(handle)

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """There is no other thread: it is done at once."""
        done = self.create_future()
        done.set_result(func(*args))
        return done

    def put_back(self, handles: list[asyncio.Handle]) -> None:
        loop: Any = self
        loop._ready.extend(handles)

    def _write_to_self(self) -> None:
        """There is no other thread, and nothing to be woken from."""
