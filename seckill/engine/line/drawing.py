"""Making a draw: the list is closed, its hash published, and places follow from the seed.

Seed, beacon and list are fixed in the ledger before the first place is given. So a draw that was interrupted can be
made again from the beginning and gives the same places, and so do two keepers that make it at the same time. A place
that has been given stays. Ranking a million entries takes about 100 MB.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice

import structlog

from seckill.domain.draw import Ranking, list_hash
from seckill.domain.public_id import PublicIds
from seckill.engine.line.beacons import Beacons
from seckill.errors import LedgerError
from seckill.ports.line import DrawLedger

log = structlog.get_logger()

# How many entries are read, ranked and sorted at a time. It takes a few milliseconds, in which the keeper does nothing
# else.
PORTION = 5_000
# How many places are given in one transaction.
PLACES_AT_ONCE = 2_000
_NUMBER_BYTES = 8
# Sorts before every name, since no name is empty.
_BEFORE_ALL = ""


class Drawing:
    def __init__(self, ledger: DrawLedger, entry_ids: PublicIds, beacons: Beacons) -> None:
        self._ledger = ledger
        self._beacons = beacons
        self._entry_ids = entry_ids

    async def step(self) -> int:
        """Makes the draws that are due. Returns how many it made."""
        made = 0
        dues = await self._ledger.draws_due()
        await self._beacons.forget_others({due.round_id for due in dues if due.waits_for_beacon})
        for due in dues:
            try:
                made += await self._draw(due.round_id)
            except LedgerError as error:  # perhaps only this round is concerned; the others go on
                log.warning("a draw waits", round=due.round_id, reason=str(error))
        return made

    async def _draw(self, round_id: int) -> bool:
        line = await self._ledger.close_list(round_id)
        if line is None or line.seed is None or line.drawn_ms is not None:
            return False
        hash_of_list = line.list_hash
        if hash_of_list is None or line.listed_ms is None:
            hash_of_list = hash_of_list or await self._hash(round_id)
            await self._ledger.note_list(round_id, hash_of_list)
        if line.waits_for_beacon:
            # The next step reads what any process has noted.
            await self._beacons.fetch(line)
            return False
        ranking = Ranking(line.seed, line.beacon, hash_of_list)
        places = enumerate(await self._ranked(round_id, ranking), start=1)
        while portion := list(islice(places, PLACES_AT_ONCE)):
            await self._ledger.give_places([(number, place) for place, number in portion])
        await self._ledger.mark_drawn(round_id)
        log.info("a draw is made", round=round_id, entries=line.entries, list_hash=hash_of_list)
        return True

    async def _hash(self, round_id: int) -> str:
        runs = [sorted(ids) async for ids, _ in self._portions(round_id)]
        return await asyncio.to_thread(list_hash, heapq.merge(*runs))  # a second or two for a million

    async def _ranked(self, round_id: int, ranking: Ranking) -> Iterator[int]:
        """Yields entries in the order of their ranks. To save memory, rank and number are kept in one row of bytes."""
        runs: list[list[bytes]] = []
        async for ids, numbers in self._portions(round_id):
            runs.append(
                sorted(
                    ranking.rank(entry_id) + number.to_bytes(_NUMBER_BYTES)
                    for entry_id, number in zip(ids, numbers, strict=True)
                )
            )
        return (int.from_bytes(each[-_NUMBER_BYTES:]) for each in heapq.merge(*runs))

    async def _portions(self, round_id: int) -> AsyncIterator[tuple[Sequence[str], Sequence[int]]]:
        """Yields the public ids and numbers of all entries in the draw."""
        after = _BEFORE_ALL
        while portion := await self._ledger.listed(round_id, after, PORTION):
            numbers = [number for _, number in portion]
            yield self._entry_ids.encode_all(numbers), numbers
            after = portion[-1][0]
            await asyncio.sleep(0)
