import asyncio
from typing import TYPE_CHECKING

from seckill.lab.compare.eligibility_check import Queueing
from seckill.lab.compare.moments import Moments
from seckill.lab.compare.scripts import QUEUE
from seckill.lab.compare.strategy import CompareServers, Role

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, DeliveredMessage


class AsyncRabbit(Queueing):
    """Check in Redis, then publish to RabbitMQ: durable queue, confirmed publish, acknowledged after the commit.

    Cures   the consumer: whatever it had not acknowledged is delivered again.
    Breaks  the way into the queue: script and publish are two steps on two servers. A shop that dies between them has
            taken the unit and marked the buyer, and there is no order: the unit is sold to no one, and a buyer who
            presses again is told they already have one.
    """

    name = "async-rabbit"
    summary = "Lua check, then publish; consume, write, ack"
    roles = ("shop", "shop", "consumer")
    dies = "shop"
    eligible = "eligible"

    def __init__(self, servers: CompareServers, moments: Moments) -> None:
        super().__init__(servers, moments)
        self._connected: AbstractChannel | None = None

    @classmethod
    def missing(cls, servers: CompareServers) -> str | None:
        return None if servers.broker_url else "there is no RabbitMQ; SECKILL_BROKER_URL would say where"

    async def prepare(self, stock: int) -> None:
        await super().prepare(stock)
        channel = await self._channel()
        await channel.queue_purge(QUEUE)

    async def open(self, role: Role) -> None:
        await super().open(role)
        await self._channel()

    async def _channel(self) -> "AbstractChannel":
        if self._connected is None:
            import aiormq  # noqa: PLC0415 (only needed for RabbitMQ)

            self._persistent = aiormq.spec.Basic.Properties(delivery_mode=2)
            connection = await aiormq.connect(self.servers.broker_url)
            self._connected = await connection.channel(publisher_confirms=True)
            await self._connected.queue_declare(QUEUE, durable=True)
        return self._connected

    async def buy(self, buyer: int) -> int | None:
        order = await super().buy(buyer)
        if order is not None:
            await self.moments.reached()
            channel = await self._channel()
            await channel.basic_publish(f"{order} {buyer}".encode(), routing_key=QUEUE, properties=self._persistent)
        return order

    async def waiting(self) -> int:
        channel = await self._channel()
        return (await channel.queue_declare(QUEUE, passive=True)).message_count or 0

    async def consume(self) -> None:
        delivered: asyncio.Queue[DeliveredMessage] = asyncio.Queue()
        channel = await self._channel()
        await channel.basic_qos(prefetch_count=1)
        await channel.basic_consume(QUEUE, delivered.put)
        while True:
            message = await delivered.get()
            await self.write(message.body.decode())
            assert message.delivery_tag is not None
            await channel.basic_ack(message.delivery_tag)

    async def close(self) -> None:
        if self._connected is not None:
            await self._connected.connection.close()
        await super().close()
