"""How many ids a second each strategy makes, one after the other, on this machine.

    make check && .venv/bin/python benchmarks/ids.py

The figures of docs/ids.md. Those that need a server ask a fresh, private one: Valkey (`strict`, over its unix socket)
and SQLite (one commit an id).
"""

import asyncio
import os
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import redis.asyncio

from seckill.domain.order_number import OrderNumber
from seckill.domain.public_id import PublicIds
from seckill.local.valkey import EmbeddedValkey

SECONDS = 2.0


def uuid7() -> uuid.UUID:
    """48 bits of milliseconds, then random ones (RFC 9562)."""
    value = int.from_bytes(os.urandom(10), "big") | (time.time_ns() // 1_000_000) << 80
    return uuid.UUID(int=value & ~(0xF << 76) & ~(3 << 62) | 7 << 76 | 2 << 62)


class Snowflake:
    """41 bits of milliseconds, 10 bits that every node must have for itself, 12 bits of a counter."""

    def __init__(self, node: int) -> None:
        self._node = node
        self._last_ms = self._counter = 0

    def next(self) -> int:
        now_ms = time.time_ns() // 1_000_000
        while now_ms < self._last_ms or (now_ms == self._last_ms and self._counter == 0xFFF):
            now_ms = time.time_ns() // 1_000_000  # the clock went back, or 4096 ids in one millisecond: wait
        self._counter = self._counter + 1 if now_ms == self._last_ms else 0
        self._last_ms = now_ms
        return now_ms << 22 | self._node << 12 | self._counter


def rate(make: Callable[[int], object]) -> float:
    made = 0
    began_s = time.perf_counter()
    while (took_s := time.perf_counter() - began_s) < SECONDS:
        for _ in range(20):
            make(made)
            made += 1
    return made / took_s


async def rate_of_calls(make: Callable[[], Awaitable[object]]) -> float:
    made = 0
    began_s = time.perf_counter()
    while (took_s := time.perf_counter() - began_s) < SECONDS:
        await make()
        made += 1
    return made / took_s


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sk") as name:
        folder = Path(name)
        database = sqlite3.connect(folder / "ids.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE ids (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        ids = PublicIds(b"k" * 32, "order")
        snowflake = Snowflake(1)
        rates = {
            "auto-increment, one commit each (SQLite)": rate(
                lambda _: database.execute("INSERT INTO ids DEFAULT VALUES").lastrowid
            ),
            "UUID v4": rate(lambda _: uuid.uuid4()),
            "UUID v7": rate(lambda _: uuid7()),
            "snowflake (at most 4,096 a ms)": rate(lambda _: snowflake.next()),
            "ours, put together and made opaque": rate(
                lambda number: ids.encode(int(OrderNumber(200_000_000, 3, number & 0xFFFFFF)))
            ),
        }
        database.close()
        valkey = EmbeddedValkey(folder, durability="strict")
        await valkey.start()
        try:
            await valkey.ready()
            async with redis.asyncio.Redis.from_url(valkey.url) as client:
                rates["daily counter, one INCR each (Valkey)"] = await rate_of_calls(lambda: client.incr("2026:11:15"))
        finally:
            await valkey.stop()
    for what, per_s in rates.items():
        print(f"{per_s:12,.0f} /s   {what}")


asyncio.run(main())
