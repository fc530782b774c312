from seckill.lab.compare.eligibility_check import Queueing
from seckill.lab.compare.scripts import QUEUE


class AsyncList(Queueing):
    """A list in Redis as the queue: the script pushes, one consumer pops and writes.

    Cures   the loss of the whole queue: it outlives our processes.
    Breaks  the order in hand: popped is gone, so a consumer that dies between the pop and its commit takes one order
            with it. (Moving it to a second list instead helps only if a process looks there later.)
    """

    name = "async-list"
    summary = "Lua check and LPUSH; BRPOP, write"
    roles = ("shop", "shop", "consumer")
    dies = "consumer"
    eligible = "eligible_list"

    async def waiting(self) -> int:
        return int(await self.redis.llen(QUEUE))

    async def consume(self) -> None:
        while True:
            popped = await self.redis.brpop([QUEUE], timeout=1)
            if popped is not None:
                await self.write(popped[1])
