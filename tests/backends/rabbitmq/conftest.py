"""RabbitMQ in front of the lane streams, as wiring puts it together."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from seckill.backends.rabbitmq.connections import Link
from seckill.backends.rabbitmq.courier import RabbitCourier
from seckill.backends.rabbitmq.delays import RabbitDelays
from seckill.backends.rabbitmq.topology import Topology
from seckill.backends.rabbitmq.transport import RabbitTransport
from seckill.backends.redis.gate import RedisGate, connect
from seckill.backends.redis.relay_source import StreamRelaySource
from seckill.domain.admission import Claim
from seckill.engine.orders.broker_relay import Relay
from seckill.ports.transport import Delivery
from tests.fixtures.rabbitmq import RabbitServer
from tests.making import make_round
from tests.patience import PATIENCE_S

LANES = [3, 4]
RETRY_DELAYS_S = (0.2, 0.4)


@pytest.fixture
async def gate(redis_url: str) -> AsyncIterator[RedisGate]:
    gate = RedisGate(redis_url, timeout_s=PATIENCE_S, backlog_max=10**6)
    round_ = make_round(total=10_000)
    opening = await gate.open_round(round_)
    round_ = replace(round_, opened_ms=opening.opened_ms)
    await gate.update_round(round_)
    yield gate
    await gate.close()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Any]:
    client = connect(redis_url)
    yield client
    await client.aclose()


async def admit(gate: RedisGate, count: int, prefix: str = "u") -> list[Any]:
    reply = await gate.admit(make_round().ref, [Claim(f"{prefix}{i}", 1, "k") for i in range(count)])
    return [answer.holdings[0].number for answer in reply.answers]


class Alarms:
    def __init__(self) -> None:
        self.raised: list[str] = []

    async def raise_(self, what: str, facts: object, *, lasting: bool = False) -> None:
        self.raised.append(what)


class Lanes:
    """All that the relay asks of the ledger."""

    async def lanes_in_use(self) -> set[int]:
        return set(LANES)


@dataclass
class Post:
    """A broker with everything that seckill has there, for one test."""

    server: RabbitServer
    redis_url: str
    topology: Topology
    link: Link
    source: StreamRelaySource
    courier: RabbitCourier
    delays: RabbitDelays
    transports: list[RabbitTransport]
    alarms: Alarms

    def relay(self, claim_idle_s: float = 0.0, lost_after_s: float = 3600.0) -> Relay:
        """Its clock stands still, so that it begins again once at most."""
        ledger: Any = Lanes()
        alarms: Any = self.alarms
        return Relay(
            self.source,
            self.courier,
            ledger,
            alarms,
            lanes=LANES,
            claim_idle_s=claim_idle_s,
            lost_after_s=lost_after_s,
            monotonic=lambda: 0.0,
        )

    def transport(self) -> RabbitTransport:
        made = RabbitTransport(self.server.url(), StreamRelaySource(self.redis_url), self.topology)
        self.transports.append(made)
        return made

    async def ready(self, queue: str) -> int | None:
        return await self.topology.ready(self.link, queue)


async def read(transport: RabbitTransport, count: int) -> list[Delivery]:
    """Reads that many deliveries, however they are split, and never more at once than asked for."""
    found: list[Delivery] = []
    while len(found) < count:
        portion = await transport.read(count - len(found), 20)
        assert portion, f"only {len(found)} of {count} came"
        found += portion
    return found


def numbers_of(deliveries: Sequence[Delivery]) -> list[Any]:
    return sorted(delivery.admission.number for delivery in deliveries if delivery.admission)


@pytest.fixture
async def post(rabbit: RabbitServer, redis_url: str) -> AsyncIterator[Post]:
    async with _open_post(rabbit, redis_url) as made:
        yield made


@pytest.fixture
async def mortal_post(mortal_rabbit: RabbitServer, redis_url: str) -> AsyncIterator[Post]:
    async with _open_post(mortal_rabbit, redis_url) as made:
        yield made


@asynccontextmanager
async def _open_post(rabbit: RabbitServer, redis_url: str) -> AsyncIterator[Post]:
    topology = Topology(secrets.token_hex(8), RETRY_DELAYS_S)
    url = rabbit.url()
    link = Link(url, "test")
    await topology.declare(link)
    made = Post(
        rabbit,
        redis_url,
        topology,
        link,
        StreamRelaySource(redis_url),
        RabbitCourier(url, topology),
        RabbitDelays(url, topology),
        [],
        Alarms(),
    )
    yield made
    for transport in made.transports:
        await transport.close()
    await made.source.close()
    await made.courier.close()
    await made.delays.close()
    channel = await link.channel()
    for queue in (topology.orders, topology.due, topology.dead, *map(topology.retry, RETRY_DELAYS_S)):
        await channel.queue_delete(queue)
    for exchange in (topology.results, topology.versions):
        await channel.exchange_delete(exchange)
    await link.close()
