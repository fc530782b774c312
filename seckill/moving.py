"""When a lane is on another server than before: compared with the ledger before anybody is admitted there.

A replica that takes over may lack the newest orders. The gate closes such a lane by itself, and the keeper opens it:

1. Every order that the ledger has of the lane's rounds must be there, and the lane must still know what it sent to
   others. If something is missing, the round is fenced, to be rebuilt. Orders that no worker had written are lost
   without a trace; that can happen with `fast` only.
2. Orders that are over in the ledger and live in the gate are released once more. Their release was lost.
3. The round gets its newest rules again.
4. The server is vouched for.
5. A while later all is compared once more: a worker may have had orders in hand that it had read from the old server.

A slot that was moved to another primary takes the same way; then nothing is missing.
"""

import time
from collections.abc import Callable

import structlog

from seckill.catalogue import Catalogue
from seckill.domain import Round
from seckill.ports import Gate, Ledger, Release, Update
from seckill.rounds import FIRST_EPOCH

log = structlog.get_logger()

PORTION = 1000
# Longer than a worker takes to write what it has in hand.
AGAIN_AFTER_S = 10.0


class Moving:
    def __init__(
        self, gate: Gate, ledger: Ledger, catalogue: Catalogue, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._gate = gate
        self._ledger = ledger
        self._catalogue = catalogue
        self._monotonic = monotonic
        self._again_s: dict[int, float] = {}  # lane → when to compare it once more
        self._lost: dict[int, Round] = {}  # as they were when it was found

    async def step(self) -> int:
        """Returns how many lanes were opened again."""
        moved = await self._gate.moved_lanes(self._catalogue.lanes())
        for lane, server in moved.items():
            log.warning(
                "a lane is on another server: nobody is admitted until it is compared", lane=lane, server=server
            )
            await self._compare(lane)
            await self._gate.vouch(lane, server)
            self._again_s[lane] = self._monotonic() + AGAIN_AFTER_S
        for lane in [lane for lane, at_s in self._again_s.items() if self._monotonic() >= at_s]:
            await self._compare(lane)
            del self._again_s[lane]
        return len(moved)

    async def lost(self) -> list[Round]:
        """Rounds that were found incomplete and are not rebuilt yet."""
        found = []
        for lost in list(self._lost.values()):
            newest = await self._newest(lost)
            if newest is None or (newest.epoch > lost.epoch and newest.opened_ms is not None):
                del self._lost[lost.id]
            else:
                found.append(newest)
        return found

    async def _compare(self, lane: int) -> None:
        for known in self._catalogue.rounds_in(lane):
            round_ = await self._newest(known)
            if round_ is None or round_.opened_ms is None:
                continue  # not opened yet, retired, or to be rebuilt anyway
            if not await self._is_complete(round_):
                log.error("orders of a round are gone from the gate: it refuses until it is rebuilt", round=round_.id)
                await self._gate.fence(round_)
                self._lost[round_.id] = round_

    async def _newest(self, known: Round) -> Round | None:
        sale = await self._ledger.sale(known.sale_id, known.id)
        return None if sale is None or sale.round.retired_ms is not None else sale.round

    async def _is_complete(self, round_: Round) -> bool:
        """The ledger is read before the gate: what it has then, the gate must have by now."""
        after = ""
        while portion := await self._ledger.holdings(round_.id, after, PORTION):
            records = await self._gate.records(round_.ref, list(portion))
            forgotten: list[Release] = []
            for (user, held), record in zip(portion.items(), records, strict=True):
                live = {holding.number: holding.live for holding in record}
                for holding in held:
                    if holding.number not in live:
                        return False
                    if live[holding.number] and not holding.live:
                        forgotten.append(Release(holding.number, user, FIRST_EPOCH))
            if forgotten:
                log.warning("releases were lost and are made again", round=round_.id, orders=len(forgotten))
                await self._gate.release(round_.ref, forgotten)
            *_, after = portion
        if await self._gate.update_round(round_) not in (Update.APPLIED, Update.CURRENT):
            return False
        # None as well if the lane has forgotten units that it sent to another.
        _, (pulse,) = await self._gate.pulses([round_.ref])
        return pulse is not None
