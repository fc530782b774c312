"""The lane streams as the source of what the relay gives to a broker.

An entry stays in its stream until the ledger has its order, as without a broker. The group `relay` only remembers which
entries the broker has confirmed. So no order is lost when the broker loses a queue, its disk or everything, and one may
go back to the streams alone at any moment.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis

from seckill.backends.redis import keys
from seckill.backends.redis.streams import StreamTransport
from seckill.ports.queue_entry import standing_alone
from seckill.ports.transport import Delivery, whole_entries

_SPLIT = (files("seckill.backends.redis") / "lua" / "split_entry.lua").read_text()


class StreamRelaySource(StreamTransport):
    def __init__(self, url: str, *, replica_acks: int = 0) -> None:
        super().__init__(url, keys.RELAY_GROUP, replica_acks=replica_acks)

    async def _make_group(self, lane: int) -> None:
        """Forbids shared entries: a message carries one order, and its entry is deleted when the ledger has it, so each
        order needs an entry of its own."""
        await super()._make_group(lane)
        await self._send(keys.queue(lane), "HDEL", keys.queue(lane), "form")

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        return await self._alone(await super().read(count, wait_s))

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        return await self._alone(await super().take_over(idle_s, count))

    async def _alone(self, deliveries: list[Delivery]) -> list[Delivery]:
        """Returns the deliveries, each with an entry of its own. Shared entries from the time before there was a broker
        are split."""
        shared = [delivery for delivery in deliveries if delivery.of > 1]
        for lane, entries in whole_entries(shared).items():
            for entry_id in entries:
                together = [each for each in shared if (each.lane, each.entry_id) == (lane, entry_id)]
                payloads = [standing_alone(each).payload for each in together]
                await self._send(
                    keys.orders(lane), "EVAL", _SPLIT, 2, keys.orders(lane), keys.queue(lane), entry_id, *payloads
                )
        return [delivery for delivery in deliveries if delivery.of == 1]

    async def confirmed(self, deliveries: Sequence[Delivery]) -> None:
        by_lane: dict[int, list[str]] = {}
        for delivery in deliveries:
            by_lane.setdefault(delivery.lane, []).append(delivery.entry_id)
        for lane, ids in by_lane.items():
            await self._send(keys.orders(lane), "XACK", keys.orders(lane), self._group, *ids)

    async def _stranded(self, client: Redis, lane: int, count: int) -> list[Any]:
        """Returns none. Entries that the broker has confirmed are behind the group and pending for no one, but on their
        way to a worker. Lost ones are found by their age."""
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
