"""What happens when a lane has moved to another server: it is compared with the ledger before any buyer is admitted
there.

A replica that takes over may lack the newest orders. The gate closes such a lane by itself, and the keeper opens it:

1. Every order that the ledger has for the lane's rounds must be there, and the lane must still know which units it sent
   to other lanes. If something is missing, the round is fenced, to be rebuilt. Orders that no worker had written are
   lost without a trace; that can only happen with `fast`. A round whose rebuild has begun is fenced in any case: the
   replica may not have heard of it.
2. Orders that are over in the ledger and live in the gate are released once more. Their release was lost.
3. The gate gets the round's newest rules again.
4. The keeper vouches for the server, and the lane admits again.
5. A while later everything is compared once more, and the keeper vouches for the server for good. A worker may have
   been writing orders that it had read from the old server, so until then the ledger may be ahead of the gate.

A slot that was moved to another primary goes through the same steps, but nothing is missing.
"""

import time
from collections.abc import Callable

import structlog

from seckill.domain.sale import Round
from seckill.engine.rounds.opening import FIRST_EPOCH
from seckill.engine.sale_cache import SaleCache
from seckill.ports.gate import FailoverGate, Release, Update
from seckill.ports.ledger import FailoverLedger

log = structlog.get_logger()

PORTION = 1000
# Longer than a worker takes to write what it has in hand.
AGAIN_AFTER_S = 10.0


class LaneFailover:
    def __init__(
        self,
        gate: FailoverGate,
        ledger: FailoverLedger,
        sale_cache: SaleCache,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gate = gate
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._monotonic = monotonic
        self._again_s: dict[int, float] = {}  # lane → when to compare it once more
        self._lost: dict[int, Round] = {}  # as they were when the loss was found

    async def step(self) -> int:
        """Returns how many lanes were opened again."""
        moved = await self._gate.moved_lanes(self._sale_cache.lanes())
        self._again_s = {lane: at_s for lane, at_s in self._again_s.items() if lane in moved}
        opened = 0
        for lane, found in moved.items():
            if not found.compared:
                log.warning(
                    "a lane is on another server: nobody is admitted until it is compared",
                    lane=lane,
                    server=found.server,
                )
                await self._compare(lane)
                await self._gate.vouch(lane, found.server, for_good=False)
                self._again_s[lane] = self._monotonic() + AGAIN_AFTER_S
                opened += 1
            # Also if another keeper, which may be gone by now, made the first comparison.
            elif self._monotonic() >= self._again_s.setdefault(lane, self._monotonic() + AGAIN_AFTER_S):
                await self._compare(lane)
                await self._gate.vouch(lane, found.server, for_good=True)
        return opened

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
        for known in self._sale_cache.rounds_in(lane):
            round_ = await self._newest(known)
            if round_ is None:
                continue  # retired
            if round_.opened_ms is None:  # not opened yet, or being rebuilt
                if round_.epoch > FIRST_EPOCH:
                    await self._gate.fence(round_)
            elif not await self._is_complete(round_):
                log.error("orders of a round are gone from the gate: it refuses until it is rebuilt", round=round_.id)
                await self._gate.fence(round_)
                self._lost[round_.id] = round_

    async def _newest(self, known: Round) -> Round | None:
        sale = await self._ledger.sale(known.sale_id, known.id)
        return None if sale is None or sale.round.retired_ms is not None else sale.round

    async def _is_complete(self, round_: Round) -> bool:
        """Reads the ledger before the gate: the gate must have every order that the ledger had."""
        after = ""
        while portion := await self._ledger.holdings(round_.id, after, PORTION):
            remembered = await self._gate.remembered(round_.ref, portion)
            forgotten: list[Release] = []
            for user, held in portion.items():
                for holding in held:
                    there = remembered[user].get(holding.number)
                    if there is None:
                        return False
                    if there.live and not holding.live:
                        lapsed = holding.lapsed_ms > 0
                        forgotten.append(Release(holding.number, user, FIRST_EPOCH, holding.request_id, lapsed))
            if forgotten:
                log.warning("releases were lost and are made again", round=round_.id, orders=len(forgotten))
                await self._gate.release(round_.ref, forgotten)
            *_, after = portion
        if await self._gate.update_round(round_) not in (Update.APPLIED, Update.CURRENT):
            return False
        # Also None if the lane has forgotten units that it sent to another lane.
        _, (pulse,) = await self._gate.pulses([round_.ref])
        return pulse is not None
