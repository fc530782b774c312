from seckill.lab.compare.release_schemes import GivingBack
from seckill.lab.compare.scripts import STOCK


class GiveBackSetOne(GivingBack):
    """Scheme 2: set the counter to one.

    Cures   the negative counter: a buyer can buy again.
    Breaks  two that fall through before a buyer buys set it to one twice, and one unit is forgotten; while more than
            one is left, all others are: undersold.
    """

    name = "give-back-set-one"
    summary = "an order fell through: counter = 1"

    async def give_back(self, buyer: int) -> None:
        await self.redis.set(STOCK, 1)
