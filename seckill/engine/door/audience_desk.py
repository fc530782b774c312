"""Takes the lists of invited buyers that operators upload."""

import asyncio
import heapq
from array import array
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import islice

from seckill.domain.audience_list import DIGEST_TYPE, Digests, digest_of
from seckill.domain.sale import Sale
from seckill.ports.audience import AudienceLedger

# How many digests are sorted before other tasks get a turn.
_AT_ONCE = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    sale: Sale
    buyers: int
    repeated: int  # lines with a buyer who was in the list already


class NobodyListed(Exception):
    pass


class AudienceDesk:
    def __init__(self, ledger: AudienceLedger) -> None:
        self._ledger = ledger

    async def upload(self, sale_id: int, portions: AsyncIterator[list[str]]) -> Uploaded | None:
        """Replaces the sale's list. Returns None if there is no such sale. Raises NobodyListed."""
        sorted_portions: list[Digests] = []
        lines = 0
        async for portion in portions:
            lines += len(portion)
            sorted_portions.append(array(DIGEST_TYPE, sorted(map(digest_of, portion))))
            await asyncio.sleep(0)
        if not lines:
            raise NobodyListed
        digests = await _merged(sorted_portions)
        sale = await self._ledger.replace_list(sale_id, digests)
        if sale is None:
            return None
        return Uploaded(sale=sale, buyers=len(digests), repeated=lines - len(digests))


async def _merged(portions: list[Digests]) -> Digests:
    """Returns every digest once, in order. Sorting all of them in one call would hold up the process for a second."""
    merged: Digests = array(DIGEST_TYPE)
    following = heapq.merge(*portions)
    last: int | None = None
    while piece := list(islice(following, _AT_ONCE)):
        for digest in piece:
            if digest != last:
                merged.append(digest)
                last = digest
        await asyncio.sleep(0)
    return merged
