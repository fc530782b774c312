"""Chooses the adapters. The only module that imports them."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from seckill.errors import StartError
from seckill.gates.board import RedisBoard
from seckill.gates.redis import RedisGate
from seckill.insight import Board, History
from seckill.ledgers import open_ledger
from seckill.ledgers.history import SqlHistory
from seckill.ledgers.migrating import pending
from seckill.numbers import PublicIds
from seckill.payment_ports import PaymentProvider
from seckill.ports import Gate, Ledger, Transport
from seckill.providers import open_provider
from seckill.settings import Settings
from seckill.transports.streams import StreamTransport


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    gate: Gate
    transport: Transport
    ledger: Ledger
    provider: PaymentProvider
    sale_ids: PublicIds
    order_ids: PublicIds
    board: Board
    history: History


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Connects, and refuses at once what could not keep the promises."""
    if settings.broker_url:
        raise StartError(
            "SECKILL_BROKER_URL is set, but orders travel by the lane streams only so far: leave it empty."
        )
    provider = open_provider(settings)
    gate = RedisGate(settings.redis_url, timeout_s=settings.gate_timeout_s, backlog_max=settings.backlog_max)
    transport = StreamTransport(settings.redis_url)
    ledger = open_ledger(settings.database_url)
    board = RedisBoard(settings.redis_url)
    history = SqlHistory(ledger.database)
    try:
        await gate.check(settings.durability)
        if await pending(settings.database_url):
            raise StartError("The database's schema is behind this version: run `seckill migrate` first.")
        key = await ledger.id_key()
        await gate.bind(hashlib.blake2b(key, digest_size=16).hexdigest())
        yield Engine(
            gate=gate,
            transport=transport,
            ledger=ledger,
            provider=provider,
            sale_ids=PublicIds(key, "sale"),
            order_ids=PublicIds(key, "order"),
            board=board,
            history=history,
        )
    finally:
        await history.close()
        await ledger.close()
        await board.close()
        await transport.close()
        await gate.close()
