from importlib import import_module
from importlib.util import find_spec
from typing import Any

from seckill.compare.moments import Moments
from seckill.compare.queueing import Queueing
from seckill.compare.scripts import QUEUE
from seckill.compare.strategy import Role, Servers

aio_pika: Any = import_module("aio_pika") if find_spec("aio_pika") else None  # may be missing: the engine does without


class AsyncRabbit(Queueing):
    """Check in Redis, then publish to RabbitMQ: durable queue, confirmed publish, acknowledged after the commit.

    Cures   the consumer: whatever it had not acknowledged is delivered again.
    Breaks  the way into the queue: script and publish are two steps on two servers. A shop that dies between them has
            taken the unit and marked the buyer, and there is no order: the unit is sold to nobody, and who presses
            again is told to have one already.
    """

    name = "async-rabbit"
    summary = "Lua check, then publish; consume, write, ack"
    roles = ("shop", "shop", "consumer")
    dies = "shop"
    eligible = "eligible"

    def __init__(self, servers: Servers, moments: Moments) -> None:
        super().__init__(servers, moments)
        self._connection: Any = None

    @classmethod
    def missing(cls, servers: Servers) -> str | None:
        if aio_pika is None:
            return "the Python package aio-pika is not installed"
        return None if servers.broker_url else "there is no RabbitMQ; SECKILL_BROKER_URL would say where"

    async def prepare(self, stock: int) -> None:
        await super().prepare(stock)
        await self._connect()
        await self._queue.purge()

    async def open(self, role: Role) -> None:
        await super().open(role)
        await self._connect()

    async def _connect(self) -> None:
        if self._connection is not None:
            return
        self._connection = await aio_pika.connect(self.servers.broker_url)
        self._channel = await self._connection.channel(publisher_confirms=True)
        await self._channel.set_qos(prefetch_count=1)
        self._queue = await self._channel.declare_queue(QUEUE, durable=True)

    async def buy(self, buyer: int) -> int | None:
        order = await super().buy(buyer)
        if order is not None:
            await self.moments.reached()
            message = aio_pika.Message(f"{order} {buyer}".encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await self._channel.default_exchange.publish(message, routing_key=QUEUE)
        return order

    async def waiting(self) -> int:
        found = await self._channel.declare_queue(QUEUE, passive=True)
        return int(found.declaration_result.message_count)

    async def consume(self) -> None:
        async with self._queue.iterator() as messages:
            async for message in messages:
                await self.write(message.body.decode())
                await message.ack()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        await super().close()
