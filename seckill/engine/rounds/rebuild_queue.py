"""Rebuilds rounds that were found lost, or incomplete on another server: several at a time, the urgent ones first."""

import asyncio
from collections.abc import Sequence

from seckill.domain.sale import Round, RoundStatus
from seckill.engine.rounds.failover import LaneFailover
from seckill.engine.rounds.losses import LossDetection
from seckill.engine.rounds.opening import RefusedRounds
from seckill.engine.rounds.rebuild import Rebuilder
from seckill.engine.sale_cache import SaleCache
from seckill.errors import GateUnavailable

# More than this would only wait for each other's database connections.
REBUILT_AT_ONCE = 8


class RoundRecovery:
    def __init__(
        self,
        losses: LossDetection,
        failover: LaneFailover,
        rebuilder: Rebuilder,
        sale_cache: SaleCache,
        refused: RefusedRounds,
    ) -> None:
        self.losses = losses
        self._failover = failover
        self._rebuilder = rebuilder
        self._sale_cache = sale_cache
        self._refused = refused

    async def rebuild_losses(self) -> int:
        """Returns how many sell again."""
        return await self._rebuild(await self.losses.find())

    async def rebuild_what_is_over(self) -> int:
        """Returns how many are whole again."""
        return await self._rebuild(await self.losses.find_over())

    async def look_after_lanes(self) -> int:
        """Opens lanes that have moved to another server as soon as their data has been compared with the ledger, and
        rebuilds incomplete rounds. Returns how many lanes were opened."""
        opened = await self._failover.step()
        await self._rebuild(await self._failover.lost())
        return opened

    async def _rebuild(self, rounds: Sequence[Round]) -> int:
        """Rebuilds several at a time, because each has to wait for the next second, and first those that buyers wait
        for. One that fails does not hold up the others."""
        now_ms = self._sale_cache.now_ms()
        turns = asyncio.Semaphore(REBUILT_AT_ONCE)

        def rank(round_: Round) -> tuple[bool, bool, bool]:
            return round_.status is not RoundStatus.OPEN, round_.ends_ms <= now_ms, round_.begins_ms > now_ms

        async def step(round_: Round) -> bool:
            async with turns:
                try:
                    return await self._rebuilder.step(round_)
                except GateUnavailable as error:
                    self._refused.tell(round_, error)
                    return False

        rebuilt = 0
        for result in await asyncio.gather(*map(step, sorted(rounds, key=rank)), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
            rebuilt += result
        return rebuilt
