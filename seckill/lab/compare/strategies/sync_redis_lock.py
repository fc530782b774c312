import secrets

from seckill.lab.compare.scripts import script
from seckill.lab.compare.strategy import Role, Strategy

LEASE_MS = 10_000


class SyncRedisLock(Strategy):
    """One order a person: a lock for each person in Redis, with a lease, released only by its holder.

    Cures   buying twice, on any number of processes.
    Breaks  when the lease ends before the commit (a long pause, a slow database), there are two holders; one that dies
            leaves a person locked out until the lease is over. And each press costs two calls to Redis and up to three
            statements: the database still carries the whole rush.
    """

    name = "sync-redis-lock"
    group = "sync"
    summary = "a lock for each person, in Redis"

    async def open(self, role: Role) -> None:
        self._unlock = self.redis.register_script(script("unlock"))

    async def buy(self, buyer: int) -> int | None:
        lock, holder = f"ladder:lock:{buyer}", secrets.token_hex(8)
        if not await self.redis.set(lock, holder, nx=True, px=LEASE_MS):
            return None  # another press of the same person is under way
        try:
            if await self.db.value("SELECT count(*) FROM orders WHERE buyer = :buyer", buyer=buyer):
                return None
            await self.pause()
            async with self.db.transaction() as transaction:
                if not await transaction.change("UPDATE sale SET stock = stock - 1 WHERE stock > 0"):
                    return None
                return await self.insert_order(transaction, buyer)
        finally:
            await self._unlock(keys=[lock], args=[holder])
