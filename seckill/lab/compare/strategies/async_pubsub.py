from seckill.lab.compare.eligibility_check import Queueing
from seckill.lab.compare.scripts import QUEUE
from seckill.lab.compare.strategy import Role


class AsyncPubsub(Queueing):
    """Publish/subscribe in Redis as the queue.

    Cures   nothing that the list does not, but several consumers can listen, each to everything.
    Breaks  all that is on its way: nothing is stored. Whatever is published while no consumer listens, or waits in the
            connection of a consumer that dies, is gone.
    """

    name = "async-pubsub"
    summary = "Lua check and PUBLISH; SUBSCRIBE, write"
    roles = ("shop", "shop", "consumer")
    dies = "consumer"
    eligible = "eligible_pubsub"

    async def open(self, role: Role) -> None:
        await super().open(role)
        if role == "consumer":  # before the first order is published, or it would be missed
            self._channel = self.redis.pubsub(ignore_subscribe_messages=True)
            await self._channel.subscribe(QUEUE)

    async def consume(self) -> None:
        while True:
            message = await self._channel.get_message(timeout=1)
            if message is not None:
                await self.write(message["data"])
