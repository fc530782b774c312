"""The auditor's own way to the gate: finds out which server has a key, from those that decide it.

A replaced primary may go on answering as a primary, with its old data, until it is told. So all Sentinels, or all nodes
of a cluster, are asked every time, and the claim with the highest epoch counts. If fewer than half of them answer,
those may all be on the wrong side of a network split, and nothing can be said.

The auditor looks up again after reading: if a server has replaced another meanwhile (`standing`), its reading is void.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from redis import DriverInfo, exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from seckill.backends.redis.addresses import HELP, Address, ManyUrl, parse_many
from seckill.errors import StartError

T = TypeVar("T")

TIMEOUT_S = 5.0
# A silent server delays every reading by this much, until it is back or no other server names it any more.
LOOK_UP_WITHIN_S = 1.0
# Without this, the library reads its own version from the disk for every connection.
DRIVER = DriverInfo()


@dataclass(frozen=True, slots=True)
class AuditedNode:
    """`name`: the name under which the keeper vouches for it; empty where there is only one server, which nothing
    replaces."""

    name: str
    client: Redis


class GateServers(ABC):
    """`standing` changes whenever keys move to another server."""

    lasting = False  # the one server that there is

    def __init__(self) -> None:
        self.standing = 0
        self._clients: dict[str, Redis] = {}

    @abstractmethod
    async def look_up(self) -> None: ...

    @abstractmethod
    def of(self, key: str) -> AuditedNode: ...

    async def drop_connections(self) -> None:
        """Makes the next questions go over new connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    def _client(self, url: str) -> Redis:
        if url not in self._clients:
            self._clients[url] = _connect(url)
        return self._clients[url]


class AuditedServer(GateServers):
    lasting = True

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._client(url)

    async def look_up(self) -> None:
        """There is nothing to look up."""

    def of(self, key: str) -> AuditedNode:
        return AuditedNode("", self._client(self._url))


class AuditedSentinel(GateServers):
    def __init__(self, url: ManyUrl) -> None:
        super().__init__()
        self._url = url
        self._client(url.of(url.seeds[0]))  # lets the library check the rest of the address
        self._named: tuple[int, Address] | None = None

    async def look_up(self) -> None:
        answers = await _ask_all("Sentinels", self._url.seeds, self._ask)
        newest = max(answers)
        if self._named is not None and newest[0] < self._named[0]:
            raise exceptions.ConnectionError("the Sentinels that answer have not heard of the last failover")
        if newest != self._named:
            self._named = newest
            self.standing += 1

    async def _ask(self, seed: Address) -> tuple[int, Address]:
        client = self._client(self._url.of_sentinel(seed))
        # Sent as two words, because for "SENTINEL MASTER" the library would reshape the reply.
        reply: Any = await client.execute_command("SENTINEL", "MASTER", self._url.name)  # type: ignore[no-untyped-call]
        facts = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
        return int(facts[b"config-epoch"]), (facts[b"ip"].decode(), int(facts[b"port"]))

    def of(self, key: str) -> AuditedNode:
        if self._named is None:
            raise exceptions.ConnectionError("no Sentinel has named a primary yet")
        host, port = self._named[1]
        return AuditedNode(f"{host}:{port}", self._client(self._url.of((host, port))))


@dataclass(frozen=True, slots=True)
class _Claim:
    """Says that a node has these slots. The claim with the higher epoch is right, as among the nodes themselves."""

    epoch: int
    name: str
    address: Address
    slots: range


class AuditedCluster(GateServers):
    def __init__(self, url: ManyUrl) -> None:
        super().__init__()
        self._url = url
        self._client(url.of(url.seeds[0]))
        self._claims: frozenset[_Claim] = frozenset()  # of all nodes, whatever they agree about

    async def look_up(self) -> None:
        known = {claim.address for claim in self._claims}
        answers = await _ask_all("nodes of the cluster", list(dict.fromkeys([*self._url.seeds, *known])), self._ask)
        claims = frozenset().union(*answers)
        if claims != self._claims:
            self._claims = claims
            self.standing += 1

    async def _ask(self, node: Address) -> frozenset[_Claim]:
        client = self._client(self._url.of(node))
        reply: Any = await client.execute_command("CLUSTER", "NODES")  # type: ignore[no-untyped-call]
        return frozenset(_read_claims(reply.decode(), node))

    def of(self, key: str) -> AuditedNode:
        slot = key_slot(key.encode())
        owner = max((claim for claim in self._claims if slot in claim.slots), key=_epoch, default=None)
        if owner is None:
            raise exceptions.ConnectionError(f"slot {slot} of the cluster has no primary")
        return AuditedNode(owner.name, self._client(self._url.of(owner.address)))


def _epoch(claim: _Claim) -> int:
    return claim.epoch


def _read_claims(nodes: str, told_by: Address) -> Iterator[_Claim]:
    """`name host:port@bus,hostname flags primary ping pong epoch link slot slot-slot [slot->-name] …` a line."""
    for line in nodes.splitlines():
        name, at, _, _, _, _, epoch, _, *slots = line.split(" ")
        host, _, port = at.split(",")[0].partition("@")[0].rpartition(":")
        address = (host.strip("[]") or told_by[0], int(port))
        for part in slots:
            if not part.startswith("["):  # a slot that is being moved still counts as being where it was
                first, _, last = part.partition("-")
                yield _Claim(int(epoch), name, address, range(int(first), int(last or first) + 1))


async def _ask_all(whom: str, addresses: Sequence[Address], ask: Callable[[Address], Awaitable[T]]) -> list[T]:
    async def one(address: Address) -> T:
        async with asyncio.timeout(LOOK_UP_WITHIN_S):
            return await ask(address)

    found = await asyncio.gather(*map(one, addresses), return_exceptions=True)
    answers = [answer for answer in found if not isinstance(answer, BaseException)]
    if 2 * len(answers) < len(addresses) or not answers:
        failure = next(answer for answer in found if isinstance(answer, BaseException))
        raise exceptions.ConnectionError(
            f"of {len(addresses)} {whom}, {len(answers)} answer, which may have the wrong primary: {failure!r}"
        )
    return answers


def open_servers(url: str) -> GateServers:
    kind = url.partition(":")[0]
    if kind.endswith("+cluster"):
        return AuditedCluster(parse_many(url))
    return AuditedSentinel(parse_many(url)) if kind.endswith("+sentinel") else AuditedServer(url)


def _connect(url: str) -> Redis:
    timeouts: dict[str, Any] = {"socket_connect_timeout": TIMEOUT_S, "socket_timeout": TIMEOUT_S}
    try:
        client = Redis.from_url(url, retry=Retry(NoBackoff(), 0), retry_on_error=[], driver_info=DRIVER, **timeouts)
        # Makes the library check the parameters now. It does not connect.
        client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError) as error:
        raise StartError(f"SECKILL_REDIS_URL cannot be understood ({error}): {HELP}.") from error
    return client
