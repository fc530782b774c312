from seckill.lab.compare.strategy import Strategy


class SyncCas(Strategy):
    """Read the stock and its version, then write only if the version is still the same: the optimistic lock.

    Cures   overselling, without holding a lock.
    Breaks  selling: of all who read the same version one wins, and the others are sent away although there is stock.
            The rush is over and units are left: undersold. One person can still buy twice.
    """

    name = "sync-cas"
    group = "sync"
    summary = "write if the version is unchanged"
    dies_at = 1  # so few win that there may be no third

    async def buy(self, buyer: int) -> int | None:
        sale = await self.db.row("SELECT stock, version FROM sale")
        if sale.stock <= 0:
            return None
        await self.pause()
        async with self.db.transaction() as transaction:
            taken = await transaction.change(
                "UPDATE sale SET stock = stock - 1, version = version + 1 WHERE version = :version",
                version=sale.version,
            )
            return await self.insert_order(transaction, buyer) if taken else None
