from seckill.lab.compare.release_schemes import GivingBack
from seckill.lab.compare.scripts import STOCK


class GiveBackPlusOne(GivingBack):
    """Scheme 1: count up by one.

    Cures   it looks exact: one fell through, one comes back.
    Breaks  the crowd has counted far below zero by then, so one more is still below zero and no one can buy it:
            undersold. And when the message that an order failed comes twice, the unit comes back twice.
    """

    name = "give-back-plus-one"
    summary = "an order fell through: counter + 1"

    async def give_back(self, buyer: int) -> None:
        await self.redis.incr(STOCK)
