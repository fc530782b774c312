"""An event loop whose time is made up: nobody waits, and chance decides who goes on."""

import asyncio
import heapq
from random import Random
from typing import Any

from tests.simulation.processes import process_of


class Stuck(Exception):
    """Everybody waits, and for nothing that could still happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """When nobody can go on, time jumps to the next moment that somebody waits for. Among those who can, the one who
    does is drawn. So the same seed always gives the same order, whatever the machine does meanwhile."""

    def __init__(self, chance: Random | None = None) -> None:
        super().__init__()
        self.chance = chance
        self.steps = 0
        self._now_s = 0.0

    def time(self) -> float:
        return self._now_s

    def _run_once(self) -> None:
        self.steps += 1
        loop: Any = self
        ready, timers = loop._ready, loop._scheduled
        self._move_due(ready, timers)
        while not ready:
            if not timers:
                raise Stuck
            self._now_s = max(self._now_s, timers[0]._when)
            self._move_due(ready, timers)
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

    def _move_due(self, ready: Any, timers: list[Any]) -> None:
        while timers and (timers[0]._cancelled or timers[0]._when <= self._now_s):
            handle = heapq.heappop(timers)
            handle._scheduled = False
            if not handle._cancelled:
                ready.append(handle)

    def put_back(self, handles: list[asyncio.Handle]) -> None:
        loop: Any = self
        loop._ready.extend(handles)

    def _write_to_self(self) -> None:
        """There is no other thread, and nothing to be woken from."""
