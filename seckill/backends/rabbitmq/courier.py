"""Publishes stream entries to RabbitMQ as persistent and mandatory messages. An entry counts as published only after
the broker's confirm."""

import asyncio
from collections.abc import Sequence

import structlog
from aiormq import DeliveryError, spec
from aiormq.abc import AbstractChannel

from seckill.backends.rabbitmq.connections import Link, translated
from seckill.backends.rabbitmq.topology import Topology
from seckill.backends.rabbitmq.transport import ENTRY, LANE, TRACE
from seckill.errors import TransportUnavailable
from seckill.ports.transport import Delivery

log = structlog.get_logger()

PERSISTENT = 2
# A broker that is short of memory or disk confirms nothing until it has recovered.
CONFIRM_S_MAX = 10.0


class RabbitCourier:
    def __init__(self, url: str, topology: Topology) -> None:
        self._link = Link(url, "relay")
        self._topology = topology
        self._channel: AbstractChannel | None = None

    async def post(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        try:
            channel = await self._open()
            async with translated(CONFIRM_S_MAX):
                answers = await asyncio.gather(*(self._publish(channel, delivery) for delivery in deliveries))
        except TransportUnavailable:
            # It is unknown what became of messages on a blocked or lost connection, so all of them are sent again.
            await self._drop()
            raise
        if not all(answers):
            await self._drop()  # the queue is missing or full: declare it again before the next try
        return [delivery for delivery, confirmed in zip(deliveries, answers, strict=True) if confirmed]

    async def _publish(self, channel: AbstractChannel, delivery: Delivery) -> bool:
        traced = {TRACE: delivery.admission.trace} if delivery.admission and delivery.admission.trace else {}
        properties = spec.Basic.Properties(
            delivery_mode=PERSISTENT,
            content_type="application/json",
            message_id=f"{delivery.lane}:{delivery.entry_id}",
            headers={LANE: delivery.lane, ENTRY: delivery.entry_id, **traced},
        )
        try:
            # Publishes straight to the queue: there is no binding that could be lost.
            await channel.basic_publish(
                delivery.payload,
                routing_key=self._topology.orders,
                properties=properties,
                mandatory=True,
            )
        except DeliveryError as error:
            log.debug("the broker did not take an entry", entry=delivery.entry_id, reason=str(error))
            return False
        return True

    async def _open(self) -> AbstractChannel:
        if self._channel is None or self._channel.is_closed:
            self._channel = await self._link.channel(confirms=True)
        return self._channel

    async def waiting(self) -> int | None:
        ready = await self._topology.ready(self._link, self._topology.orders)
        if ready is None:
            await self._topology.declare(self._link)
        return ready

    async def _drop(self) -> None:
        self._channel = None
        await self._link.close()

    async def close(self) -> None:
        await self._drop()
