"""The order streams in this process, on the store of the in-memory gate. They are gone when the process ends."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import cast

from seckill.backends.memory.store import MemoryStore, Pending, Travel, at_once, one_call
from seckill.domain.order import States
from seckill.errors import TransportUnavailable
from seckill.ports.queue_entry import is_together, read_entry, read_together
from seckill.ports.transport import Delivery, LaneFlow, Queue, Settled, whole_entries

STATES = "states"
VERSIONS = "versions"


class MemoryTransport:
    def __init__(self, store: MemoryStore, *, travel: Travel = at_once) -> None:
        self._store = store
        self._travel = travel
        self.consumer = store.new_consumer()
        self._lanes: list[int] = []

    def _reached(self) -> AbstractAsyncContextManager[None]:
        return one_call(self._travel, TransportUnavailable, TransportUnavailable)

    async def prepare(self, lanes: Sequence[int]) -> None:
        async with self._reached():
            self._lanes = list(lanes)
            for lane in lanes:
                self._store.lane(lane)

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        async with self._reached():
            return await self._store.take(lambda: self._take_new(count), wait_s)

    def _take_new(self, count: int) -> list[Delivery]:
        now_ms = self._store.now_ms()
        taken: list[Delivery] = []
        for lane in self._lanes:
            queue = self._store.lane(lane)
            queue.consumers[self.consumer] = now_ms
            for entry_id in queue.take_new(count):
                taken += self._deliver(lane, entry_id, now_ms)
        return taken

    def _deliver(self, lane: int, entry_id: str, now_ms: int) -> list[Delivery]:
        queue = self._store.lane(lane)
        queue.pending[entry_id] = Pending(self.consumer, now_ms)
        return _read(lane, entry_id, queue.entries[entry_id], queue.traces.get(entry_id, ""))

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        async with self._reached():
            now_ms = self._store.now_ms()
            taken: list[Delivery] = []
            for lane in self._lanes:
                queue = self._store.lane(lane)
                queue.consumers[self.consumer] = now_ms
                idle = [entry_id for entry_id, held in queue.pending.items() if now_ms - held.since_ms >= idle_s * 1000]
                for entry_id in idle:
                    if len(taken) < count:
                        taken += self._deliver(lane, entry_id, now_ms)
            return taken

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        async with self._reached():
            acknowledged = deleted = 0
            for lane, entries in whole_entries(deliveries).items():
                for entry_id, orders in entries.items():
                    was_held, was_there = self._store.lane(lane).settle(entry_id)
                    acknowledged += orders * was_held
                    deleted += orders * was_there
            return Settled(acknowledged, deleted)

    async def backlog(self, lanes: Collection[int]) -> int:
        async with self._reached():
            return sum(map(self._store.backlog, lanes))

    async def flow(self, lanes: Collection[int]) -> dict[int, LaneFlow]:
        async with self._reached():
            days = self._store.contents.days
            return {lane: LaneFlow(sum(days.get(lane, {}).values()), self._store.backlog(lane)) for lane in lanes}

    async def queues(self, lanes: Collection[int]) -> dict[int, Queue]:
        async with self._reached():
            return {lane: Queue(self._store.lane(lane).added, self._store.backlog(lane)) for lane in lanes}

    async def entries(self, lanes: Collection[int]) -> AsyncIterator[Sequence[Delivery]]:
        for lane in lanes:
            async with self._reached():
                found = list(self._store.lane(lane).entries.items())
            yield [each for entry_id, payload in found for each in _read(lane, entry_id, payload)]

    async def retire_consumers(self, idle_s: float) -> int:
        async with self._reached():
            now_ms = self._store.now_ms()
            retired = 0
            for lane in self._lanes:
                queue = self._store.lane(lane)
                for name, seen_ms in list(queue.consumers.items()):
                    silent = now_ms - seen_ms >= idle_s * 1000
                    if silent and name != self.consumer and not queue.is_busy(name):
                        del queue.consumers[name]
                        retired += 1
            return retired

    async def publish_states(self, states: States) -> None:
        async with self._reached():
            self._store.publish(STATES, {state: list(numbers) for state, numbers in states.items()})

    async def state_changes(self) -> AsyncIterator[States]:
        async with aclosing(self._store.published(STATES)) as published:
            async for states in published:
                yield cast(States, states)

    async def publish_version(self, round_id: int, version: int) -> None:
        async with self._reached():
            self._store.publish(VERSIONS, (round_id, version))

    async def version_changes(self) -> AsyncIterator[tuple[int, int]]:
        async with aclosing(self._store.published(VERSIONS)) as published:
            async for announced in published:
                yield cast(tuple[int, int], announced)

    async def close(self) -> None:
        """Does nothing: others use the store, too."""


def _read(lane: int, entry_id: str, payload: bytes, trace: str = "") -> list[Delivery]:
    if is_together(payload):
        return read_together(lane, entry_id, payload)
    return [read_entry(lane, entry_id, payload, trace.encode())]
