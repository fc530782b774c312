"""The lane streams as the outbox of a broker.

An entry stays in its stream until the ledger has its order, as without a broker. The group `relay` only remembers what
the broker has confirmed. So a broker that loses a queue, its disk or itself loses no order, and orders may go on by the
streams alone at any moment.
"""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis

from seckill.backends.redis import keys
from seckill.backends.redis.streams import StreamTransport
from seckill.ports.transport import Delivery


class StreamRelaySource(StreamTransport):
    def __init__(self, url: str, *, replica_acks: int = 0) -> None:
        super().__init__(url, keys.RELAY_GROUP, replica_acks=replica_acks)

    async def confirmed(self, deliveries: Sequence[Delivery]) -> None:
        by_lane: dict[int, list[str]] = {}
        for delivery in deliveries:
            by_lane.setdefault(delivery.lane, []).append(delivery.entry_id)
        for lane, ids in by_lane.items():
            await self._send(keys.orders(lane), "XACK", keys.orders(lane), self._group, *ids)

    async def _stranded(self, client: Redis, lane: int, count: int) -> list[Any]:
        """None: what the broker has confirmed is behind the group, in nobody's hand, and on its way to a worker. What
        was lost is found by its age."""
        return []

    async def start_over(self) -> None:
        await self.prepare(self._lanes)
        for lane in self._lanes:
            await self._send(keys.orders(lane), "XGROUP SETID", keys.orders(lane), self._group, "0")

    async def oldest_s(self) -> float:
        oldest_s = 0.0
        for key in map(keys.orders, self._lanes):
            seconds, micros = await self._send(key, "TIME")
            entries = await self._send(key, "XRANGE", key, "-", "+", "COUNT", 1)
            for entry_id, _ in entries:
                admitted_s = int(entry_id.partition(b"-")[0]) / 1000
                oldest_s = max(oldest_s, seconds + micros / 1_000_000 - admitted_s)
        return oldest_s
