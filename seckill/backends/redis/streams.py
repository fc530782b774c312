"""Reads the order streams of the lanes with a consumer group."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import msgspec
import structlog
from redis import exceptions
from redis.asyncio import Redis

from seckill import __version__
from seckill.backends.redis import keys
from seckill.backends.redis.format_stamp import STAMP
from seckill.backends.redis.round_hash import is_wrong_type
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.servers import LANES_MAX
from seckill.domain.order import States
from seckill.errors import TransportUnavailable
from seckill.ports.board import own_name
from seckill.ports.queue_entry import TOGETHER, read_entry, read_together
from seckill.ports.transport import Delivery, LaneFlow, Queue, Settled, whole_entries

log = structlog.get_logger()

T = TypeVar("T")

# A read may wait this much longer than it asked the server to, before the server counts as gone.
GRACE_S = 5.0
# Entries that a server taking over may lack are not given out. They stay pending and are taken over a little later.
REPLICATED_WITHIN_S = 2.0
# Lanes whose server failed are left alone for this long. Those on other servers are read meanwhile.
REST_S = 0.5
# All entries are read in portions, so that the server is not held up. Each entry may have some hundred orders.
ENTRIES_PORTION = 100
# After a pause this long, the size of the next reading is determined anew.
STALL_S = 1.0
# Assumed number of orders in an entry, where the server cannot be asked.
ORDERS_EACH_UNKNOWN = 100
_LUA = files("seckill.backends.redis") / "lua"
_RETIRE = (_LUA / "retire_consumer.lua").read_text()
_TAKE_STRANDED = (_LUA / "take_stranded.lua").read_text()
_DISCARD = (_LUA / "discard_damage.lua").read_text()
_SHARE_ENTRIES = (_LUA / "share_entries.lua").read_text()
_SETTLE = (_LUA / "settle.lua").read_text()


def parse(lane: int, entry_id: bytes, fields: Sequence[bytes] | None) -> list[Delivery]:
    """`fields`: names and values in turn, as the server sends them. A gate writes one field, or two if the order is
    traced."""
    if fields and fields[0] == b"orders":
        return read_together(lane, entry_id.decode(), fields[1])
    if fields and fields[0] == b"order" and len(fields) == 2:
        return [read_entry(lane, entry_id.decode(), fields[1])]
    named = dict(zip(fields[::2], fields[1::2], strict=True)) if fields else {}
    return [read_entry(lane, entry_id.decode(), named.get(b"order", b""), named.get(b"trace", b""))]


def _flat(fields: Mapping[bytes, bytes] | None) -> list[bytes]:
    return [part for pair in (fields or {}).items() for part in pair]


class StreamTransport:
    """`replica_acks`: how many replicas must have an entry before it is given out. Otherwise a worker could write an
    order that the gate then loses with its primary before the buyer is told, and the buyer's repeat would make a second
    order. `entry_form`: returns the form of entries that all readers are known to understand. Without it, entries with
    several orders are read, but gates are never allowed to write them."""

    def __init__(
        self,
        url: str,
        group: str = keys.WORKERS_GROUP,
        *,
        replica_acks: int = 0,
        entry_form: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._servers = open_servers(url, connections_max=LANES_MAX)
        self._group = group
        self._replica_acks = replica_acks
        self._entry_form = entry_form
        self._grace_s = GRACE_S + (REPLICATED_WITHIN_S if replica_acks else 0.0)
        # No other process ever has this name, so entries that are pending under it are this worker's own.
        self.consumer = own_name()
        self._lanes: list[int] = []
        # Current readings, by the lanes that they read. When one returns entries, the others go on, and their entries
        # are given out next time: cancelling a reading would lose the entries that it was about to return.
        self._readings: dict[tuple[int, ...], asyncio.Task[list[Delivery]]] = {}
        self._rests_until_s: dict[tuple[int, ...], float] = {}
        # The server counts entries and we count orders: this is how many orders each entry of the last reading had.
        self._orders_each = 1
        self._read_s = time.monotonic()

    async def _on(self, key: str, call: Callable[[Redis], Awaitable[T]], within_s: float = GRACE_S) -> T:
        """Makes one call to the server that has the key."""
        with translated():
            async with asyncio.timeout(within_s):
                return await self._servers.follow(key, lambda server: call(server.client))

    async def _send(self, key: str, *command: Any) -> Any:
        return await self._on(key, lambda client: client.execute_command(*command))  # type: ignore[no-untyped-call]

    async def prepare(self, lanes: Sequence[int]) -> None:
        for lane in lanes:
            await self._make_group(lane)
        self._lanes = list(lanes)
        await self._measure()

    async def _measure(self) -> None:
        """Measures how many orders an entry has, so that a backlog is not all read at once."""
        for entries, more in await self._lengths(self._lanes):
            self._orders_each = max(self._orders_each, orders_waiting(entries, more) // (entries or 1))

    async def _after_stall(self) -> None:
        """Measures anew after a pause, since the last reading may no longer predict the next."""
        if self._lanes and time.monotonic() - self._read_s > STALL_S:
            try:
                await self._measure()
            except TransportUnavailable:  # perhaps only one server is away, and the others can be read
                self._orders_each = max(self._orders_each, ORDERS_EACH_UNKNOWN)

    async def _make_group(self, lane: int) -> None:
        key = keys.orders(lane)

        async def make(client: Redis) -> None:
            # From 0, never from $: orders that were admitted before the first worker came must not be skipped.
            create = partial(client.xgroup_create, key, self._group, id="0", mkstream=True)
            try:
                await create()
            except exceptions.ResponseError as error:
                if is_wrong_type(error):
                    await self._discard(client, key)
                    await create()
                elif not str(error).startswith("BUSYGROUP"):
                    raise

        await self._on(key, make)
        if self._entry_form is not None and await self._entry_form() >= TOGETHER:
            # The stamp comes first: once there are such entries, no version may start that cannot read them.
            await self._send(keys.FORMAT, "EVAL", STAMP, 1, keys.FORMAT, TOGETHER, __version__)
            await self._send(keys.queue(lane), "EVAL", _SHARE_ENTRIES, 1, keys.queue(lane))

    async def _discard(self, client: Redis, key: str) -> None:
        """Deletes a foreign value in the place of a stream. The keeper finds the lost entries in the gate's records."""
        await client.execute_command("EVAL", _DISCARD, 1, key, "stream")  # type: ignore[no-untyped-call]
        log.error("something else stood in the place of a queue, and was taken away", key=key)

    async def read(self, count: int, wait_s: float) -> list[Delivery]:
        await self._after_stall()
        try:
            return await self._read_any(count, wait_s)
        finally:
            self._read_s = time.monotonic()

    async def _read_any(self, count: int, wait_s: float) -> list[Delivery]:
        for lanes in self._read_together():
            if lanes not in self._readings and not self._rests(lanes):
                self._readings[lanes] = asyncio.create_task(self._read(lanes, count, wait_s))
        found: list[Delivery] = []
        failure: TransportUnavailable | None = None
        if self._lanes and not self._readings:
            raise TransportUnavailable("No lane can be read at this moment.")
        while self._readings and not found:
            await asyncio.wait(self._readings.values(), return_when=asyncio.FIRST_COMPLETED)
            for lanes, reading in list(self._readings.items()):
                if reading.done():
                    del self._readings[lanes]
                    try:
                        found += reading.result()
                        self._rests_until_s.pop(lanes, None)
                    except TransportUnavailable as error:
                        failure = error
                        # the reading may have been too large
                        self._orders_each = max(self._orders_each, ORDERS_EACH_UNKNOWN)
                        self._rest(lanes, error)
        if failure is not None and not found and (self._servers.together or self._all_rest()):
            raise failure
        return found

    def _read_together(self) -> list[tuple[int, ...]]:
        """Returns the lanes that one command reads. On a cluster it reads one lane, even where several are on the same
        server."""
        if self._servers.together:
            return [tuple(self._lanes)] if self._lanes else []
        return [(lane,) for lane in self._lanes]

    def _rest(self, lanes: tuple[int, ...], error: TransportUnavailable) -> None:
        if not self._servers.together and lanes not in self._rests_until_s:  # once for each outage
            log.warning("a lane cannot be read", lane=lanes[0], reason=str(error))
        self._rests_until_s[lanes] = time.monotonic() + REST_S

    def _rests(self, lanes: tuple[int, ...]) -> bool:
        return not self._servers.together and time.monotonic() < self._rests_until_s.get(lanes, 0.0)

    def _all_rest(self) -> bool:
        return all(map(self._rests, self._read_together()))

    async def _read(self, lanes: Sequence[int], count: int, wait_s: float) -> list[Delivery]:
        names = [keys.orders(lane) for lane in lanes]
        block_ms = max(1, int(wait_s * 1000))
        # Given as bytes, the command is unknown to the library, which therefore does not parse and rebuild the reply.
        group = ("GROUP", self._group, self.consumer)
        command = (b"XREADGROUP", *group, "COUNT", self._entries_of(count), "BLOCK", block_ms, "STREAMS")

        async def read(client: Redis) -> Any:
            try:
                found = await client.execute_command(*command, *names, *[">"] * len(names))  # type: ignore[no-untyped-call]
            except exceptions.ResponseError as error:
                if not _group_is_gone(error):
                    raise
                for lane in lanes:  # the group was destroyed, or lost with its stream: make it again, from 0
                    await self._make_group(lane)
                return None
            if found:
                await self._replicated(client, lanes[0])
            return found

        return self._deliveries(lanes, await self._on(names[0], read, wait_s + self._grace_s))

    async def _replicated(self, client: Redis, lane: int) -> None:
        """Makes sure that replicas have everything read from this server so far. It must be the same server: one that
        has taken over meanwhile would only answer for its own data. A server waits for a connection's last write, so
        something has to be written."""
        if not self._replica_acks:
            return
        async with client.pipeline(transaction=False) as pipeline:
            pipeline.set(keys.copied(lane), "")
            pipeline.execute_command("WAIT", self._replica_acks, int(REPLICATED_WITHIN_S * 1000))
            _, copies = await pipeline.execute()
        if copies < self._replica_acks:
            raise TransportUnavailable(
                f"Of {self._replica_acks} replicas, {copies} have the newest orders: they are written when more have."
            )

    def _deliveries(self, read: Sequence[int], reply: Any) -> list[Delivery]:
        lanes = {keys.orders(lane).encode(): lane for lane in read}
        # RESP3 returns a map, RESP2 a list of pairs.
        pairs = reply.items() if isinstance(reply, dict) else reply
        return self._parse_all(
            [(lanes[key], entry_id, fields) for key, entries in pairs or () for entry_id, fields in entries]
        )

    def _parse_all(self, entries: Sequence[tuple[int, bytes, Any]]) -> list[Delivery]:
        deliveries = [delivery for entry in entries for delivery in parse(*entry)]
        if entries:
            self._orders_each = max(1, len(deliveries) // len(entries))
        return deliveries

    def _entries_of(self, orders: int) -> int:
        return -(-orders // self._orders_each)

    async def take_over(self, idle_s: float, count: int) -> list[Delivery]:
        await self._after_stall()
        taken: list[Delivery] = []
        for lane in self._lanes if self._servers.together else await self._lanes_with_abandoned(idle_s):
            if len(taken) < count:
                taken += await self._take_over(lane, idle_s, count - len(taken))
        return taken

    async def _lanes_with_abandoned(self, idle_s: float) -> list[int]:
        """Asks servers side by side, so that a silent one does not hold up the lanes of the others."""
        lanes = [lane for lane in self._lanes if not self._rests((lane,))]
        looks = await asyncio.gather(*(self._has_abandoned(lane, idle_s) for lane in lanes), return_exceptions=True)
        for lane, look in zip(lanes, looks, strict=True):
            if isinstance(look, TransportUnavailable):
                self._rest((lane,), look)
            elif isinstance(look, BaseException):
                raise look
        return [lane for lane, look in zip(lanes, looks, strict=True) if look is True]

    async def _has_abandoned(self, lane: int, idle_s: float) -> bool:
        async def look(client: Redis) -> bool:
            try:
                idle_ms = int(idle_s * 1000)
                if await client.xpending_range(keys.orders(lane), self._group, "-", "+", 1, idle=idle_ms):
                    return True
                return bool(await self._stranded(client, lane, 0))
            except exceptions.ResponseError as error:
                if not _group_is_gone(error):
                    raise
                await self._make_group(lane)
                return False

        return await self._on(keys.orders(lane), look)

    async def _take_over(self, lane: int, idle_s: float, count: int) -> list[Delivery]:
        wanted = self._entries_of(count)

        async def claim(client: Redis) -> Any:
            try:
                idle_ms = int(idle_s * 1000)
                _, entries, _deleted = await client.execute_command(  # type: ignore[no-untyped-call]
                    b"XAUTOCLAIM", keys.orders(lane), self._group, self.consumer, idle_ms, "0-0", "COUNT", wanted
                )
                if len(entries) < wanted:
                    stranded = await self._stranded(client, lane, wanted - len(entries))
                    if stranded:
                        log.error("orders that no worker would have got are taken up", lane=lane, entries=len(stranded))
                    entries += stranded
            except exceptions.ResponseError as error:
                if not _group_is_gone(error):
                    raise
                await self._make_group(lane)
                return []
            if entries:
                await self._replicated(client, lane)
            return entries

        entries = await self._on(keys.orders(lane), claim, self._grace_s)
        return self._parse_all([(lane, entry_id, fields) for entry_id, fields in entries])

    async def _stranded(self, client: Redis, lane: int, count: int) -> list[Any]:
        """Takes up to `count` entries that no consumer would ever get. With 0 it takes none, but returns the oldest."""
        command = ("EVAL", _TAKE_STRANDED, 1, keys.orders(lane), self._group, self.consumer, count)
        found: list[Any] = await client.execute_command(*command)  # type: ignore[no-untyped-call]
        return found

    async def settle(self, deliveries: Sequence[Delivery]) -> Settled:
        acknowledged = deleted = 0
        failure: TransportUnavailable | None = None
        for lane, entries in whole_entries(deliveries).items():
            try:
                counts = await self._settle(lane, entries)
            except TransportUnavailable as error:
                if self._servers.together:
                    raise
                failure = error  # the other lanes are settled all the same
                continue
            acknowledged += counts[0]
            deleted += counts[1]
        if failure is not None:
            raise failure
        return Settled(acknowledged, deleted)

    async def _settle(self, lane: int, entries: Mapping[str, int]) -> list[int]:
        parts = [part for entry in entries.items() for part in entry]
        keys_ = (keys.orders(lane), keys.queue(lane))
        # Sent with the script's whole text, which costs little for a thousand orders: so settling is one call, even if
        # the server has forgotten the script.
        found: list[int] = await self._send(keys_[0], "EVAL", _SETTLE, len(keys_), *keys_, self._group, *parts)
        return found

    async def backlog(self, lanes: Collection[int]) -> int:
        return sum(orders_waiting(*each) for each in await self._lengths(lanes))

    async def _lengths(self, lanes: Collection[int]) -> list[tuple[int, bytes | None]]:
        commands = [
            (key, command)
            for lane in lanes
            for key, command in (
                (keys.orders(lane), ("XLEN", keys.orders(lane))),
                (keys.queue(lane), ("HGET", keys.queue(lane), "more")),
            )
        ]
        with translated():
            async with asyncio.timeout(GRACE_S):
                replies = await self._servers.read_all(commands)
        return list(zip(replies[::2], replies[1::2], strict=True))

    async def flow(self, lanes: Collection[int]) -> dict[int, LaneFlow]:
        waiting = [orders_waiting(*each) for each in await self._lengths(lanes)]
        commands = [(keys.days(lane), ("HVALS", keys.days(lane))) for lane in lanes]
        with translated():
            async with asyncio.timeout(GRACE_S):
                days = await self._servers.read_all(commands)
        return {
            lane: LaneFlow(sum(int(each) for each in counts if each.isdigit()), many)
            for lane, counts, many in zip(lanes, days, waiting, strict=True)
        }

    async def queues(self, lanes: Collection[int]) -> dict[int, Queue]:
        found = {}
        for lane in lanes:
            key = keys.orders(lane)
            try:
                facts = await self._on(key, lambda client, key=key: client.xinfo_stream(key))  # type: ignore[misc]
            except TransportUnavailable as error:
                # such an error says that there is no stream
                if not isinstance(error.__cause__, exceptions.ResponseError):
                    raise
                facts = {"entries-added": 0, "length": 0}
            found[lane] = Queue(facts["entries-added"], facts["length"])
        return found

    async def entries(self, lanes: Collection[int]) -> AsyncIterator[Sequence[Delivery]]:
        for lane in lanes:
            key, after = keys.orders(lane), "-"
            while found := await self._send(key, "XRANGE", key, after, "+", "COUNT", ENTRIES_PORTION):
                yield [each for entry_id, fields in found for each in parse(lane, entry_id, _flat(fields))]
                after = f"({found[-1][0].decode()}"

    async def retire_consumers(self, idle_s: float) -> int:
        retired = 0
        for lane in self._lanes:
            key = keys.orders(lane)
            retired += await self._send(key, "EVAL", _RETIRE, 1, key, self._group, int(idle_s * 1000), self.consumer)
        return retired

    async def publish_states(self, states: States) -> None:
        await self._publish(keys.STATES_CHANNEL, states)

    async def state_changes(self) -> AsyncIterator[States]:
        async with aclosing(self._published(keys.STATES_CHANNEL, dict[str, list[int]])) as published:
            async for states in published:
                yield states

    async def publish_version(self, round_id: int, version: int) -> None:
        await self._publish(keys.VERSIONS_CHANNEL, (round_id, version))

    async def version_changes(self) -> AsyncIterator[tuple[int, int]]:
        async with aclosing(self._published(keys.VERSIONS_CHANNEL, tuple[int, int])) as published:
            async for announced in published:
                yield announced

    async def _publish(self, channel: str, message: object) -> None:
        # A cluster passes the message on to all its nodes, wherever the listeners are.
        await self._send(channel, "PUBLISH", channel, msgspec.json.encode(message))

    async def _published(self, channel: str, type_: type[T]) -> AsyncGenerator[T]:
        with translated():
            server = await self._servers.of(channel)
            try:
                async with server.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(channel)
                    async for message in pubsub.listen():
                        try:
                            told = msgspec.json.decode(message["data"], type=type_)
                        except (msgspec.MsgspecError, UnicodeDecodeError):
                            continue  # from another version; a node that misses it asks the gate itself
                        yield told
            except (exceptions.RedisError, OSError) as error:
                self._servers.heed(error)
                raise

    async def close(self) -> None:
        for reading in self._readings.values():
            reading.cancel()
        await asyncio.gather(*self._readings.values(), return_exceptions=True)
        await self._servers.close()


def orders_waiting(entries: int, more: bytes | None) -> int:
    """Returns how many orders a stream with this many entries has. For an empty stream the extra count means
    nothing."""
    return entries + int(more) if entries and more and more.isdigit() else entries


@contextmanager
def translated() -> Any:
    try:
        yield
    except (exceptions.RedisError, TimeoutError, OSError) as error:
        raise TransportUnavailable(f"The order streams cannot be reached ({type(error).__name__}: {error}).") from error


def _group_is_gone(error: exceptions.ResponseError) -> bool:
    return str(error).startswith(("NOGROUP", "UNBLOCKED")) or is_wrong_type(error)
