"""Writes alarms into the ledger, so that operators can look back at them.

Raising an alarm does not wait for this. Some alarms are not noted while the ledger is away; the log has them as
well."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

import structlog

from seckill.errors import LedgerUnavailable, SeckillError
from seckill.ports.alarm_book import AlarmBook, RaisedAlarm

log = structlog.get_logger()

RENEW_EVERY_S = 60.0
RETRY_S = 5.0
# How many different alarms may wait to be written.
WAITING_MAX = 100


@dataclass(frozen=True, slots=True)
class _Note:
    raised: RaisedAlarm | None
    over: bool


class AlarmNotes:
    def __init__(self, book: AlarmBook) -> None:
        self._book = book
        # The alarms that wait to be noted, in the order in which they began to wait.
        self._waiting: OrderedDict[str, _Note] = OrderedDict()
        self._lasting: set[str] = set()
        self._writing: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    def raised(self, alarm: RaisedAlarm) -> None:
        if alarm.lasting:
            self._lasting.add(alarm.key)
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew())
        self._put(alarm.key, _Note(alarm, over=False))

    def resolved(self, key: str) -> None:
        """Trouble that was over before it could be noted is noted all the same, such as an outage of the ledger
        itself."""
        self._lasting.discard(key)
        waiting = self._waiting.get(key)
        self._put(key, _Note(None if waiting is None else waiting.raised, over=True))

    async def drain(self, within_s: float) -> None:
        """Writes what is still waiting, as far as the time allows."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=within_s)
            self._writing.cancel()

    def _put(self, key: str, note: _Note) -> None:
        if key not in self._waiting and len(self._waiting) >= WAITING_MAX:
            return
        self._waiting[key] = note
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting:
            key, note = next(iter(self._waiting.items()))
            try:
                if note.raised is not None:
                    await self._book.raised(note.raised)
                if note.over:
                    await self._book.resolved(key)
            except LedgerUnavailable as error:
                log.warning("an alarm could not be noted in the ledger, and is tried again", reason=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            except Exception:  # drop it, so that it does not block all others
                log.exception("an alarm cannot be noted in the ledger")
            if self._waiting.get(key) is note:  # otherwise there is newer news of it
                del self._waiting[key]

    async def _renew(self) -> None:
        while self._lasting:
            await asyncio.sleep(RENEW_EVERY_S)
            try:
                await self._book.renew(sorted(self._lasting))
            except SeckillError as error:
                log.warning("lasting alarms could not be renewed in the ledger", reason=str(error))
