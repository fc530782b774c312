from seckill.lab.compare.strategy import Strategy


class SyncRowLock(Strategy):
    """Lock the row of the stock, look, then write: the pessimistic lock.

    Cures   overselling: a buyer who looks holds the row until the commit, so no two look at the same time.
    Breaks  speed: all buyers of a sale stand in one line, and the line holds a database connection for each of them.
            One person can still buy twice.

    SQLite has no row locks; there the transaction takes the whole database from its first statement on.
    """

    name = "sync-row-lock"
    group = "sync"
    summary = "SELECT … FOR UPDATE, then write"

    async def buy(self, buyer: int) -> int | None:
        async with self.db.transaction() as transaction:
            if await transaction.value(f"SELECT stock FROM sale {self.db.for_update}") <= 0:  # noqa: S608
                return None
            await self.pause()
            await transaction.change("UPDATE sale SET stock = stock - 1")
            return await self.insert_order(transaction, buyer)
