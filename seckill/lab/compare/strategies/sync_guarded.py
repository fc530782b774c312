from seckill.lab.compare.strategy import Strategy


class SyncGuarded(Strategy):
    """Take a unit with the condition in the statement itself: `stock > 0`.

    Cures   overselling and underselling: the database checks and takes in one step.
    Breaks  nothing for the stock. One person can still buy twice, and every press, also of the thousands who come too
            late, is a write to the same row.
    """

    name = "sync-guarded"
    group = "sync"
    summary = "UPDATE … WHERE stock > 0"

    async def buy(self, buyer: int) -> int | None:
        async with self.db.transaction() as transaction:
            if not await transaction.change("UPDATE sale SET stock = stock - 1 WHERE stock > 0"):
                return None
            return await self.insert_order(transaction, buyer)
