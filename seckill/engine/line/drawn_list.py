"""The public ids of a draw's entries, by place. They never change, and everyone who checks a draw reads all of them, so
each piece of the list is read from the ledger and encoded once and then kept."""

from collections import OrderedDict

from seckill.domain.public_id import PublicIds
from seckill.engine.shared_look import SharedAnswers
from seckill.ports.line import DrawnLedger

# How many places make one piece of the list.
PIECE = 1_000
# A quarter of a million entries, in about 20 MB. Of larger draws, the pieces that were asked for last are kept.
PIECES_KEPT = 256


class DrawnList:
    def __init__(self, ledger: DrawnLedger, entry_ids: PublicIds) -> None:
        self._ledger = ledger
        self._entry_ids = entry_ids
        self._kept: OrderedDict[tuple[int, int], list[str]] = OrderedDict()  # by the round and the number of the piece
        self._reading = SharedAnswers[list[str]]()

    async def of(self, round_id: int, after: int, up_to: int) -> list[str]:
        """Returns the ids after one place up to another one. The list must be drawn and have that place."""
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
