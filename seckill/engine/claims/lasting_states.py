"""Reports states that last, and not every flicker.

When units come back and are bought again, a sale may change between sold out and not sold out many times a second.
Readers of the log only want to know a state that lasts.
"""

import asyncio
from collections.abc import Callable, Collection

LASTS_S = 5.0


class LastingStates:
    def __init__(self, tell: Callable[[int, bool], None]) -> None:
        self._tell = tell
        self._told: set[int] = set()  # subjects whose state was reported as on
        self._now: dict[int, bool] = {}  # the present state of those that have changed since
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def change(self, subject: int, *, on: bool) -> None:
        self._now[subject] = on
        if (timer := self._timers.pop(subject, None)) is not None:
            timer.cancel()
        self._timers[subject] = asyncio.get_running_loop().call_later(LASTS_S, self._lasted, subject)

    def _lasted(self, subject: int) -> None:
        del self._timers[subject]
        on = self._now.pop(subject)
        if on == (subject in self._told):
            return
        (self._told.add if on else self._told.discard)(subject)
        self._tell(subject, on)

    def keep(self, subjects: Collection[int]) -> None:
        """Forgets all other subjects: they are over."""
        self._told.intersection_update(subjects)
        for subject in self._timers.keys() - subjects:
            self._timers.pop(subject).cancel()
            del self._now[subject]
