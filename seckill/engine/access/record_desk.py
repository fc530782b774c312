"""The record, for those who look at it."""

from collections.abc import Sequence

from seckill.ports.record import RecordBook, RecordEntry, RecordFilter


class RecordDesk:
    def __init__(self, book: RecordBook) -> None:
        self._book = book

    async def page(self, wanted: RecordFilter, before: int | None, count: int) -> Sequence[RecordEntry]:
        """Newest first, those that came before that entry."""
        return await self._book.entries(wanted, before, count)
