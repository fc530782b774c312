"""Chooses the adapters. Only this, `transport.py`, `rabbitmq.py` and `tracing.py` import them."""

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from seckill.backends.memory.board import MemoryBoard
from seckill.backends.memory.gate import MemoryGate
from seckill.backends.memory.store import MemoryStore
from seckill.backends.payment.provider_choice import open_provider
from seckill.backends.pictures.pillow import make_picture
from seckill.backends.redis.board import RedisBoard
from seckill.backends.redis.gate import RedisGate
from seckill.backends.sql import open_history, open_ledger
from seckill.backends.sql.schema import must_be_current
from seckill.backends.webhook.sender import HttpSender
from seckill.bootstrap.boundary_failpoints import watched
from seckill.bootstrap.tracing import open_tracer
from seckill.bootstrap.transport import open_transport
from seckill.domain.public_id import PublicIds
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.errors import StartError
from seckill.ports.board import Board
from seckill.ports.broker import Broker
from seckill.ports.gate import Gate
from seckill.ports.history import History
from seckill.ports.ledger import Ledger
from seckill.ports.payment import PaymentProvider
from seckill.ports.pictures import PictureMaker
from seckill.ports.share_gate import ShareGate
from seckill.ports.tracer import Tracer
from seckill.ports.transport import Transport
from seckill.ports.webhook import WebhookSender
from seckill.settings import Settings

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
    auditor: "Auditor | None"  # None: not asked for, or memory://, which cannot be read from outside its process
    sale_ids: PublicIds
    item_ids: PublicIds
    order_ids: PublicIds
    entry_ids: PublicIds
    door_key: bytes  # signs passes, the same for every node that shares the ledger
    board: Board
    history: History
    webhook_sender: WebhookSender
    make_picture: PictureMaker
    tracer: Tracer | None = None  # None: nothing is traced


def new_memory() -> MemoryStore:
    """Makes the store behind `memory://`. All roles that should see the same rounds must be given the same one."""
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
    settings: Settings,
    memory: MemoryStore | None = None,
    *,
    role: str | None = None,
    audits: bool = True,
    provider: PaymentProvider | None = None,
) -> AsyncIterator[Engine]:
    """Connects, and at once refuses servers that could not keep the promises. `role`: the role that will use the
    engine; its name is part of the failpoints. `provider`: used instead of the one in the settings."""
    _require_addresses(settings)
    provider = provider or open_provider(settings)
    async with AsyncExitStack() as stack:
        if (close := getattr(provider, "close", None)) is not None:
            stack.push_async_callback(close)
        store = (memory or new_memory()) if settings.in_memory else None
        gate = SharedGate(open_gate(settings, store))
        stack.push_async_callback(gate.close)
        ledger = open_ledger(settings.database_url)
        stack.push_async_callback(ledger.close)
        board: Board = RedisBoard(settings.redis_url) if store is None else MemoryBoard(store)
        stack.push_async_callback(board.close)
        history = open_history(ledger.database)
        stack.push_async_callback(history.close)
        for advice in await gate.check(settings.durability):
            log.warning("the gate could be safer", advice=advice)
        await must_be_current(ledger.database)
        key = await ledger.id_key()
        await gate.bind(fingerprint(key))
        transport, broker = await open_transport(settings, store, ledger, fingerprint(key), role, stack)
        auditor = await _open_auditor(settings, stack) if audits and store is None else None
        tracer = open_tracer(role, stack)
        yield Engine(
            gate=watched(gate, role, "gate"),
            transport=watched(transport, role, "transport"),
            ledger=watched(ledger, role, "ledger"),
            provider=watched(provider, role, "provider"),
            broker=broker,
            auditor=auditor,
            sale_ids=PublicIds(key, "sale"),
            item_ids=PublicIds(key, "item"),
            order_ids=PublicIds(key, "order"),
            entry_ids=PublicIds(key, "entry"),
            door_key=hashlib.blake2b(key=key, person=b"door", digest_size=32).digest(),
            board=watched(board, role, "board"),
            history=watched(history, role, "history"),
            webhook_sender=HttpSender(private=settings.webhook_private == "on"),
            make_picture=make_picture,
            tracer=tracer,
        )


def _require_addresses(settings: Settings) -> None:
    addresses = {"SECKILL_REDIS_URL": settings.redis_url, "SECKILL_DATABASE_URL": settings.database_url}
    if missing := [name for name, address in addresses.items() if not address]:
        raise StartError(f"Set {' and '.join(missing)}: there is no gate or ledger to connect to.")


async def _open_auditor(settings: Settings, stack: AsyncExitStack) -> "Auditor":
    from seckill.audit import open_auditor  # noqa: PLC0415 (half of the roles do without)

    return await stack.enter_async_context(open_auditor(settings))


def fingerprint(key: bytes) -> str:
    """Tells one ledger from another."""
    return hashlib.blake2b(key, digest_size=16).hexdigest()
