"""Telling people: a POST to an address that the operator has set, when something changes and not again and again. It
never blocks other work."""

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import structlog

from seckill.ports.alarm_book import RaisedAlarm
from seckill.ports.alarm_cause import runbook
from seckill.ports.alarm_notes import AlarmNotes
from seckill.ports.alarm_post import AlarmPost
from seckill.ports.board import TellingBoard

log = structlog.get_logger()

# The same again within this time is not news.
QUIET_S = 600.0
# What lasts is told again, so that it is not forgotten.
REMIND_EVERY_S = 6 * 3600.0
REMEMBERED_MAX = 1_000
# When the process stops, what is still to be told gets this long.
LAST_WORDS_S = 3.0
# What an alarm is about; the rest of its facts says how it is now.
_NAMES = ("server", "sale", "round", "invariant", "webhook", "refund", "letter", "key", "lanes")


class Alarm:
    """Without an address, the log and the ledger's book have to do."""

    def __init__(
        self,
        url: str,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        board: TellingBoard | None = None,
        notes: AlarmNotes | None = None,
    ) -> None:
        """`board`: of those who see the same, one tells it. Without it, this process tells all that it sees."""
        self._post = AlarmPost(url, monotonic, board) if url else None
        self._notes = notes
        self._monotonic = monotonic
        self._told: OrderedDict[str, tuple[float, int]] = OrderedDict()  # when, and how often it was left out since
        self._lasting: dict[str, tuple[str, Mapping[str, object]]] = {}
        self._reminding: asyncio.Task[None] | None = None

    async def raise_(self, what: str, facts: Mapping[str, object], *, lasting: bool = False) -> None:
        """`lasting`: it is so until `resolve` says that it is over, and operators are reminded meanwhile."""
        log.critical(what, **facts)
        key = key_of(what, facts)
        if self._notes is not None:
            self._notes.raised(RaisedAlarm(key=key, what=what, facts=facts, lasting=lasting))
        if self._post is None:
            return
        if lasting:
            if self._lasting.get(key) == (what, facts):
                return
            self._remember(key, what, facts)
        left_out = 0 if lasting else self._left_out(what, facts)
        if left_out is not None:
            self._post.put(message("alarm", what, key, facts) | ({"again": left_out} if left_out else {}))

    async def resolve(self, what: str, facts: Mapping[str, object], *, ends: str = "") -> None:
        """The trouble that an alarm was raised for is over. `ends`: what that one said, if it was a lasting one."""
        log.warning(what, **facts)
        key = key_of(ends or what, facts)
        if self._notes is not None:
            self._notes.resolved(key)
        if self._post is not None:
            self._lasting.pop(key, None)
            self._post.put(message("resolved", what, key, facts, about=ends))

    async def drain(self, within_s: float) -> None:
        """At the end of the process: what is still to be told, as far as the time allows."""
        if self._reminding is not None:
            self._reminding.cancel()
        if self._post is not None:
            await self._post.drain(within_s)
        if self._notes is not None:
            await self._notes.drain(within_s)

    def _left_out(self, what: str, facts: Mapping[str, object]) -> int | None:
        """None: it was told a moment ago. Otherwise how often it was left out since it was told."""
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

    def _remember(self, key: str, what: str, facts: Mapping[str, object]) -> None:
        if len(self._lasting) < REMEMBERED_MAX or key in self._lasting:
            self._lasting[key] = what, facts
        if self._reminding is None or self._reminding.done():
            self._reminding = asyncio.create_task(self._remind())

    async def _remind(self) -> None:
        while self._lasting and self._post is not None:
            await asyncio.sleep(REMIND_EVERY_S)
            for key, (what, facts) in self._lasting.items():
                self._post.put(message("alarm", what, key, facts) | {"reminder": True})


def message(kind: str, what: str, key: str, facts: Mapping[str, object], about: str = "") -> dict[str, object]:
    """`about`: the alarm that it belongs to, if it is not that one itself."""
    row = runbook(about or what)
    return {
        kind: what,
        **facts,
        **({} if row is None else {"runbook": row}),
        "dedup_key": key,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def key_of(what: str, facts: Mapping[str, object]) -> str:
    """The same for an alarm, its reminders and its end, whichever process tells them: receivers put them together."""
    about = [what, *([name, str(facts[name])] for name in _NAMES if name in facts)]
    return hashlib.blake2b(json.dumps(about).encode(), digest_size=8).hexdigest()
