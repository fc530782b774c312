"""Writing alarms into the ledger's book, so that operators can look back at them.

Nobody who raises one waits for it, and a ledger that is away loses some of them: they are in the log as well."""

import asyncio
from collections import OrderedDict

import structlog

from seckill.errors import LedgerUnavailable, SeckillError
from seckill.ports.alarm_book import AlarmBook, RaisedAlarm

log = structlog.get_logger()

RENEW_EVERY_S = 60.0
RETRY_S = 5.0
# Of different ones that wait to be written.
WAITING_MAX = 100


class AlarmNotes:
    def __init__(self, book: AlarmBook) -> None:
        self._book = book
        # What was last said of each, in the order in which they began to wait. None: it is resolved.
        self._waiting: OrderedDict[str, RaisedAlarm | None] = OrderedDict()
        self._lasting: set[str] = set()
        self._writing: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    def raised(self, alarm: RaisedAlarm) -> None:
        if alarm.lasting:
            self._lasting.add(alarm.key)
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew())
        self._put(alarm.key, alarm)

    def resolved(self, key: str) -> None:
        self._lasting.discard(key)
        self._put(key, None)

    async def drain(self, within_s: float) -> None:
        """What is still to be written, as far as the time allows."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=within_s)
            self._writing.cancel()

    def _put(self, key: str, alarm: RaisedAlarm | None) -> None:
        if key not in self._waiting and len(self._waiting) >= WAITING_MAX:
            return
        self._waiting[key] = alarm
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting:
            key, alarm = next(iter(self._waiting.items()))
            try:
                await (self._book.resolved(key) if alarm is None else self._book.raised(alarm))
            except LedgerUnavailable as error:
                log.warning("an alarm could not be noted in the ledger, and is tried again", reason=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            except Exception:  # it goes, so that it does not stand in the way of all others
                log.exception("an alarm cannot be noted in the ledger")
            if self._waiting.get(key) is alarm:  # or something newer was said of it meanwhile
                del self._waiting[key]

    async def _renew(self) -> None:
        while self._lasting:
            await asyncio.sleep(RENEW_EVERY_S)
            try:
                await self._book.renew(sorted(self._lasting))
            except SeckillError as error:
                log.warning("lasting alarms could not be renewed in the ledger", reason=str(error))
