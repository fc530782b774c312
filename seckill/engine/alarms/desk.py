"""Alarms as operators look them up."""

from collections.abc import Sequence

from seckill.ports.alarm_book import AlarmBook, AlarmFilter, KeptAlarm


class AlarmDesk:
    def __init__(self, book: AlarmBook) -> None:
        self._book = book

    async def newest(self, wanted: AlarmFilter, count: int) -> Sequence[KeptAlarm]:
        return await self._book.alarms(wanted, count)
