"""Chooses the adapters. The only module that imports them."""

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog

from seckill.audit import Auditor, open_auditor
from seckill.boundaries import watched
from seckill.broker_ports import Courier, Delays, Outbox
from seckill.errors import StartError
from seckill.gates.board import RedisBoard
from seckill.gates.memory import MemoryGate
from seckill.gates.memory_board import MemoryBoard
from seckill.gates.redis import RedisGate
from seckill.insight import Board, History
from seckill.ledgers import open_ledger
from seckill.ledgers.history import SqlHistory
from seckill.ledgers.migrating import pending
from seckill.memory_store import MemoryStore
from seckill.numbers import PublicIds
from seckill.payment_ports import PaymentProvider
from seckill.ports import Gate, Ledger, Transport
from seckill.providers import open_provider
from seckill.settings import Settings
from seckill.share_ports import ShareGate
from seckill.sharing import SharedGate
from seckill.transports.amqp import Link, check_broker
from seckill.transports.courier import RabbitCourier
from seckill.transports.delays import RabbitDelays
from seckill.transports.memory import MemoryTransport
from seckill.transports.outbox import StreamOutbox
from seckill.transports.rabbitmq import RabbitTransport
from seckill.transports.streams import StreamTransport
from seckill.transports.topology import Topology

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """What a broker needs and the streams alone do without."""

    outbox: Outbox
    courier: Courier
    delays: Delays


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    gate: Gate
    transport: Transport
    ledger: Ledger
    provider: PaymentProvider
    broker: Broker | None
    auditor: Auditor | None  # None: what is in the memory of one process cannot be read from outside
    sale_ids: PublicIds
    order_ids: PublicIds
    board: Board
    history: History


def new_memory() -> MemoryStore:
    """What `memory://` stands for: everybody who is to see the same rounds has to be given the same one."""
    return MemoryStore(lambda: time.time_ns() // 1_000_000)


def open_gate(settings: Settings, store: MemoryStore | None = None) -> ShareGate:
    if store is not None:
        return MemoryGate(store, backlog_max=settings.backlog_max)
    return RedisGate(
        settings.redis_url,
        timeout_s=settings.gate_timeout_s,
        backlog_max=settings.backlog_max,
        replica_acks=settings.replicas_to_wait_for,
    )


@asynccontextmanager
async def open_engine(
    settings: Settings, memory: MemoryStore | None = None, *, role: str | None = None
) -> AsyncIterator[Engine]:
    """Connects, and refuses at once what could not keep the promises. `role` is who is going to use it; it names the
    failpoints."""
    provider = open_provider(settings)
    async with AsyncExitStack() as stack:
        store = (memory or new_memory()) if settings.in_memory else None
        gate = SharedGate(open_gate(settings, store))
        stack.push_async_callback(gate.close)
        ledger = open_ledger(settings.database_url)
        stack.push_async_callback(ledger.close)
        board: Board = RedisBoard(settings.redis_url) if store is None else MemoryBoard(store)
        stack.push_async_callback(board.close)
        history = SqlHistory(ledger.database)
        stack.push_async_callback(history.close)
        for advice in await gate.check(settings.durability):
            log.warning("the gate could be safer", advice=advice)
        if await pending(settings.database_url):
            raise StartError("The database's schema is behind this version: run `seckill migrate` first.")
        key = await ledger.id_key()
        await gate.bind(fingerprint(key))
        transport, broker = await _open_transport(settings, store, fingerprint(key), role, stack)
        auditor = None if store else await stack.enter_async_context(open_auditor(settings))
        yield Engine(
            gate=watched(gate, role, "gate"),
            transport=watched(transport, role, "transport"),
            ledger=watched(ledger, role, "ledger"),
            provider=watched(provider, role, "provider"),
            broker=broker,
            auditor=auditor,
            sale_ids=PublicIds(key, "sale"),
            order_ids=PublicIds(key, "order"),
            board=watched(board, role, "board"),
            history=watched(history, role, "history"),
        )


async def _open_transport(
    settings: Settings, store: MemoryStore | None, ledger: str, role: str | None, stack: AsyncExitStack
) -> tuple[Transport, Broker | None]:
    if store is not None:
        return MemoryTransport(store), None
    if not settings.broker_url:
        streams = StreamTransport(settings.redis_url)
        stack.push_async_callback(streams.close)
        return streams, None
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


def fingerprint(key: bytes) -> str:
    """Tells one ledger from another."""
    return hashlib.blake2b(key, digest_size=16).hexdigest()
