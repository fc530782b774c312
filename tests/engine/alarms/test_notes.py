"""Alarms get into the ledger's book, and code that raises one does not wait for that."""

import asyncio
from collections.abc import Sequence

import pytest

from seckill.engine.alarms import notes as alarm_notes
from seckill.engine.alarms.alarm import Alarm
from seckill.engine.alarms.notes import AlarmNotes
from seckill.errors import LedgerUnavailable
from seckill.ports.alarm_book import AlarmFilter, KeptAlarm, RaisedAlarm
from tests.patience import PATIENCE_S


class Book:
    """Implements `seckill.ports.alarm_book.AlarmBook`, and is away at first."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.heard: list[tuple[str, str]] = []
        self.renewed = asyncio.Event()

    async def raised(self, alarm: RaisedAlarm) -> None:
        if self.failures:
            self.failures -= 1
            raise LedgerUnavailable("away")
        self.heard.append(("raised", alarm.what))

    async def renew(self, keys: Sequence[str]) -> None:
        self.heard.append(("renewed", str(len(keys))))
        self.renewed.set()

    async def resolved(self, key: str) -> None:
        self.heard.append(("resolved", ""))

    async def alarms(self, wanted: AlarmFilter, count: int) -> Sequence[KeptAlarm]:
        return []

    async def prune_alarms(self, kept_ms: int, count: int) -> int:
        return 0


async def test_a_ledger_that_is_away_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm_notes, "RETRY_S", 0.001)
    book = Book(failures=2)
    alarm = Alarm("", notes=AlarmNotes(book))
    await alarm.raise_("broken", {"round": 7})
    assert book.heard == [], "nobody waits for it"
    await alarm.drain(PATIENCE_S)
    assert book.heard == [("raised", "broken")]


async def test_what_was_over_before_it_could_be_written_can_be_looked_back_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage of the ledger itself is one."""
    monkeypatch.setattr(alarm_notes, "RETRY_S", 0.001)
    book = Book(failures=2)
    alarm = Alarm("", notes=AlarmNotes(book))
    await alarm.raise_("broken", {"round": 7}, lasting=True)
    await alarm.resolve("mended", {"round": 7}, ends="broken")
    await alarm.drain(PATIENCE_S)
    assert book.heard == [("raised", "broken"), ("resolved", "")]


async def test_what_lasts_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm_notes, "RENEW_EVERY_S", 0.001)
    book = Book()
    alarm = Alarm("", notes=AlarmNotes(book))
    await alarm.raise_("broken", {"round": 7}, lasting=True)
    await book.renewed.wait()
    await alarm.drain(PATIENCE_S)
    assert book.heard[:2] == [("raised", "broken"), ("renewed", "1")]


async def test_a_flood_is_bounded() -> None:
    book = Book(failures=10**6)
    notes = AlarmNotes(book)
    for n in range(alarm_notes.WAITING_MAX + 50):
        notes.raised(RaisedAlarm(key=str(n), what="w", facts={}, lasting=False))
    assert len(notes._waiting) == alarm_notes.WAITING_MAX
    await notes.drain(0.0)
