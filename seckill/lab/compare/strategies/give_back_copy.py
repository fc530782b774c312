from seckill.lab.compare.release_schemes import GivingBack
from seckill.lab.compare.scripts import STOCK


class GiveBackCopy(GivingBack):
    """Scheme 3: copy the true stock from SQL.

    Cures   the forgotten units: when everything has come to rest, the counter is right.
    Breaks  while it has not, SQL still counts the units of all orders that wait in the queue. They are offered a second
            time, more people are accepted than there are units, and the guard in SQL sends them away after they were
            told that they have one. (Without that guard, they would be oversold.)
    """

    name = "give-back-copy"
    summary = "an order fell through: counter = stock in SQL"

    async def give_back(self, buyer: int) -> None:
        await self.redis.set(STOCK, await self.db.value("SELECT stock FROM sale"))
