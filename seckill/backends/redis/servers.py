"""Finds the server that has a key: the only one, the primary that Sentinel names, or the primary of the key's slot.

Nothing here repeats a call that may have been carried out. `follow` only goes to another server when the first one has
said that the key is elsewhere, and so has done nothing.
"""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from redis import DriverInfo, exceptions
from redis.asyncio import Redis
from redis.asyncio.connection import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from seckill.backends.redis.addresses import HELP, Address, beside, parse_many
from seckill.backends.redis.connection import candid
from seckill.errors import StartError
from seckill.settings.redaction import redact_url

T = TypeVar("T")

CONNECT_TIMEOUT_S = 2
# With more calls than this, callers wait for each other. Claims need one connection for each running round.
CONNECTIONS_MAX = 64
# A reader of a cluster's streams needs one connection for each lane.
LANES_MAX = 256
# After this time, which server has which key is looked up again in the background, so that a primary which does not
# know that it was replaced is noticed too.
KNOWN_FOR_S = 1.0
# The shortest time between two look-ups, however many calls fail.
LOOKED_UP_EVERY_S = 0.1
LOOK_UP_WITHIN_S = 1.0
REDIRECTS_MAX = 4
# Without this, the library reads its own version from the disk for every connection.
DRIVER = DriverInfo()

_AWAY = (exceptions.ConnectionError, exceptions.TimeoutError, OSError, TimeoutError)
# Errors of a server that has done nothing because it no longer has its part, or does not have it yet.
_DISPLACED = (exceptions.ReadOnlyError, exceptions.ClusterDownError, exceptions.MasterDownError)


def connect(url: str, connections_max: int = CONNECTIONS_MAX) -> Redis:
    """A client that never repeats a call by itself: repeating an admission is the buyer's decision, not a library's."""
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            retry_on_error=[],
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            driver_info=DRIVER,
            max_connections=connections_max,
            timeout=None,  # each caller that waits for a connection sets its own deadline
        )
        # Makes the library check the parameters now. It does not connect.
        pool.make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError) as error:
        raise StartError(f"SECKILL_REDIS_URL cannot be understood ({error}): {HELP}.") from error
    pool.connection_class = candid(pool.connection_class)
    return Redis.from_pool(pool)


@dataclass(frozen=True, slots=True)
class Server:
    """One server. `name` identifies it; it is empty where there is only one server, which nothing replaces."""

    name: str
    client: Redis


class Servers(ABC):
    """Gives for each key the server that has it."""

    lasting = False  # the server is never replaced by another
    together = True  # all keys are on one server, so one command may name keys of several lanes

    def __init__(self, url: str) -> None:
        self.where = redact_url(url)
        self.changes = 0  # how often one server was seen to take the place of another

    @abstractmethod
    async def of(self, key: str) -> Server: ...

    @abstractmethod
    async def primaries(self) -> Sequence[Server]: ...

    @abstractmethod
    def heed(self, error: BaseException) -> bool:
        """Learns from an error which server has which key. Returns True if the call has done nothing and has to go
        elsewhere."""

    @abstractmethod
    def client_at(self, address: Address) -> Redis:
        """Returns a client for a server that one of ours has named, such as its replica."""

    @abstractmethod
    async def close(self) -> None: ...

    async def follow(self, key: str, call: Callable[[Server], Awaitable[T]]) -> T:
        """Makes one call to the server that has the key."""
        for redirects_left in reversed(range(REDIRECTS_MAX)):
            server = await self.of(key)
            try:
                return await call(server)
            except (exceptions.RedisError, OSError, TimeoutError, asyncio.CancelledError) as error:
                if not self.heed(error) or not redirects_left:
                    raise
        raise AssertionError("unreachable")

    async def grouped(self, keys: Sequence[str]) -> list[list[int]]:
        """Groups the positions in this list of keys by the server that has them."""
        if self.together:
            return [list(range(len(keys)))] if keys else []
        groups: dict[str, list[int]] = {}
        for i, key in enumerate(keys):
            groups.setdefault((await self.of(key)).name, []).append(i)
        return list(groups.values())

    async def read_all(self, wanted: Sequence[tuple[str, Sequence[object]]]) -> list[Any]:
        """Returns replies to read-only commands, each from the server that has its key."""
        replies: list[Any] = [None] * len(wanted)

        async def read(group: list[int]) -> None:
            async def call(server: Server) -> list[Any]:
                async with server.client.pipeline(transaction=False) as pipeline:
                    for i in group:
                        pipeline.execute_command(*wanted[i][1])
                    return await pipeline.execute()

            for i, reply in zip(group, await self.follow(wanted[group[0]][0], call), strict=True):
                replies[i] = reply

        await asyncio.gather(*map(read, await self.grouped([key for key, _ in wanted])))
        return replies


class OneServer(Servers):
    lasting = True

    def __init__(self, url: str, connections_max: int = CONNECTIONS_MAX) -> None:
        super().__init__(url)
        self._url = url
        self._others: dict[Address, Redis] = {}
        self._server = Server("", connect(url, connections_max))
        facts = self._server.client.connection_pool.connection_kwargs
        self.where = str(facts.get("path") or f"{facts.get('host')}:{facts.get('port')}")

    async def of(self, key: str) -> Server:
        return self._server

    async def primaries(self) -> Sequence[Server]:
        return [self._server]

    def heed(self, error: BaseException) -> bool:
        return False

    def client_at(self, address: Address) -> Redis:
        if address not in self._others:
            self._others[address] = connect(beside(self._url, address))
        return self._others[address]

    async def close(self) -> None:
        for client in (self._server.client, *self._others.values()):
            await client.aclose()


class FoundServers(Servers):
    """Servers that have to be looked up, and looked up again after they have changed roles."""

    def __init__(self, url: str, connections_max: int) -> None:
        super().__init__(url)
        self.url = parse_many(url)
        connect(self.url.of(self.url.seeds[0]))  # lets the library check the rest of the address
        self.where = ",".join(f"{host}:{port}" for host, port in self.url.seeds)
        self._connections_max = connections_max
        self._clients: dict[str, Redis] = {}
        self._stale = True
        self._known = False
        self._looked_up_s = 0.0
        self._looking: asyncio.Task[None] | None = None

    @abstractmethod
    async def _look_up(self) -> None: ...

    async def _current(self) -> None:
        """Returns when it is known which server has which keys, as far as any server answers."""
        age_s = time.monotonic() - self._looked_up_s
        if not self._known:
            await self._look_up_once()
        elif self._stale and age_s >= LOOKED_UP_EVERY_S:
            with contextlib.suppress(*_AWAY, exceptions.ResponseError):  # the call itself will fail with the reason
                await self._look_up_once()
        elif age_s >= KNOWN_FOR_S:
            self._start_looking()

    async def _look_up_once(self) -> None:
        """Looks up once. Callers that come meanwhile wait for the same answer."""
        await asyncio.shield(self._start_looking())

    def _start_looking(self) -> asyncio.Task[None]:
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._looking

    async def _look(self) -> None:
        try:
            await self._look_up()
            self._known, self._stale = True, False
        finally:
            self._looked_up_s = time.monotonic()
            self._looking = None

    def client(self, url: str) -> Redis:
        if url not in self._clients:
            self._clients[url] = connect(url, self._connections_max)
        return self._clients[url]

    def client_at(self, address: Address) -> Redis:
        return self.client(self.url.of(address))

    def heed(self, error: BaseException) -> bool:
        if isinstance(error, (*_AWAY, *_DISPLACED, asyncio.CancelledError)):
            self._stale = True
        return False

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for client in self._clients.values():
            await client.aclose()
