"""Reading the record of what operators have done."""

from collections.abc import Sequence

from seckill.ports.record import RecordBook, RecordEntry, RecordFilter


class RecordDesk:
    def __init__(self, book: RecordBook) -> None:
        self._book = book

    async def page(self, wanted: RecordFilter, before: int | None, count: int) -> Sequence[RecordEntry]:
        """Returns the entries before the given one, newest first."""
        return await self._book.entries(wanted, before, count)
