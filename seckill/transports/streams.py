"""The order streams of the lanes, read by a consumer group."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, contextmanager
from importlib.resources import files
from itertools import chain
from typing import Any, TypeVar

import msgspec
from redis import exceptions

from seckill.entries import read_entry
from seckill.errors import TransportUnavailable
from seckill.gates import keys
from seckill.gates.redis import connect
from seckill.numbers import OrderNumber
from seckill.ports import Delivery, Settled

T = TypeVar("T")

# A read may wait this much longer than it asked the server to, before the server counts as gone.
GRACE_S = 5.0
_RETIRE = (files("seckill.transports") / "lua" / "retire_consumer.lua").read_text()


def parse(lane: int, entry_id: bytes, fields: Mapping[bytes, bytes] | None) -> Delivery:
    return read_entry(lane, entry_id.decode(), (fields or {}).get(b"order", b""))


class StreamTransport:
    def __init__(self, url: str, group: str = keys.WORKERS_GROUP) -> None:
        self._client = connect(url)
        self._group = group
        # Nobody else ever has this name, so what is pending under it is either ours or a dead worker's.
        self.consumer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._lanes: list[int] = []

    async def prepare(self, lanes: Sequence[int]) -> None:
        for lane in lanes:
            with translated():
                try:
                    # From 0, never from $: what was admitted before the first worker came must not be passed over.
                    await self._client.xgroup_create(keys.orders(lane), self._group, id="0", mkstream=True)
                except exceptions.ResponseError as error:
                    if not str(error).startswith("BUSYGROUP"):
                        raise
        self._lanes = list(lanes)

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        streams: dict[Any, Any] = {keys.orders(lane): ">" for lane in self._lanes}
        with translated():
            async with asyncio.timeout(wait_s + GRACE_S):
                try:
                    reply = await self._client.xreadgroup(
                        self._group,
                        self.consumer,
                        streams,
                        count=count,
                        block=max(1, int(wait_s * 1000)),
                    )
                except exceptions.ResponseError as error:
                    if not _group_is_gone(error):
                        raise
                    await self.prepare(self._lanes)  # lost with its stream or destroyed: make it again, from 0
                    return []
        return self._deliveries(reply)

    def _deliveries(self, reply: Any) -> list[Delivery]:
        lanes = {keys.orders(lane).encode(): lane for lane in self._lanes}
        # RESP3 answers a map of lists of portions, RESP2 a list of pairs.
        pairs = [(key, list(chain(*portions))) for key, portions in reply.items()] if isinstance(reply, dict) else reply
        return [parse(lanes[key], entry_id, fields) for key, entries in pairs or () for entry_id, fields in entries]

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        taken: list[Delivery] = []
        for lane in self._lanes:
            if len(taken) >= count:
                break
            with translated():
                async with asyncio.timeout(GRACE_S):
                    try:
                        _, entries, _deleted = await self._client.xautoclaim(
                            keys.orders(lane),
                            self._group,
                            self.consumer,
                            min_idle_time=int(idle_s * 1000),
                            count=count - len(taken),
                        )
                    except exceptions.ResponseError as error:
                        if not _group_is_gone(error):
                            raise
                        await self.prepare(self._lanes)
                        return taken
            taken += [parse(lane, entry_id, fields) for entry_id, fields in entries]
        return taken

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        by_lane: dict[int, list[str]] = {}
        for delivery in deliveries:
            by_lane.setdefault(delivery.lane, []).append(delivery.entry_id)
        acknowledged = deleted = 0
        for lane, ids in by_lane.items():
            with translated():
                async with asyncio.timeout(GRACE_S), self._client.pipeline(transaction=True) as pipeline:
                    pipeline.xack(keys.orders(lane), self._group, *ids)
                    pipeline.xdel(keys.orders(lane), *ids)
                    counts = await pipeline.execute()
            acknowledged += counts[0]
            deleted += counts[1]
        return Settled(acknowledged, deleted)

    async def backlog(self, lanes: Collection[int]) -> int:
        with translated():
            async with asyncio.timeout(GRACE_S), self._client.pipeline(transaction=False) as pipeline:
                for lane in lanes:
                    pipeline.xlen(keys.orders(lane))
                return sum(await pipeline.execute())

    async def retire_consumers(self, idle_s: float) -> int:
        retired = 0
        for lane in self._lanes:
            with translated():
                async with asyncio.timeout(GRACE_S):
                    retired += int(
                        await self._client.eval(
                            _RETIRE,
                            1,
                            keys.orders(lane),
                            self._group,
                            int(idle_s * 1000),
                            self.consumer,
                        )
                    )
        return retired

    async def publish_states(self, states: Mapping[OrderNumber, str]) -> None:
        await self._publish(keys.STATES_CHANNEL, {str(int(number)): state for number, state in states.items()})

    async def state_changes(self) -> AsyncIterator[Mapping[OrderNumber, str]]:
        async with aclosing(self._published(keys.STATES_CHANNEL, dict[str, str])) as published:
            async for states in published:
                yield {OrderNumber.from_int(int(number)): state for number, state in states.items()}

    async def publish_version(self, round_id: int, version: int) -> None:
        await self._publish(keys.VERSIONS_CHANNEL, (round_id, version))

    async def version_changes(self) -> AsyncIterator[tuple[int, int]]:
        async with aclosing(self._published(keys.VERSIONS_CHANNEL, tuple[int, int])) as published:
            async for announced in published:
                yield announced

    async def _publish(self, channel: str, message: object) -> None:
        with translated():
            async with asyncio.timeout(GRACE_S):
                await self._client.publish(channel, msgspec.json.encode(message))

    async def _published(self, channel: str, type_: type[T]) -> AsyncGenerator[T]:
        with translated():
            async with self._client.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe(channel)
                async for message in pubsub.listen():
                    yield msgspec.json.decode(message["data"], type=type_)

    async def close(self) -> None:
        await self._client.aclose()


@contextmanager
def translated() -> Any:
    try:
        yield
    except (exceptions.RedisError, TimeoutError, OSError) as error:
        raise TransportUnavailable(f"The order streams cannot be reached ({type(error).__name__}: {error}).") from error


def _group_is_gone(error: exceptions.ResponseError) -> bool:
    return str(error).startswith(("NOGROUP", "UNBLOCKED"))
