"""The gate says which format a version must be able to read, and one that cannot refuses to start."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from seckill import __version__
from seckill.backends.redis import format_stamp, keys
from seckill.backends.redis.gate import RedisGate, connect
from seckill.errors import StartError
from tests.patience import PATIENCE_S


@pytest.fixture
async def gate(redis_url: str) -> AsyncIterator[RedisGate]:
    made = RedisGate(redis_url, timeout_s=PATIENCE_S, backlog_max=100)
    yield made
    await made.close()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Any]:
    client = connect(redis_url)
    yield client
    await client.aclose()


async def test_a_gate_is_stamped(gate: RedisGate, redis: Any) -> None:
    await gate.bind("a ledger")
    assert await redis.hgetall(keys.FORMAT) == {b"needs": b"1", b"by": __version__.encode()}


async def test_what_a_newer_version_has_written_is_refused(gate: RedisGate, redis: Any) -> None:
    await redis.hset(keys.FORMAT, mapping={"needs": 3, "by": "7.3.0"})
    for _ in range(2):  # the refused do not take it back
        with pytest.raises(StartError, match=r"what seckill 7\.3\.0 has written, .* install that one or a later one"):
            await gate.bind("a ledger")


async def test_what_is_needed_rises_and_never_falls(
    gate: RedisGate, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gate.bind("a ledger")
    monkeypatch.setattr(format_stamp, "FORMAT", 3)
    monkeypatch.setattr(format_stamp, "NEEDS", 2)
    await gate.bind("a ledger")
    monkeypatch.setattr(format_stamp, "NEEDS", 1)
    await gate.bind("a ledger")
    assert await redis.hget(keys.FORMAT, "needs") == b"2"
    monkeypatch.setattr(format_stamp, "FORMAT", 1)
    with pytest.raises(StartError, match="cannot read it"):
        await gate.bind("a ledger")


@pytest.mark.parametrize("damage", [{"needs": "nonsense", "by": "x"}, {"by": "x"}, "a string"])
async def test_a_damaged_stamp_is_made_anew(gate: RedisGate, redis: Any, damage: Any) -> None:
    await (redis.set(keys.FORMAT, damage) if isinstance(damage, str) else redis.hset(keys.FORMAT, mapping=damage))
    await gate.bind("a ledger")
    assert await redis.hgetall(keys.FORMAT) == {b"needs": b"1", b"by": __version__.encode()}
