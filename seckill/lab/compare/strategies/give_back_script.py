from seckill.lab.compare.release_schemes import GivingBack
from seckill.lab.compare.scripts import BUYERS, COUNTER, QUEUE, STOCK, script
from seckill.lab.compare.strategy import Role

# Every second message comes again: its consumer was restarted before it had acknowledged the message.
COMES_TWICE_EVERY = 2


class GiveBackScript(GivingBack):
    """Scheme 4: the script of the tutorials looks before it takes, so the counter never goes below zero. When an order
    falls through: count up by one, and forget the buyer.

    Cures   the negative counter, and one person who buys twice.
    Breaks  a message that comes twice gives its unit back twice: more people are accepted than there are units, and the
            guard in SQL sends them away after they were told that they have one. A process that dies before it counts
            up gives back none. Nothing says which orders were given back.
    """

    name = "give-back-script"
    summary = "Lua check; an order fell through: counter + 1, buyer forgotten, sometimes told twice"

    async def open(self, role: Role) -> None:
        self._eligible = self.redis.register_script(script("eligible_list"))
        self._told = 0

    async def buy(self, buyer: int) -> int | None:
        order = int(await self._eligible(keys=[STOCK, BUYERS, COUNTER, QUEUE], args=[buyer]))
        return order if order > 0 else None

    async def give_back(self, buyer: int) -> None:
        self._told += 1
        for _ in range(2 if self._told % COMES_TWICE_EVERY == 0 else 1):
            await self.redis.incr(STOCK)
            await self.redis.srem(BUYERS, buyer)
