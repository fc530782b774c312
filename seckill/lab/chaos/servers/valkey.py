"""Our own Valkey that syncs before every answer, as in `seckill up`."""

import contextlib
import signal
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import redis.exceptions
from redis.asyncio import Redis

from seckill.backends.redis import keys
from seckill.backends.redis.gate import connect
from seckill.backends.redis.streams import parse
from seckill.lab.chaos.servers.server import Can, signal_all
from seckill.lab.servers.proxy import Address
from seckill.local.valkey import EmbeddedValkey

# The beginning of a command, as a power cut in the middle of a write leaves it in the file.
TORN = b"*3\r\n$3\r\nSET\r\n$5\r\nseck"


class ValkeyServer:
    can = frozenset(Can) - {Can.SILENCE}  # it has no replica

    def __init__(self, folder: Path, lanes: int) -> None:
        self.folder: Path | None = folder
        self._folder = folder
        self._lanes = range(lanes)
        self._server = EmbeddedValkey(folder, durability="strict")
        self._forgotten = 0
        self._refused = 0

    @property
    def name(self) -> str:
        return "Valkey, appendfsync always"

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def address(self) -> Address:
        return Path(unquote(urlsplit(self.url).path))

    def url_through(self, port: int) -> str:
        return f"redis://127.0.0.1:{port}/0"

    async def start(self) -> None:
        await self._server.start()
        await self._server.ready()

    async def stop(self) -> None:
        await self._server.stop()

    def pids(self) -> list[int]:
        return [self._server.pid] if self._server.is_running else []

    async def kill(self) -> None:
        signal_all(self.pids(), signal.SIGKILL)
        await self._server.wait()

    def pause(self) -> None:
        signal_all(self.pids(), signal.SIGSTOP)

    def resume(self) -> None:
        signal_all(self.pids(), signal.SIGCONT)

    async def forget(self, *, restart: bool) -> tuple[int, frozenset[int]]:
        if not restart:
            async with _client(self.url) as client:
                return await _read_and_flush(client, self._lanes)
        await self.kill()
        self._forgotten += 1
        elsewhere = self._folder / f"forgotten-{self._forgotten}"
        elsewhere.mkdir()
        (self._folder / "valkey").rename(elsewhere / "valkey")
        await self.start()
        # A second server, which no role knows of, reads what the first had kept.
        other = EmbeddedValkey(elsewhere, durability="strict")
        await other.start()
        try:
            await other.ready()
            async with _client(other.url) as client:
                return await _read_and_flush(client, self._lanes)
        finally:
            await other.stop()

    async def tear(self) -> int:
        (newest,) = sorted((self._folder / "valkey" / "appendonlydir").glob("*.incr.aof"))[-1:]
        with newest.open("ab") as file:
            file.write(TORN)
        return len(TORN)

    async def starve(self) -> None:
        async with _client(self.url) as client:
            self._refused = await _refusals(client)
            await client.config_set("maxmemory", "1")

    async def feed(self) -> int:
        async with _client(self.url) as client:
            await client.config_set("maxmemory", "0")
            return await _refusals(client) - self._refused


async def _refusals(client: Redis) -> int:
    info: dict[str, dict[str, int]] = await client.info("errorstats")
    return int(info.get("errorstat_OOM", {}).get("count", 0))


async def _read_and_flush(client: Redis, lanes: Iterable[int]) -> tuple[int, frozenset[int]]:
    """Uses one transaction, so that nothing is admitted between the look and the loss."""
    async with client.pipeline(transaction=True) as pipeline:
        pipeline.dbsize()
        for lane in lanes:
            pipeline.xrange(keys.orders(lane))
        pipeline.flushall()
        count, *streams, _ = await pipeline.execute()
    return count, frozenset(_numbers(streams))


def _numbers(streams: Iterable[Any]) -> Iterable[int]:
    for lane, entries in enumerate(streams):
        for entry_id, fields in entries:
            for each in parse(lane, entry_id, [part for pair in fields.items() for part in pair]):
                if each.admission is not None:
                    yield int(each.admission.number)


@contextlib.asynccontextmanager
async def _client(url: str) -> AsyncIterator[Redis]:
    client = connect(url)
    try:
        yield client
    finally:
        with contextlib.suppress(redis.exceptions.RedisError):
            await client.aclose()
