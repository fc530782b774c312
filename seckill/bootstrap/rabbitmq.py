"""Puts together the parts that are needed with a broker."""

from contextlib import AsyncExitStack

import structlog

from seckill.backends.rabbitmq.connections import Link, check_broker
from seckill.backends.rabbitmq.courier import RabbitCourier
from seckill.backends.rabbitmq.delays import RabbitDelays
from seckill.backends.rabbitmq.topology import Topology
from seckill.backends.rabbitmq.transport import RabbitTransport
from seckill.backends.redis.relay_source import StreamRelaySource
from seckill.bootstrap.boundary_failpoints import watched
from seckill.ports.broker import Broker
from seckill.ports.transport import Transport
from seckill.settings import Settings

log = structlog.get_logger()


async def open_rabbitmq(
    settings: Settings, ledger: str, role: str | None, stack: AsyncExitStack
) -> tuple[Transport, Broker]:
    topology = Topology(ledger, settings.retry_delays_s)
    if await open_broker(settings.broker_url, topology) is None:
        log.warning("RabbitMQ does not answer; orders wait in the streams until it does")
    source, streams = (
        StreamRelaySource(settings.redis_url, replica_acks=settings.replicas_to_wait_for) for _ in range(2)
    )
    transport = RabbitTransport(settings.broker_url, streams, topology)
    courier = RabbitCourier(settings.broker_url, topology)
    delays = RabbitDelays(settings.broker_url, topology)
    for part in (source, transport, courier, delays):
        stack.push_async_callback(part.close)
    relay = role and "relay"
    return transport, Broker(
        source=watched(source, relay, "source"),
        courier=watched(courier, relay, "courier"),
        delays=watched(delays, role, "delays"),
    )


async def open_broker(url: str, topology: Topology) -> str | None:
    """Returns the broker's version, or None if it does not answer now. Raises StartError if it is unfit."""
    version = await check_broker(url)
    if version is None:
        return None
    link = Link(url, "check")
    try:
        await topology.check(link)
    finally:
        await link.close()
    return version
