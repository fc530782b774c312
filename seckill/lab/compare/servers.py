"""The servers of a run: our own Valkey, and our own databases on the given SQL server."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import redis.asyncio

from seckill.backends.sql.migration import migrate
from seckill.lab.compare.database import ScratchDatabase
from seckill.lab.compare.scratch_database import scratch_database
from seckill.lab.compare.strategy import CompareServers
from seckill.local.valkey import EmbeddedValkey
from seckill.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    servers: CompareServers
    folder: Path
    names: dict[str, str]  # the servers' names and versions for the report


@asynccontextmanager
async def rented(settings: Settings, pause_ms: float) -> AsyncIterator[Rented]:
    """Leaves existing data alone: a run writes only to a folder and to databases that are removed after it."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sk", ignore_cleanup_errors=True)))
        valkey = EmbeddedValkey(folder, durability=settings.durability)
        stack.push_async_callback(valkey.stop)
        await valkey.start()
        await valkey.ready()
        # The ladder is for SQLite and PostgreSQL.
        server_url = settings.database_url if settings.database_url.startswith("postgres") else ""
        database_url = await scratch_database(stack, server_url, folder / "ladder.db")
        ledger_url = await scratch_database(stack, server_url, folder / "ledger.db")
        await migrate(ledger_url)
        servers = CompareServers(
            redis_url=f"{valkey.url}?db=0",
            gate_url=f"{valkey.url}?db=1",
            database_url=database_url,
            ledger_url=ledger_url,
            broker_url=settings.broker_url,
            pause_ms=pause_ms,
        )
        yield Rented(servers=servers, folder=folder, names=await _names(servers, settings))


async def _names(servers: CompareServers, settings: Settings) -> dict[str, str]:
    client = redis.asyncio.Redis.from_url(servers.redis_url, decode_responses=True)
    database = ScratchDatabase(servers.database_url)
    try:
        info = await client.info("server")
        version = info.get("valkey_version") or info["redis_version"]
        sql = "SELECT sqlite_version()" if database.kind == "sqlite" else "SHOW server_version"
        number = str(await database.value(sql)).split()[0]
    finally:
        await client.aclose()
        await database.close()
    names = {
        "queue": f"{info.get('server_name', 'redis')} {version}, {settings.durability}",
        "database": f"{'SQLite' if database.kind == 'sqlite' else 'PostgreSQL'} {number}",
    }
    return names | {"broker": "RabbitMQ"} if servers.broker_url else names
