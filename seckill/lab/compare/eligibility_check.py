"""The part that all asynchronous steps of the ladder share: the check in Redis."""

from typing import ClassVar

from seckill.lab.compare.scripts import BUYERS, COUNTER, QUEUE, STOCK, script
from seckill.lab.compare.strategy import Role, Strategy


class Queueing(Strategy):
    """Stock and "bought already" are kept in Redis and checked there by one script; the order is written later."""

    group = "async"
    eligible: ClassVar[str]
    """The script: it may also put the order into the queue."""

    async def prepare(self, stock: int) -> None:
        await super().prepare(stock)
        await self.redis.set(STOCK, stock)

    async def open(self, role: Role) -> None:
        self._eligible = self.redis.register_script(script(self.eligible))

    async def buy(self, buyer: int) -> int | None:
        keys = [STOCK, BUYERS, COUNTER]
        if self.eligible != "eligible":
            keys.append(QUEUE)
        order = int(await self._eligible(keys=keys, args=[buyer]))
        return order if order > 0 else None

    async def write(self, entry: str) -> None:
        """One order, one transaction. A buyer who already has an order is skipped: the entry came twice."""
        order, buyer = map(int, entry.split())
        if not await self.db.value("SELECT count(*) FROM orders WHERE buyer = :buyer", buyer=buyer):
            await self.write_if_left(order, buyer)
