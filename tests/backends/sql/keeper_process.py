"""A keeper's look at repeating sales in a process of its own: `python -m tests.backends.sql.keeper_process URL NOW_MS`.

Dies where SECKILL_FAILPOINTS says.
"""

import asyncio
import os
import sys
from typing import Any, cast

from seckill.backends.sql import SqlLedger, open_ledger
from seckill.domain.public_id import PublicIds
from seckill.engine.rounds.repeating import RoundRepeater
from seckill.engine.sale_cache import SaleCache
from seckill.failpoints import VARIABLE, arm


class KeeperAt:
    """A keeper whose clock is the test's. It has no gate: which rounds there are is for the ledger to say."""

    def __init__(self, ledger: SqlLedger) -> None:
        self.ledger = ledger
        self._sale_cache = SaleCache(ledger, cast(Any, None), PublicIds(b"k" * 32, "sale"))
        self._repetition = RoundRepeater(ledger, self._sale_cache, lanes=4)

    async def look(self) -> None:
        await self._sale_cache.refresh_sales()

    async def act(self, now_ms: int) -> int:
        return await self._repetition.make_due(now_ms)

    async def step(self, now_ms: int) -> int:
        await self.look()
        return await self.act(now_ms)


async def main(url: str, now_ms: int) -> None:
    ledger = open_ledger(url)
    await KeeperAt(ledger).step(now_ms)
    await ledger.close()


if __name__ == "__main__":
    arm(os.environ.get(VARIABLE, ""))
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
