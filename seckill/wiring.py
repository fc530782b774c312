"""Chooses the adapters. Only this and `broker_wiring` import them."""

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from seckill.boundaries import watched
from seckill.broker_ports import Broker
from seckill.errors import StartError
from seckill.gates.board import RedisBoard
from seckill.gates.memory import MemoryGate
from seckill.gates.memory_board import MemoryBoard
from seckill.gates.redis import RedisGate
from seckill.insight import Board, History
from seckill.ledgers import open_ledger
from seckill.ledgers.history import SqlHistory
from seckill.ledgers.schema import Schema, schema_of
from seckill.memory_store import MemoryStore
from seckill.payment_ports import PaymentProvider
from seckill.ports import Gate, Ledger, Transport
from seckill.providers import open_provider
from seckill.public_ids import PublicIds
from seckill.settings import Settings
from seckill.share_ports import ShareGate
from seckill.sharing import SharedGate
from seckill.transports.memory import MemoryTransport
from seckill.transports.streams import StreamTransport

if TYPE_CHECKING:
    from seckill.audit import Auditor

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    gate: Gate
    transport: Transport
    ledger: Ledger
    provider: PaymentProvider
    broker: Broker | None
    auditor: "Auditor | None"  # None: not asked for, or memory://, which cannot be read from outside of its process
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
    settings: Settings, memory: MemoryStore | None = None, *, role: str | None = None, audits: bool = True
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
        if await schema_of(settings.database_url) is Schema.BEHIND:
            raise StartError("The database's schema is behind this version: run `seckill migrate` first.")
        key = await ledger.id_key()
        await gate.bind(fingerprint(key))
        transport, broker = await _open_transport(settings, store, fingerprint(key), role, stack)
        auditor = await _open_auditor(settings, stack) if audits and store is None else None
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


async def _open_auditor(settings: Settings, stack: AsyncExitStack) -> "Auditor":
    from seckill.audit import open_auditor  # noqa: PLC0415 (half of the roles do without)

    return await stack.enter_async_context(open_auditor(settings))


async def _open_transport(
    settings: Settings, store: MemoryStore | None, ledger: str, role: str | None, stack: AsyncExitStack
) -> tuple[Transport, Broker | None]:
    if store is not None:
        return MemoryTransport(store), None
    if not settings.broker_url:
        streams = StreamTransport(settings.redis_url)
        stack.push_async_callback(streams.close)
        return streams, None
    from seckill.broker_wiring import open_transport  # noqa: PLC0415 (most do without a broker)

    return await open_transport(settings, ledger, role, stack)


def fingerprint(key: bytes) -> str:
    """Tells one ledger from another."""
    return hashlib.blake2b(key, digest_size=16).hexdigest()
