"""The lane streams as the outbox of a broker.

An entry stays in its stream until the ledger has its order, as without a broker. The group `relay` only remembers what
the broker has confirmed. So a broker that loses a queue, its disk or itself loses no order, and orders may go on by the
streams alone at any moment.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from seckill.gates import keys
from seckill.ports import Delivery
from seckill.transports.streams import GRACE_S, StreamTransport, translated


class StreamOutbox(StreamTransport):
    def __init__(self, url: str) -> None:
        super().__init__(url, keys.RELAY_GROUP)

    async def confirmed(self, deliveries: Sequence[Delivery]) -> None:
        with translated():
            async with asyncio.timeout(GRACE_S), self._client.pipeline(transaction=False) as pipeline:
                for delivery in deliveries:
                    pipeline.xack(keys.orders(delivery.lane), self._group, delivery.entry_id)
                await pipeline.execute()

    async def start_over(self) -> None:
        await self.prepare(self._lanes)
        for lane in self._lanes:
            with translated():
                async with asyncio.timeout(GRACE_S):
                    await self._client.xgroup_setid(keys.orders(lane), self._group, id="0")

    async def oldest_s(self) -> float:
        oldest_s = 0.0
        with translated():
            async with asyncio.timeout(GRACE_S):
                seconds, micros = await self._client.time()
                for lane in self._lanes:
                    entries: Any = await self._client.xrange(keys.orders(lane), count=1)
                    for entry_id, _ in entries:
                        admitted_s = int(entry_id.partition(b"-")[0]) / 1000
                        oldest_s = max(oldest_s, seconds + micros / 1_000_000 - admitted_s)
        return oldest_s
