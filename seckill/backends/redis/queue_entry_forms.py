"""Sets which form queue entries may have, lane by lane, and which versions may still start."""

from collections.abc import Collection
from functools import partial

from seckill import __version__
from seckill.backends.redis import keys
from seckill.backends.redis.format_stamp import STAMP
from seckill.backends.redis.streams import StreamTransport
from seckill.ports.queue_entry import TOGETHER, VERSION


class RedisEntryForms(StreamTransport):
    """Implements `seckill.operations.upgrade_finish.Forms`."""

    async def refuse_older(self) -> None:
        """From now on, no version may start that cannot read entries with several orders."""
        await self._send(keys.FORMAT, "EVAL", STAMP, 1, keys.FORMAT, TOGETHER, __version__)

    async def allow(self, lanes: Collection[int]) -> None:
        await self._say(lanes, TOGETHER)

    async def forbid(self, lanes: Collection[int]) -> None:
        """Forbids entries with several orders for good: a worker that has not heard of it only allows them in lanes
        where nothing was set."""
        await self._say(lanes, VERSION)

    async def _say(self, lanes: Collection[int], form: int) -> None:
        """Writes the form. If replicas are required, waits until they have it, because one that takes over would go
        back to the previous value."""
        for lane in lanes:
            await self._send(keys.queue(lane), "HSET", keys.queue(lane), "form", form)
            await self._on(keys.queue(lane), partial(self._replicated, lane=lane), self._grace_s)

    async def shared(self, lanes: Collection[int]) -> int:
        """Returns how many unwritten orders share an entry with others."""
        found = 0
        async for portion in self.entries(lanes):
            found += sum(delivery.of > 1 for delivery in portion)
        return found

    async def admit_older(self) -> None:
        """Lowers the needed format. This is the only place that does, because nothing is left that needed it."""
        await self._send(keys.FORMAT, "HSET", keys.FORMAT, "needs", VERSION, "by", __version__)
