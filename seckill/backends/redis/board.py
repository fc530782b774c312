"""The board on the gate's server, which every process can reach."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import msgspec
from redis import exceptions

from seckill.backends.redis import keys
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.servers import Server
from seckill.backends.redis.streams import orders_waiting
from seckill.errors import GateUnavailable
from seckill.ports.board import LaneBacklog, NodeReport, Seen, Turn

ANSWER_WITHIN_S = 2.0
# Long enough for operators to see that a process is missing, short enough to keep the board small.
STAYS_MS = 60_000

_POST, _TELL = (
    (files("seckill.backends.redis") / "lua" / f"{name}.lua").read_text() for name in ("post_report", "tell_alarm")
)


class RedisBoard:
    """Implements `seckill.ports.board.Board`."""

    def __init__(self, url: str) -> None:
        self._servers = open_servers(url)

    async def post(self, report: NodeReport) -> None:
        written = msgspec.json.encode(report)

        async def post(server: Server) -> None:
            await server.client.eval(_POST, 2, keys.NODES_SEEN, keys.NODES, report.node, written, STAYS_MS)

        async with _bounded():
            await self._servers.follow(keys.NODES, post)

    async def remove(self, node: str) -> None:
        async def remove(server: Server) -> None:
            async with server.client.pipeline(transaction=True) as pipeline:
                pipeline.zrem(keys.NODES_SEEN, node)
                pipeline.hdel(keys.NODES, node)
                await pipeline.execute()

        async with _bounded():
            await self._servers.follow(keys.NODES, remove)

    async def reports(self) -> tuple[int, list[Seen]]:
        async def read(server: Server) -> list[Any]:
            async with server.client.pipeline(transaction=True) as pipeline:
                pipeline.zrange(keys.NODES_SEEN, 0, -1, withscores=True)
                pipeline.hgetall(keys.NODES)
                pipeline.time()
                return await pipeline.execute()

        async with _bounded():
            seen, reports, (seconds, micros) = await self._servers.follow(keys.NODES, read)
        at_ms = {node: int(score) for node, score in seen}
        found = []
        for node, report in reports.items():
            if node in at_ms:
                try:
                    found.append(Seen(msgspec.json.decode(report, type=NodeReport), at_ms[node]))
                # written by another version: the process is there, but its report cannot be read
                except msgspec.DecodeError:
                    continue
        return seconds * 1000 + micros // 1000, sorted(found, key=lambda one: (one.report.role, one.report.node))

    async def waiting(self, lanes: Collection[int]) -> dict[int, LaneBacklog]:
        wanted = sorted(lanes)
        commands: list[tuple[str, Sequence[object]]] = []
        for key in map(keys.orders, wanted):
            commands += [(key, ("XLEN", key)), (key, ("XRANGE", key, "-", "+", "COUNT", 1))]
        more = [(key, ("HGET", key, "more")) for key in map(keys.queue, wanted)]
        async with _bounded():
            replies = await self._servers.read_all([*commands, *more])
        looks = replies[: len(commands)]
        found = {}
        for lane, entries, first, besides in zip(
            wanted, looks[::2], looks[1::2], replies[len(commands) :], strict=True
        ):
            # An entry's id begins with the time at which it was added, in ms.
            oldest_ms = int(first[0][0].split(b"-")[0]) if first else None
            found[lane] = LaneBacklog(orders_waiting(entries, besides), oldest_ms)
        return found

    async def turn_to_tell(self, about: str, message: str, teller: str, within_s: float) -> Turn:
        told, telling = keys.ALARM_TOLD.format(about=about), keys.ALARM_TELLING.format(about=about)

        async def ask(server: Server) -> bytes:
            reply: bytes = await server.client.eval(_TELL, 2, told, telling, message, teller, int(within_s * 1000))
            return reply

        async with _bounded():
            return Turn((await self._servers.follow(told, ask)).decode())

    async def told(self, about: str, message: str, for_s: float) -> None:
        told, telling = keys.ALARM_TOLD.format(about=about), keys.ALARM_TELLING.format(about=about)

        async def note(server: Server) -> None:
            async with server.client.pipeline(transaction=True) as pipeline:
                pipeline.set(told, message, px=int(for_s * 1000))
                pipeline.delete(telling)
                await pipeline.execute()

        async with _bounded():
            await self._servers.follow(told, note)

    async def close(self) -> None:
        await self._servers.close()


@asynccontextmanager
async def _bounded() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            yield
    except (exceptions.RedisError, TimeoutError, OSError) as error:
        raise GateUnavailable(f"The board cannot be reached ({type(error).__name__}: {error}).") from error
