"""The part of `wiring` that is loaded when there is a broker."""

from contextlib import AsyncExitStack

import structlog

from seckill.boundaries import watched
from seckill.broker_ports import Broker
from seckill.ports import Transport
from seckill.settings import Settings
from seckill.transports.amqp import Link, check_broker
from seckill.transports.courier import RabbitCourier
from seckill.transports.delays import RabbitDelays
from seckill.transports.outbox import StreamOutbox
from seckill.transports.rabbitmq import RabbitTransport
from seckill.transports.topology import Topology

log = structlog.get_logger()


async def open_transport(
    settings: Settings, ledger: str, role: str | None, stack: AsyncExitStack
) -> tuple[Transport, Broker]:
    topology = Topology(ledger, settings.retry_delays_s)
    if await open_broker(settings.broker_url, topology) is None:
        log.warning("RabbitMQ does not answer; orders wait in the streams until it does")
    outbox = StreamOutbox(settings.redis_url)
    transport = RabbitTransport(settings.broker_url, StreamOutbox(settings.redis_url), topology)
    courier = RabbitCourier(settings.broker_url, topology)
    delays = RabbitDelays(settings.broker_url, topology)
    for part in (outbox, transport, courier, delays):
        stack.push_async_callback(part.close)
    relay = role and "relay"
    return transport, Broker(
        outbox=watched(outbox, relay, "outbox"),
        courier=watched(courier, relay, "courier"),
        delays=watched(delays, role, "delays"),
    )


async def open_broker(url: str, topology: Topology) -> str | None:
    """Its version; None if it does not answer now. Raises StartError if it would never do."""
    version = await check_broker(url)
    if version is None:
        return None
    link = Link(url, "check")
    try:
        await topology.check(link)
    finally:
        await link.close()
    return version
