"""RabbitMQ's delay queues. A message waits there unread, moves on when its time is over, and wakes the keepers."""

import time

import msgspec
import structlog
from aiormq import spec
from aiormq.abc import AbstractChannel

from seckill.backends.rabbitmq.connections import Inbox, Link, translated
from seckill.backends.rabbitmq.topology import Topology
from seckill.errors import TransportUnavailable
from seckill.ports.broker import Due

log = structlog.get_logger()

PERSISTENT = 2
# Reminders of the same delay are sent no more often than this, because more would say nothing new.
EXPIRY_EVERY_S = 1.0
BATCH_MAX = 1000
SEND_S_MAX = 2.0
QUIET_S = 5.0


class _Note(msgspec.Struct):
    """`due` is None for messages that need no reminder."""

    due: Due | None
    payload: str = ""
    reason: str = ""


class RabbitDelays:
    def __init__(self, url: str, topology: Topology) -> None:
        self._sending = Link(url, "reminders out")
        self._receiving = Link(url, "reminders in")
        self._topology = topology
        self._channel: AbstractChannel | None = None
        self._inbox: Inbox | None = None
        self._reminded_s: dict[float, float] = {}
        self._quiet_until_s = 0.0

    async def remind_of_expiry(self, after_s: float) -> None:
        now_s = time.monotonic()
        if now_s - self._reminded_s.get(after_s, -EXPIRY_EVERY_S) >= EXPIRY_EVERY_S:
            self._reminded_s[after_s] = now_s
            await self._send(self._topology.expiry(after_s), _Note(Due.EXPIRY), expiry_s=after_s)

    async def remind_of_retry(self, after_s: float, payload: str, reason: str) -> None:
        await self._send(self._topology.retry(after_s), _Note(Due.RETRY, payload, reason))

    async def give_up(self, payload: str, reason: str) -> None:
        await self._send(self._topology.dead, _Note(None, payload, reason))

    async def _send(self, queue: str, note: _Note, expiry_s: float | None = None) -> None:
        if time.monotonic() < self._quiet_until_s:
            return
        try:
            async with translated(SEND_S_MAX):
                if self._channel is None or self._channel.is_closed:
                    await self._topology.declare_delays(self._sending)
                    self._channel = await self._sending.channel(confirms=True)
                if expiry_s is not None:  # declared each time, which also keeps it from vanishing
                    await self._topology.declare_expiry(self._channel, expiry_s)
                properties = spec.Basic.Properties(delivery_mode=PERSISTENT, content_type="application/json")
                body = msgspec.json.encode(note)
                await self._channel.basic_publish(body, routing_key=queue, properties=properties, mandatory=True)
        except TransportUnavailable as error:
            self._quiet_until_s = time.monotonic() + QUIET_S
            self._channel = None
            log.warning("no reminder sent; the sweep finds it as well", queue=queue, reason=str(error))

    async def due(self, wait_s: float) -> set[Due]:
        """Raises TransportUnavailable while the broker is away."""
        if self._inbox is None:
            await self._topology.declare_delays(self._receiving)
            channel = await self._receiving.channel()
            # Takes messages without acknowledgement: if one is lost with its keeper, it was only a reminder.
            self._inbox = await Inbox.open(channel, self._topology.due, no_ack=True)
        try:
            messages = await self._inbox.get(BATCH_MAX, wait_s)
        except TransportUnavailable:
            self._inbox = None
            raise
        return {due for message in messages if (due := _read(message.body)) is not None}

    async def close(self) -> None:
        await self._sending.close()
        await self._receiving.close()


def _read(body: bytes) -> Due | None:
    """Returns None for messages that another program put into the queue."""
    try:
        return msgspec.json.decode(body, type=_Note).due
    except msgspec.MsgspecError:
        return None
