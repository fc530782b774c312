"""The common part of the schemes for giving a unit back."""

from abc import abstractmethod

from seckill.lab.compare.scripts import COUNTER, FALLEN, QUEUE, STOCK
from seckill.lab.compare.strategy import Strategy

# One order in this many falls through: the bank refuses, the address is wrong, the database says no.
FALLS_EVERY = 4


class GivingBack(Strategy):
    """A counter in Redis stands for the stock. Every press counts it down, even below zero; a buyer who finds it at
    zero or above is accepted. A consumer writes the orders, with the guard on the stock in SQL. When an order falls
    through, the counter has to be told that its unit is free again: the schemes differ in how.

    Only the scheme with the tutorials' script keeps one person from buying twice; the others are not about that.
    """

    group = "give-back"
    roles = ("shop", "shop", "consumer")
    dies = None
    returns = True

    async def prepare(self, stock: int) -> None:
        await super().prepare(stock)
        await self.redis.set(STOCK, stock)

    async def buy(self, buyer: int) -> int | None:
        if await self.redis.decr(STOCK) < 0:
            return None
        order = int(await self.redis.incr(COUNTER))
        await self.redis.lpush(QUEUE, f"{order} {buyer}")
        return order

    async def consume(self) -> None:
        taken = 0
        while True:
            popped = await self.redis.brpop([QUEUE], timeout=1)
            if popped is None:
                continue
            taken += 1
            order, buyer = map(int, popped[1].split())
            if taken % FALLS_EVERY == 0:
                await self.redis.sadd(FALLEN, order)
                await self.give_back(buyer)
            elif not await self.write_if_left(order, buyer):
                await self.give_back(buyer)  # SQL had no unit for an accepted buyer: one more failure

    @abstractmethod
    async def give_back(self, buyer: int) -> None:
        """Called when an order of this buyer fell through, so its unit is free."""

    async def waiting(self) -> int:
        return int(await self.redis.llen(QUEUE))

    async def fallen(self) -> set[int]:
        return {int(order) for order in await self.redis.smembers(FALLEN)}
