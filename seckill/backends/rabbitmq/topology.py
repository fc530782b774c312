"""What seckill has in RabbitMQ. No other module spells a name or declares anything.

With P for `seckill.` and eight letters of the ledger's own key (so that two deployments on one vhost cannot take each
other's orders):

    P.orders        quorum queue     admissions on their way to workers: one queue for all lanes
    P.retry.5s      quorum queues    one for each of SECKILL_RETRY_DELAYS_S: entries that were set aside; after its time
                                     each goes on to P.due
    P.expiry.900s   classic queues   one for each time to pay that a sale has; after it, a reminder goes on to P.due.
                                     They vanish when no sale uses them any more
    P.due           quorum queue     what is due: it wakes the keepers, which ask the ledger
    P.dead          quorum queue     entries that were given up, for people to look at; the newest hundred thousand
    P.results       topic exchange   states of orders: order.success, order.fail and order.<state>
    P.versions      fanout exchange  rounds whose units came back
    (exclusive)     classic queues   one for each API node at each of the two exchanges

Each delay has its own queue: in a queue with mixed times, a short one waits behind a long one. Everything is durable
but the nodes' own queues, and declaring it is harmless to repeat.
"""

from collections.abc import Sequence
from typing import Any

import aiormq
from aiormq.abc import AbstractChannel

from seckill.backends.rabbitmq.connections import CALL_S_MAX, Link, translated
from seckill.errors import StartError

# RabbitMQ 4 gives up a message after 20 deliveries unless told otherwise. Whether an entry is given up is the ledger's
# decision.
DELIVERIES_MAX = 1_000_000
DEAD_MAX = 100_000
DUE_MAX = 10_000
# A node that is this far behind does better to look at the ledger.
NODE_QUEUE_MAX = 10_000
# The broker deletes an expiry queue that was not used for its delay plus this long.
UNUSED_S = 3600.0

QUORUM: dict[str, Any] = {"x-queue-type": "quorum"}


class Topology:
    def __init__(self, ledger: str, retry_delays_s: Sequence[float]) -> None:
        prefix = f"seckill.{ledger[:8]}"
        self.prefix = prefix
        self.orders = f"{prefix}.orders"
        self.due = f"{prefix}.due"
        self.dead = f"{prefix}.dead"
        self.results = f"{prefix}.results"
        self.versions = f"{prefix}.versions"
        self._retry_delays_s = tuple(retry_delays_s)

    def retry(self, delay_s: float) -> str:
        return f"{self.prefix}.retry.{delay_s:g}s"

    def expiry(self, delay_s: float) -> str:
        return f"{self.prefix}.expiry.{delay_s:g}s"

    async def declare(self, link: Link) -> bool:
        """Returns True if the queue of orders did not exist: then everything that it ever held is gone."""
        is_new = not await self._exists(link, self.orders)
        channel = await link.channel()
        try:
            async with translated():
                await self._declare(channel)
        finally:
            await close(channel)
        return is_new

    async def _exists(self, link: Link, queue: str) -> bool:
        return await self.ready(link, queue) is not None

    async def ready(self, link: Link, queue: str) -> int | None:
        """Returns how many messages of a queue no consumer has taken yet, or None if there is no such queue."""
        channel = await link.channel()
        try:
            async with translated():
                return (await channel.queue_declare(queue, passive=True, timeout=CALL_S_MAX)).message_count or 0
        except Exception as error:
            if isinstance(error.__cause__, aiormq.ChannelNotFoundEntity):
                return None
            raise
        finally:
            await close(channel)

    async def _declare(self, channel: AbstractChannel) -> None:
        await channel.queue_declare(self.orders, durable=True, arguments=QUORUM | {"x-delivery-limit": DELIVERIES_MAX})
        await self._declare_delays(channel)
        await self._declare_exchanges(channel)

    async def declare_delays(self, link: Link) -> None:
        channel = await link.channel()
        try:
            async with translated():
                await self._declare_delays(channel)
        finally:
            await close(channel)

    async def _declare_delays(self, channel: AbstractChannel) -> None:
        await channel.queue_declare(self.due, durable=True, arguments=QUORUM | {"x-max-length": DUE_MAX})
        await channel.queue_declare(self.dead, durable=True, arguments=QUORUM | {"x-max-length": DEAD_MAX})
        for delay_s in self._retry_delays_s:
            # At least once: the broker keeps the message until P.due has it.
            careful = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
            arguments = QUORUM | careful | self._delayed(delay_s)
            await channel.queue_declare(self.retry(delay_s), durable=True, arguments=arguments)

    async def _declare_exchanges(self, channel: AbstractChannel) -> None:
        await channel.exchange_declare(self.results, exchange_type="topic", durable=True)
        await channel.exchange_declare(self.versions, exchange_type="fanout", durable=True)

    async def announcing_channel(self, link: Link) -> AbstractChannel:
        """Opens a channel for processes that announce or listen. They do not declare the queue of orders, so that its
        loss is noticed by processes that can do something about it."""
        channel = await link.channel()
        async with translated():
            await self._declare_exchanges(channel)
        return channel

    async def declare_expiry(self, channel: AbstractChannel, delay_s: float) -> str:
        name = self.expiry(delay_s)
        arguments = self._delayed(delay_s) | {"x-expires": int((delay_s + UNUSED_S) * 1000), "x-max-length": DUE_MAX}
        await channel.queue_declare(name, durable=True, arguments=arguments)
        return name

    def _delayed(self, delay_s: float) -> dict[str, Any]:
        return {
            "x-message-ttl": int(delay_s * 1000),
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.due,
        }

    async def declare_own(self, channel: AbstractChannel, exchange: str) -> str:
        """Declares a queue at the exchange for this connection alone. It disappears with the connection."""
        async with translated():
            declared = await channel.queue_declare("", exclusive=True, arguments={"x-max-length": NODE_QUEUE_MAX})
            name = str(declared.queue)
            await channel.queue_bind(name, exchange, routing_key="#")
        return name

    async def check(self, link: Link) -> None:
        """Raises StartError if the user may not declare what is needed."""
        try:
            await self.declare(link)
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, aiormq.ChannelAccessRefused):
                raise StartError(
                    f"RabbitMQ's user may not do what seckill needs ({cause.args[-1]}): give it the rights to "
                    r"configure, write and read ^(seckill|amq)\..* in this vhost."
                ) from error
            if isinstance(cause, aiormq.ChannelPreconditionFailed):
                raise StartError(
                    f"RabbitMQ has a queue of ours with other properties ({cause.args[-1]}): delete it while no "
                    "worker runs; its orders are still in the streams."
                ) from error
            raise


async def close(channel: AbstractChannel) -> None:
    """Closes a channel, which the broker may already have closed."""
    if not channel.is_closed:
        async with translated():
            await channel.close()
