"""A Valkey/Redis Cluster: every slot has a primary, and slots and primaries change.

Nodes may disagree for a while about who has a slot. The claim with the higher epoch wins, as among the nodes
themselves, so that a node which was cut off cannot lead us back to a replaced primary.

While a slot is being moved, some of its keys are on the old primary and some on the new one. Nothing is read or written
on the new one before the whole slot has arrived (redirections by ASK count as refusals): creating a key there that
still exists on the old one would block the move for good, and a key that has not arrived yet is not lost.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions
from redis.asyncio import Redis
from redis.crc import key_slot

from seckill.backends.redis.addresses import Address
from seckill.backends.redis.servers import CONNECTIONS_MAX, LOOK_UP_WITHIN_S, FoundServers, Server

SLOTS = 16384
# A server's errors for keys in a slot that is being moved: they have moved already, or not all of them are here.
ON_THE_WAY = (exceptions.AskError, exceptions.TryAgainError)


@dataclass(frozen=True, slots=True)
class _Owner:
    server: Server
    epoch: int


class ClusterServers(FoundServers):
    together = False

    def __init__(self, url: str, connections_max: int = CONNECTIONS_MAX) -> None:
        super().__init__(url, connections_max)
        self._owners: list[_Owner | None] = [None] * SLOTS
        self._primaries: dict[str, Address] = {}
        self._learnt: tuple[Any, Mapping[str, int]] | None = None
        self._told_by: Address | None = None  # the node that the last redirection named: it knows best about that slot

    async def of(self, key: str) -> Server:
        await self._current()
        slot = key_slot(key.encode())
        owner = self._owners[slot]
        if owner is None:
            raise exceptions.ClusterDownError(f"slot {slot} of the cluster has no primary")
        return owner.server

    async def primaries(self) -> Sequence[Server]:
        await self._current()
        return [Server(name, self.client_at(address)) for name, address in self._primaries.items()]

    @property
    def uncovered(self) -> int:
        """The number of slots that no primary has."""
        return sum(owner is None for owner in self._owners)

    def heed(self, error: BaseException) -> bool:
        if isinstance(error, exceptions.MovedError):
            self._told_by = (error.host, error.port) if error.host else None
            self._stale, self._looked_up_s = True, 0.0
            return True
        return super().heed(error)

    async def _look_up(self) -> None:
        first = [self._told_by] if self._told_by else []
        known = list(self._primaries.values())
        known = known[1:] + known[:1]  # not always the same node first: it may be cut off
        self._told_by = None
        failure: Exception | None = None
        for address in dict.fromkeys([*first, *known, *self.url.seeds]):
            try:
                async with asyncio.timeout(LOOK_UP_WITHIN_S):
                    slots, nodes = await self._ask(self.client_at(address))
            except (exceptions.RedisError, OSError, TimeoutError) as error:
                failure = error
                continue
            self._learn(address, slots, _epochs(nodes))
            return
        if isinstance(failure, exceptions.AuthenticationError | exceptions.ResponseError):
            raise failure
        raise exceptions.ConnectionError(f"no node of the cluster answers, the last one said: {failure}")

    async def _ask(self, client: Redis) -> tuple[Any, str]:
        async with client.pipeline(transaction=False) as pipeline:
            # Sent as two words, because for "CLUSTER SLOTS" the library would reshape the reply and drop the nodes'
            # names.
            pipeline.execute_command("CLUSTER", "SLOTS")
            pipeline.execute_command("CLUSTER", "NODES")
            slots, nodes = await pipeline.execute()
        return slots, nodes.decode()

    def _learn(self, told_by: Address, slots: Any, epochs: Mapping[str, int]) -> None:
        if self._learnt == (slots, epochs):
            return
        self._learnt = (slots, epochs)
        self.changes += 1
        claimed: dict[str, Address] = {}
        for first, last, primary, *_ in slots:
            host, port, name = primary[0], primary[1], primary[2].decode()
            host = host.decode() if host else told_by[0]  # a node need not know its own address
            claimed[name] = (host, port)
            owner = _Owner(Server(name, self.client_at((host, port))), epochs.get(name, 0))
            for slot in range(first, last + 1):
                known = self._owners[slot]
                if known is None or known.epoch <= owner.epoch or known.server.name not in epochs:
                    self._owners[slot] = owner
        owners = {owner.server.name for owner in self._owners if owner is not None}
        self._primaries = {name: at for name, at in (self._primaries | claimed).items() if name in owners}


def _epochs(nodes: str) -> dict[str, int]:
    """Returns the epoch of each node by its name. Each line is `name address flags primary ping pong epoch link
    slots…`."""
    lines = (line.split(" ") for line in nodes.splitlines())
    return {fields[0]: int(fields[6]) for fields in lines if len(fields) > 6}
