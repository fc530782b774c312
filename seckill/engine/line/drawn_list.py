"""The ids of a draw's entries by place, kept once they were asked for: they never change, and whoever checks a draw
reads all of them. So they are read from the ledger and made once, whichever pages of the list are asked for."""

from collections import OrderedDict

from seckill.domain.public_id import PublicIds
from seckill.engine.shared_look import SharedAnswers
from seckill.ports.line import DrawnLedger

# Places of one piece of the list.
PIECE = 1_000
# A quarter of a million entries, in some 20 MB; of larger draws the pieces that were asked for last.
PIECES_KEPT = 256


class DrawnList:
    def __init__(self, ledger: DrawnLedger, entry_ids: PublicIds) -> None:
        self._ledger = ledger
        self._entry_ids = entry_ids
        self._kept: OrderedDict[tuple[int, int], list[str]] = OrderedDict()  # by the round and the number of the piece
        self._reading = SharedAnswers[list[str]]()

    async def of(self, round_id: int, after: int, up_to: int) -> list[str]:
        """Of a list that is drawn, those behind a place, up to another that the list has."""
        found: list[str] = []
        for piece in range(after // PIECE, -(-up_to // PIECE)):
            first = piece * PIECE
            ids = await self._piece(round_id, piece)
            found += ids[max(0, after - first) : up_to - first]
        return found

    async def _piece(self, round_id: int, piece: int) -> list[str]:
        key = round_id, piece
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        return await self._reading.of(key, lambda: self._read(round_id, piece))

    async def _read(self, round_id: int, piece: int) -> list[str]:
        numbers = await self._ledger.placed(round_id, piece * PIECE, PIECE)
        ids = self._kept[round_id, piece] = self._entry_ids.encode_all(numbers) if numbers else []
        if len(self._kept) > PIECES_KEPT:
            self._kept.popitem(last=False)
        return ids
