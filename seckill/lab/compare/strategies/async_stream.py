from seckill.lab.compare.eligibility_check import Queueing
from seckill.lab.compare.scripts import QUEUE

GROUP = "writers"
CONSUMER = "c1"


class AsyncStream(Queueing):
    """A stream in Redis as the queue: XADD in the script, a consumer group, one entry a time, XACK after the commit.

    Cures   the loss: an entry that was taken stays in the pending list until it is acknowledged.
    Breaks  a restart: this consumer reads new entries only, and looks into the pending list when an exception told it
            to. A process that was killed raises none, so what it held stays there, not lost but not sold either, until
            some later exception. And one transaction an order is slow.
    """

    name = "async-stream"
    summary = "Lua check and XADD; XREADGROUP, write, XACK"
    roles = ("shop", "shop", "consumer")
    dies = "consumer"
    eligible = "eligible_stream"

    async def prepare(self, stock: int) -> None:
        await super().prepare(stock)
        await self.redis.xgroup_create(QUEUE, GROUP, id="0", mkstream=True)

    async def waiting(self) -> int:
        (group,) = await self.redis.xinfo_groups(QUEUE)
        return int(group["lag"])

    async def consume(self) -> None:
        while True:
            try:
                await self._read(">")
            except Exception:
                while await self._read("0"):
                    pass

    async def _read(self, after: str) -> bool:
        found = await self.redis.xreadgroup(GROUP, CONSUMER, {QUEUE: after}, count=1, block=1000)
        if not found or not found[0][1]:
            return False
        ((_, ((entry_id, fields),)),) = found
        await self.write(f"{fields['order']} {fields['buyer']}")
        await self.redis.xack(QUEUE, GROUP, entry_id)
        return True
