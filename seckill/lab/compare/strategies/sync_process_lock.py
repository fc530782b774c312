import asyncio
from collections import defaultdict

from seckill.lab.compare.moments import Moments
from seckill.lab.compare.strategy import CompareServers, Strategy


class SyncProcessLock(Strategy):
    """One order a person: a lock for each person, in the memory of the process, held until the commit.

    Cures   buying twice, as long as there is one process. (Let go before the commit, it would not even do that.)
    Breaks  on the second process, which has locks of its own: two presses of one person that reach different
            processes both find no order, and both write one.
    """

    name = "sync-process-lock"
    group = "sync"
    summary = "a lock for each person, in the process"

    def __init__(self, servers: CompareServers, moments: Moments) -> None:
        super().__init__(servers, moments)
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def buy(self, buyer: int) -> int | None:
        async with self._locks[buyer]:
            if await self.db.value("SELECT count(*) FROM orders WHERE buyer = :buyer", buyer=buyer):
                return None
            await self.pause()
            async with self.db.transaction() as transaction:
                if not await transaction.change("UPDATE sale SET stock = stock - 1 WHERE stock > 0"):
                    return None
                return await self.insert_order(transaction, buyer)
