from seckill.lab.compare.strategy import Strategy


class SyncNaive(Strategy):
    """Look whether there is stock, then take a unit and write the order.

    Cures   nothing yet: this is how everyone begins, and alone on a laptop it works.
    Breaks  everyone who looked before the last unit was taken is sold one: oversold. Nor does anything keep one person
            from buying twice.

    The look stands before the transaction. Inside, it would be no better on PostgreSQL or MySQL, where a plain SELECT
    locks nothing; SQLite would refuse the later write ("database is locked") instead of overselling.
    """

    name = "sync-naive"
    group = "sync"
    summary = "look at the stock, then write"

    async def buy(self, buyer: int) -> int | None:
        if await self.db.value("SELECT stock FROM sale") <= 0:
            return None
        await self.pause()
        async with self.db.transaction() as transaction:
            await transaction.change("UPDATE sale SET stock = stock - 1")
            return await self.insert_order(transaction, buyer)
