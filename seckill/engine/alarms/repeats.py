"""For how long a repeated alarm is left out, how often a lasting one is repeated as a reminder, and when it counts as
over."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping

# The same alarm within this time is not news: it is neither sent nor noted in the ledger again.
QUIET_S = 600.0
# Operators are reminded of a lasting alarm this often.
REMIND_EVERY_S = 6 * 3600.0
# A process that has raised a lasting alarm confirms it in the ledger every minute. If it stops doing so, it is gone,
# and any other process that still sees the trouble would confirm it.
STALE_AFTER_S = 180.0
REMEMBERED_MAX = 1_000

Remind = Callable[[str, str, Mapping[str, object]], None]


class QuietTime:
    """Suppresses repetitions of alarms that do not last."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        # when it was told, and how often it was left out since
        self._told: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def left_out(self, what: str, facts: Mapping[str, object]) -> int | None:
        """Returns None if the alarm was told a moment ago, otherwise how often it was left out since then."""
        news = json.dumps([what, facts], default=str, sort_keys=True)
        now_s = self._monotonic()
        told_s, left_out = self._told.get(news, (-QUIET_S, 0))
        if now_s - told_s < QUIET_S:
            self._told[news] = told_s, left_out + 1
            return None
        self._told[news] = now_s, 0
        self._told.move_to_end(news)
        if len(self._told) > REMEMBERED_MAX:
            self._told.popitem(last=False)
        return left_out


class Reminders:
    """Repeats lasting alarms as reminders."""

    def __init__(self, remind: Remind) -> None:
        self._remind = remind
        self._lasting: dict[str, tuple[str, Mapping[str, object]]] = {}
        self._reminding: asyncio.Task[None] | None = None

    def has(self, key: str, what: str, facts: Mapping[str, object]) -> bool:
        """Whether the alarm is known with just these facts."""
        return self._lasting.get(key) == (what, facts)

    def add(self, key: str, what: str, facts: Mapping[str, object]) -> None:
        if len(self._lasting) < REMEMBERED_MAX or key in self._lasting:
            self._lasting[key] = what, facts
        if self._reminding is None or self._reminding.done():
            self._reminding = asyncio.create_task(self._remind_of_all())

    def remove(self, key: str) -> None:
        self._lasting.pop(key, None)

    def stop(self) -> None:
        if self._reminding is not None:
            self._reminding.cancel()

    async def _remind_of_all(self) -> None:
        while self._lasting:
            await asyncio.sleep(REMIND_EVERY_S)
            for key, (what, facts) in self._lasting.items():
                self._remind(key, what, facts)
