import asyncio

from seckill.lab.compare.eligibility_check import Queueing
from seckill.lab.compare.moments import Moments
from seckill.lab.compare.strategy import CompareServers, Role

QUEUE_MAX = 1024 * 1024


class AsyncMemory(Queueing):
    """Check in Redis, put the order into a bounded queue in memory, answer; a task of the same process writes.

    Cures   the rush on the database: refusals never reach it, and buyers have their number in a millisecond.
    Breaks  promises: whatever is in the queue when the process ends is gone, and the buyers were told that they have
            it. Their units are gone as well: Redis has counted them, and no process will write them.
    """

    name = "async-memory"
    summary = "Lua check, queue in memory"
    eligible = "eligible"

    def __init__(self, servers: CompareServers, moments: Moments) -> None:
        super().__init__(servers, moments)
        self._queue: asyncio.Queue[tuple[int, int]] = asyncio.Queue(QUEUE_MAX)

    async def open(self, role: Role) -> None:
        await super().open(role)
        self._writing = asyncio.create_task(self.consume())

    async def buy(self, buyer: int) -> int | None:
        order = await super().buy(buyer)
        if order is not None:
            await self._queue.put((order, buyer))
        return order

    async def consume(self) -> None:
        while True:
            await self.write_if_left(*await self._queue.get())
