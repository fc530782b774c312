"""The board on the gate's server, which every process reaches."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files

import msgspec
from redis import exceptions

from seckill.errors import GateUnavailable
from seckill.gates import keys
from seckill.gates.redis import connect
from seckill.insight import Report, Seen, Waiting

ANSWER_WITHIN_S = 2.0
# Long enough to see that a process is missed, short enough that the board stays small.
STAYS_MS = 60_000

_POST = (files("seckill.gates") / "lua" / "post_report.lua").read_text()


class RedisBoard:
    """Implements `seckill.insight.Board`."""

    def __init__(self, url: str) -> None:
        self._client = connect(url)

    async def post(self, report: Report) -> None:
        async with _bounded():
            await self._client.eval(
                _POST, 2, keys.NODES_SEEN, keys.NODES, report.node, msgspec.json.encode(report), STAYS_MS
            )

    async def remove(self, node: str) -> None:
        async with _bounded(), self._client.pipeline(transaction=True) as pipeline:
            pipeline.zrem(keys.NODES_SEEN, node)
            pipeline.hdel(keys.NODES, node)
            await pipeline.execute()

    async def reports(self) -> tuple[int, list[Seen]]:
        async with _bounded(), self._client.pipeline(transaction=True) as pipeline:
            pipeline.time()
            pipeline.zrange(keys.NODES_SEEN, 0, -1, withscores=True)
            pipeline.hgetall(keys.NODES)
            (seconds, micros), seen, reports = await pipeline.execute()
        at_ms = {node: int(score) for node, score in seen}
        found = []
        for node, report in reports.items():
            if node in at_ms:
                try:
                    found.append(Seen(msgspec.json.decode(report, type=Report), at_ms[node]))
                except msgspec.DecodeError:  # of another version: it is there, but cannot be read
                    continue
        return seconds * 1000 + micros // 1000, sorted(found, key=lambda one: (one.report.role, one.report.node))

    async def waiting(self, lanes: Collection[int]) -> dict[int, Waiting]:
        wanted = sorted(lanes)
        async with _bounded(), self._client.pipeline(transaction=False) as pipeline:
            for lane in wanted:
                pipeline.xlen(keys.orders(lane))
                pipeline.xrange(keys.orders(lane), count=1)
            replies = await pipeline.execute()
        found = {}
        for lane, entries, first in zip(wanted, replies[::2], replies[1::2], strict=True):
            # An entry's id begins with the time at which it was added.
            found[lane] = Waiting(entries, int(first[0][0].split(b"-")[0]) if first else None)
        return found

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def _bounded() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            yield
    except (exceptions.RedisError, TimeoutError, OSError) as error:
        raise GateUnavailable(f"The board cannot be reached ({type(error).__name__}: {error}).") from error
