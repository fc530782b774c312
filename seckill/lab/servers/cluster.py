"""A Valkey/Redis Cluster on this machine: for tests and for fault runs, not for sales."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from redis.crc import key_slot

from seckill.lab.servers.ports import HOST, free_ports
from seckill.lab.servers.replicated import Node, ReplicatedServers, start_all, until
from seckill.local.valkey import Durability

SLOTS = 16384
KEYS_AT_ONCE = 10
ALL_PACKETS = -2


class LocalCluster(ReplicatedServers):
    """`start` it from the main thread (see `tether.py`) and `stop` it at the end."""

    def __init__(
        self,
        folder: Path,
        *,
        durability: Durability = "strict",
        primaries: int = 3,
        replicas: int = 1,
        node_timeout_s: float = 15.0,
        program: Path | None = None,
    ) -> None:
        count = primaries * (1 + replicas)
        ports = free_ports(2 * count)
        options = {
            "cluster-enabled": "yes",
            "cluster-node-timeout": str(int(node_timeout_s * 1000)),
            # A primary that is down stops its own lanes and no others.
            "cluster-require-full-coverage": "no",
            # Any replica may take over, however long it has lagged: fault runs rely on that.
            "cluster-replica-validity-factor": "0",
            "enable-debug-command": "local",
        }
        super().__init__(
            [
                Node(folder / f"node-{i}", port, durability, options | {"cluster-port": str(bus)}, program)
                for i, (port, bus) in enumerate(zip(ports[:count], ports[count:], strict=True))
            ]
        )
        self._primaries = primaries

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(node.address for node in self.nodes)}"

    async def start(self) -> None:
        """Takes about two seconds."""
        await start_all(self.nodes)
        first, names = self.nodes[0], [await self._name(node) for node in self.nodes]
        bounds = [SLOTS * i // self._primaries for i in range(self._primaries + 1)]
        for i, node in enumerate(self.nodes[: self._primaries]):
            await node.ask("CLUSTER", "ADDSLOTSRANGE", bounds[i], bounds[i + 1] - 1)
            await node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:]:
            bus = (await node.ask("CONFIG", "GET", "cluster-port"))[1].decode()
            await first.ask("CLUSTER", "MEET", HOST, node.port, bus)
        await until("all nodes know each other", self._everybody_knows_everybody)
        for i, node in enumerate(self.nodes[self._primaries :]):
            await node.ask("CLUSTER", "REPLICATE", names[i % self._primaries])
        await self.settle()

    async def settle(self) -> None:
        """Waits until every node that runs serves, sees all slots served, and every replica has caught up."""
        await until("every node sees all slots served", lambda: self._all(self._sees_all_slots))
        # A primary that has just started says for two seconds that the cluster is down, whatever it sees.
        await until("every node serves", lambda: self._all(self._serves))
        await until("every replica is linked", lambda: self._all(self._is_primary_or_linked))

    async def _revive(self, dead: Sequence[Node]) -> None:
        await start_all(dead)
        await self.settle()

    async def primaries(self) -> list[Node]:
        return [node for node in self._answering() if (await node.facts("replication"))["role"] == "master"]

    async def primary_of(self, key: str) -> Node:
        slot = key_slot(key.encode())
        for node in self._answering():
            for first, last, primary, *_ in await node.ask("CLUSTER", "SLOTS"):
                if first <= slot <= last:
                    return self._at(int(primary[1]))
        raise LookupError(f"nobody has slot {slot}")

    async def depose(self, primary: Node) -> Node:
        """Lets the replica take over while the primary is silent. From now on the primary hears no other node, so none
        can tell it: when it goes on, it answers as a primary until it takes all others for dead."""
        replica = await self.replica_of(primary)
        await primary.ask("DEBUG", "DROP-CLUSTER-PACKET-FILTER", ALL_PACKETS)
        primary.pause()
        await until("the replica takes over", lambda: self._takes_over(replica))
        return replica

    async def move_slot(self, key: str, target: Node, pause_s: float = 0.0) -> int:
        """Moves the key's slot to another primary as `valkey-cli --cluster reshard` does. Returns how many keys it had.

        `pause_s`: waits between the steps, so that callers meet a slot which is half here and half there.
        """
        moved = 0
        async for found in self.moves_of_slot(key, target, 1 if pause_s else KEYS_AT_ONCE):
            moved += len(found)
            await asyncio.sleep(pause_s)
        return moved

    async def moves_of_slot(
        self, key: str, target: Node, keys_at_once: int = 1, last: str = ""
    ) -> AsyncIterator[list[bytes]]:
        """The same, step by step: yields when the move is announced, and after each portion of keys. When it ends, the
        slot has its new place. `last`: the key that moves last."""
        slot, source = key_slot(key.encode()), await self.primary_of(key)
        to, from_ = await self._name(target), await self._name(source)
        await target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", from_)
        await source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to)
        yield []
        while keys := await source.ask("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE):
            found = sorted(keys, key=lambda each: each == last.encode())[:keys_at_once]
            await source.ask("MIGRATE", HOST, target.port, "", 0, 5000, "KEYS", *found)
            yield found
        for node in [target, source, *await self.primaries()]:
            await node.ask("CLUSTER", "SETSLOT", slot, "NODE", to)

    async def _takes_over(self, replica: Node) -> bool:
        """Takes over at once, without waiting for other nodes to notice."""
        if (await replica.facts("replication"))["role"] == "master":
            return True
        await replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
        return False

    async def _name(self, node: Node) -> str:
        name: bytes = await node.ask("CLUSTER", "MYID")
        return name.decode()

    async def _all(self, look: Callable[[Node], Awaitable[bool]]) -> bool:
        return all([await look(node) for node in self._answering()])

    async def _everybody_knows_everybody(self) -> bool:
        return await self._all(self._knows_everybody)

    async def _knows_everybody(self, node: Node) -> bool:
        lines = (await node.ask("CLUSTER", "NODES")).decode().splitlines()
        return len(lines) == len(self.nodes) and not any("handshake" in line for line in lines)

    async def _sees_all_slots(self, node: Node) -> bool:
        served = await node.ask("CLUSTER", "SLOTS")
        alive = {other.port for other in self._answering()}
        return sum(int(last) - int(first) + 1 for first, last, at, *_ in served if int(at[1]) in alive) == SLOTS

    async def _serves(self, node: Node) -> bool:
        return b"cluster_state:ok" in await node.ask("CLUSTER", "INFO")

    async def _is_primary_or_linked(self, node: Node) -> bool:
        facts = await node.facts("replication")
        return facts["role"] == "master" or facts.get("master_link_status") == "up"
