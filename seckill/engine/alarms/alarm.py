"""Alarms: a POST to an address that the operator has set, sent when something changes rather than again and again.
Raising one never blocks other work."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import structlog

from seckill.engine.alarms.alarm_cause import runbook
from seckill.engine.alarms.delivery import AlarmPost
from seckill.engine.alarms.notes import AlarmNotes
from seckill.engine.alarms.repeats import QuietTime, Reminders
from seckill.ports.alarm_book import RaisedAlarm
from seckill.ports.board import TellingBoard

log = structlog.get_logger()

# When the process stops, alarms that are not sent yet get this long.
LAST_WORDS_S = 3.0
# The facts that name what an alarm is about; the other facts describe its present state.
_NAMES = ("server", "sale", "round", "invariant", "webhook", "refund", "letter", "key", "lanes")


class Alarm:
    """Without an address, alarms only go to the log and to the ledger."""

    def __init__(
        self,
        url: str,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        board: TellingBoard | None = None,
        notes: AlarmNotes | None = None,
    ) -> None:
        """With a `board`, only one of the processes that see the same trouble sends the alarm. Without one, this
        process sends everything that it sees."""
        self._post = AlarmPost(url, monotonic, board) if url else None
        self._notes = notes
        self._quiet_time = QuietTime(monotonic)
        self._reminders = Reminders(self._remind)

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        """`lasting`: the trouble goes on until `resolve` is called, and operators are reminded of it meanwhile."""
        log.critical(what, **facts)
        key = key_of(what, facts)
        if self._notes is not None:
            self._notes.raised(RaisedAlarm(key=key, what=what, facts=facts, lasting=lasting))
        if self._post is None:
            return
        if lasting:
            if self._reminders.has(key, what, facts):
                return
            self._reminders.add(key, what, facts)
        left_out = 0 if lasting else self._quiet_time.left_out(what, facts)
        if left_out is not None:
            self._post.put(message("alarm", what, key, facts) | ({"again": left_out} if left_out else {}))

    async def resolve(self, what: str, facts: Mapping[str, object], *, ends: str = "") -> None:
        """The trouble behind an alarm is over. `ends`: the `what` of that alarm, if it was a lasting one."""
        log.warning(what, **facts)
        key = key_of(ends or what, facts)
        if self._notes is not None:
            self._notes.resolved(key)
        if self._post is not None:
            self._reminders.remove(key)
            self._post.put(message("resolved", what, key, facts, about=ends))

    async def drain(self, within_s: float) -> None:
        """Called when the process ends: sends what is still waiting, as far as the time allows."""
        self._reminders.stop()
        if self._post is not None:
            await self._post.drain(within_s)
        if self._notes is not None:
            await self._notes.drain(within_s)

    def _remind(self, key: str, what: str, facts: Mapping[str, object]) -> None:
        if self._post is not None:
            self._post.put(message("alarm", what, key, facts) | {"reminder": True})


def message(kind: str, what: str, key: str, facts: Mapping[str, object], about: str = "") -> dict[str, object]:
    """`about`: the alarm that this message belongs to, where that is another one."""
    row = runbook(about or what)
    return {
        kind: what,
        **facts,
        **({} if row is None else {"runbook": row}),
        "dedup_key": key,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def key_of(what: str, facts: Mapping[str, object]) -> str:
    """An alarm, its reminders and its end have the same key in every process, so that receivers can group them."""
    about = [what, *([name, str(facts[name])] for name in _NAMES if name in facts)]
    return hashlib.blake2b(json.dumps(about).encode(), digest_size=8).hexdigest()
