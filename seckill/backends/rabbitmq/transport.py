"""RabbitMQ as a transport. It delivers copies of stream entries: an order is settled when its entry is gone from the
stream, and then its copies are acknowledged."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from aiormq import spec
from aiormq.abc import AbstractChannel, DeliveredMessage

from seckill.backends.rabbitmq.connections import Inbox, Link, translated
from seckill.backends.rabbitmq.topology import Topology, close
from seckill.domain.order import States
from seckill.errors import TransportUnavailable
from seckill.ports.broker import LaneStreams
from seckill.ports.queue_entry import read_entry
from seckill.ports.transport import Delivery, LaneFlow, Queue, Settled

T = TypeVar("T")

# At least one batch of the worker's, or the worker would wait for ever for the rest of it. Two, so that one travels
# while the other is written.
PREFETCH = 1000
# Announcements are best effort: a broker that does not accept one within this time gets none for a while.
ANNOUNCE_S_MAX = 1.0
QUIET_S = 5.0

LANE, ENTRY = "lane", "entry"
TRACE = "traceparent"  # the header of a traced order, as in W3C's Trace Context for AMQP
_ENTRY_ID = re.compile(r"[0-9]+-[0-9]+")
_SUCCESS = {"unpaid", "paid"}

Key = tuple[int, str]


@dataclass(slots=True)
class _Held:
    """An entry that was delivered but is not settled: all its copies, and the time of the first."""

    delivery: Delivery
    since_s: float
    tags: list[int] = field(default_factory=list)


def to_delivery(message: DeliveredMessage) -> Delivery:
    """Never raises, because everything in the queue has to be dealt with, even if another program put it there."""
    headers: Mapping[str, Any] = message.header.properties.headers or {}
    lane, entry_id = headers.get(LANE), headers.get(ENTRY)
    if isinstance(lane, int) and isinstance(entry_id, str) and _ENTRY_ID.fullmatch(entry_id):
        return read_entry(lane, entry_id, message.body, str(headers.get(TRACE, "")).encode())
    named = blake2b(message.body, digest_size=8).hexdigest()  # a message that comes again gets the same name
    return Delivery(0, named, message.body, None, "the message does not say which entry of a stream it is")


class RabbitTransport:
    def __init__(self, url: str, streams: LaneStreams, topology: Topology) -> None:
        self._streams = streams
        self._topology = topology
        self._incoming = Link(url, "in")
        self._announcing = Link(url, "announcements")
        self._inbox: Inbox | None = None
        self._held: dict[Key, _Held] = {}
        self._announcer: AbstractChannel | None = None
        self._quiet_until_s = 0.0

    async def prepare(self, lanes: Sequence[int]) -> None:
        await self._streams.prepare(lanes)

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        inbox = await self._consume()
        try:
            messages = await inbox.get(count, wait_s)
        except TransportUnavailable:
            self._inbox = None
            raise
        found: dict[Key, Delivery] = {}
        for message in messages:
            delivery = to_delivery(message)
            key = (delivery.lane, delivery.entry_id)
            held = self._held.setdefault(key, _Held(delivery, time.monotonic()))
            held.tags.append(message.delivery.delivery_tag)  # type: ignore[arg-type, union-attr]
            found[key] = delivery
        return list(found.values())

    async def _consume(self) -> Inbox:
        if self._inbox is None:
            if await self._topology.declare(self._incoming):
                await self._streams.start_over()
            self._held.clear()  # their channel is gone, so all of them come again
            channel = await self._incoming.channel()
            async with translated():
                await channel.basic_qos(prefetch_count=PREFETCH)
            self._inbox = await Inbox.open(channel, self._topology.orders)
        return self._inbox

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        """Returns entries of this worker that it could not finish. The broker itself gives a dead worker's entries to
        others."""
        now_s = time.monotonic()
        idle = [held for held in self._held.values() if now_s - held.since_s > idle_s][:count]
        for held in idle:
            held.since_s = now_s
        return [held.delivery for held in idle]

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        settled = await self._streams.settle([d for d in deliveries if _ENTRY_ID.fullmatch(d.entry_id)])
        acknowledged = await self._acknowledge(deliveries)
        return Settled(acknowledged, settled.deleted)

    async def _acknowledge(self, deliveries: Sequence[Delivery]) -> int:
        """Deliveries of a lost channel cannot be acknowledged: they come again and are recognised."""
        held = [held for d in deliveries if (held := self._held.pop((d.lane, d.entry_id), None)) is not None]
        tags = sorted(tag for one in held for tag in one.tags)
        if not tags or self._inbox is None:
            return 0
        oldest = min((one.tags[0] for one in self._held.values()), default=tags[-1] + 1)
        channel = self._inbox.channel
        try:
            async with translated():
                if oldest > tags[-1]:
                    await channel.basic_ack(tags[-1], multiple=True)
                else:
                    for tag in tags:
                        await channel.basic_ack(tag)
        except TransportUnavailable:
            return 0
        return len(held)

    async def backlog(self, lanes: Collection[int]) -> int:
        """Counts the streams only: what the broker holds is still in them."""
        return await self._streams.backlog(lanes)

    async def flow(self, lanes: Collection[int]) -> dict[int, LaneFlow]:
        return await self._streams.flow(lanes)

    async def queues(self, lanes: Collection[int]) -> dict[int, Queue]:
        return await self._streams.queues(lanes)

    def entries(self, lanes: Collection[int]) -> AsyncIterator[Sequence[Delivery]]:
        return self._streams.entries(lanes)

    async def retire_consumers(self, idle_s: float) -> int:
        return await self._streams.retire_consumers(idle_s)

    async def publish_states(self, states: States) -> None:
        """Writes numbers as text, because other programs read them, too, and many languages use doubles."""
        by_key: dict[str, dict[str, str]] = {}
        for state, numbers in states.items():
            by_key.setdefault(routing_key(state), {}).update(dict.fromkeys(map(str, numbers), state))
        for key, portion in by_key.items():
            await self._announce(self._topology.results, key, portion)

    async def publish_version(self, round_id: int, version: int) -> None:
        await self._announce(self._topology.versions, "", (round_id, version))

    async def _announce(self, exchange: str, key: str, message: object) -> None:
        if time.monotonic() < self._quiet_until_s:
            raise TransportUnavailable("RabbitMQ takes no announcements now.")
        try:
            async with asyncio.timeout(ANNOUNCE_S_MAX):
                if self._announcer is None or self._announcer.is_closed:
                    self._announcer = await self._topology.announcing_channel(self._announcing)
                async with translated():
                    body = msgspec.json.encode(message)
                    properties = spec.Basic.Properties(delivery_mode=1, content_type="application/json")
                    await self._announcer.basic_publish(body, exchange=exchange, routing_key=key, properties=properties)
        except (TimeoutError, TransportUnavailable) as error:
            self._quiet_until_s = time.monotonic() + QUIET_S
            self._announcer = None
            raise TransportUnavailable(f"RabbitMQ takes no announcements now ({error!r}).") from error

    async def state_changes(self) -> AsyncIterator[States]:
        async with aclosing(self._announced(self._topology.results, dict[str, str])) as announced:
            async for state_of in announced:
                states: dict[str, list[int]] = {}
                for number, state in state_of.items():
                    states.setdefault(state, []).append(int(number))
                yield states

    async def version_changes(self) -> AsyncIterator[tuple[int, int]]:
        async with aclosing(self._announced(self._topology.versions, tuple[int, int])) as announced:
            async for version in announced:
                yield version

    async def _announced(self, exchange: str, type_: type[T]) -> AsyncGenerator[T]:
        channel = await self._topology.announcing_channel(self._incoming)
        try:
            own = await self._topology.declare_own(channel, exchange)
            inbox = await Inbox.open(channel, own, no_ack=True)
            while True:
                for message in await inbox.get(PREFETCH, None):
                    yield msgspec.json.decode(message.body, type=type_)
        finally:
            await close(channel)

    async def close(self) -> None:
        await self._incoming.close()
        await self._announcing.close()
        await self._streams.close()


def routing_key(state: str) -> str:
    if state in _SUCCESS:
        return "order.success"
    return "order.fail" if state == "failed" else f"order.{state}"
