"""Set-ups that cannot do are refused with one sentence."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from seckill.backends.redis.gate import RedisGate
from seckill.errors import StartError
from seckill.lab.servers.cluster import LocalCluster
from seckill.lab.servers.ports import free_ports
from seckill.lab.servers.replicated import Node, until
from seckill.settings import Settings
from tests.fixtures.valkey import valkey_program
from tests.patience import PATIENCE_S


async def refusal(url: str, durability: str = "fast", replica_acks: int = 0) -> str:
    gate = RedisGate(url, timeout_s=PATIENCE_S, backlog_max=1, replica_acks=replica_acks)
    try:
        with pytest.raises(StartError) as caught:
            await gate.check(durability)
    finally:
        await gate.close()
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith(".")
    return said


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Node]:
    """A server that is no cluster, without a command that seckill needs."""
    node = Node(tmp_path, free_ports(1)[0], "fast", {"rename-command": "XAUTOCLAIM hidden"}, valkey_program())
    await node.start()
    yield node
    await node.stop()


async def test_a_server_that_is_no_cluster_or_lacks_a_command(alone: Node) -> None:
    assert "write SECKILL_REDIS_URL as redis://" in await refusal(f"redis+cluster://{alone.address}")
    assert "may not run XAUTOCLAIM" in await refusal(f"redis://{alone.address}/0")


async def test_replicas_that_are_not_there(redis_url: str) -> None:
    assert "set SECKILL_REPLICA_ACKS=0" in await refusal(redis_url, replica_acks=1)


async def test_a_cluster_addressed_wrongly(cluster: LocalCluster) -> None:
    node = (await cluster.primaries())[0]
    assert "as redis+cluster://" in await refusal(f"redis://{node.address}/0")
    assert "password" in await refusal(cluster.url.replace("://", "://nobody:wrong@"))
    (port,) = free_ports(1)
    assert "start it, or mend SECKILL_REDIS_URL" in await refusal(f"redis+cluster://127.0.0.1:{port}")
    gate = RedisGate(
        f"redis+cluster://127.0.0.1:{port},{node.address}", timeout_s=PATIENCE_S, backlog_max=1, replica_acks=1
    )
    (advice,) = await gate.check("strict")
    assert "min-replicas-to-write" in advice, "one address that answers is enough"
    await gate.close()


async def test_a_cluster_with_a_slot_that_nobody_has(cluster: LocalCluster, tmp_path: Path) -> None:
    owner = await cluster.primary_of("{06S}")  # in slot 0

    async def nobody_has_it() -> bool:
        """A message that the owner sent before may give it back to it, with those who had taken it away already."""
        for node in cluster.nodes:
            with suppress(ResponseError):
                await node.ask("CLUSTER", "DELSLOTS", 0)
        infos = [await node.ask("CLUSTER", "INFO") for node in cluster.nodes]
        return all(b"cluster_slots_assigned:16383" in info for info in infos)

    await until("nobody has the slot", nobody_has_it)
    try:
        assert "No server of the cluster has 1 of its 16384 slots" in await refusal(cluster.url, "strict", 1)
        command = [sys.executable, "-m", "seckill", "doctor"]
        environ = {"SECKILL_REDIS_URL": cluster.url, "SECKILL_DATA_DIR": str(tmp_path), "COLUMNS": "200"}
        doctor = subprocess.run(
            command, env=os.environ | environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert doctor.returncode == 1
        assert "No server of the cluster has 1 of its 16384 slots" in " ".join(doctor.stdout.split())
    finally:
        await owner.ask("CLUSTER", "ADDSLOTS", 0)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis+cluster://", "cannot be understood"),
        ("redis+cluster://one", "'one' is no host:port"),
        ("redis+cluster://one:1,two:x", "'two:x' is no host:port"),
        ("redis+cluster://one:1/3", "a cluster has only one"),
        ("redis+sentinel://one:1", "does not name the primary"),
        ("redis+ring://one:1", "there is no kind 'ring'"),
        ("redis+cluster://one:1?nonsense=1&socket_timeout=x", "cannot be understood"),
    ],
)
def test_addresses_that_cannot_be_understood(url: str, says: str) -> None:
    with pytest.raises(StartError, match=says):
        RedisGate(url, timeout_s=1, backlog_max=1)


@pytest.mark.parametrize(
    ("url", "durability", "acks", "expected"),
    [
        ("redis://one:1/0", "strict", None, 0),
        ("redis+cluster://one:1", "strict", None, 1),
        ("redis+cluster://one:1", "fast", None, 0),
        ("rediss+sentinel://one:1/shop", "strict", None, 1),
        ("redis+cluster://one:1", "strict", 0, 0),
        ("redis://one:1/0", "fast", 2, 2),
    ],
)
def test_how_many_replicas_are_waited_for(url: str, durability: str, acks: int | None, expected: int) -> None:
    settings = Settings(redis_url=url, durability=durability, replica_acks=acks)  # type: ignore[arg-type]
    assert settings.replicas_to_wait_for == expected
