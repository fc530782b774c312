"""What the lane streams promise beyond the suite: a group that was destroyed, and consumers by name."""

import asyncio
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.streams import StreamTransport, parse
from tests.backends.transport.conftest import LANES, admit, open_rounds
from tests.fixtures.backends import RedisBackend
from tests.patience import PATIENCE_S


@pytest.fixture
def client(redis_backend: RedisBackend) -> Any:
    return redis_backend.client


@pytest.mark.parametrize("loss", ["group", "stream"])
async def test_a_lost_group_is_made_again_and_nothing_is_missed(
    redis_backend: RedisBackend, client: Any, loss: str
) -> None:
    """XGROUP DESTROY or DEL in the middle (F37)."""
    gate, transport = redis_backend.gate(), redis_backend.transport()
    await open_rounds(gate)
    await transport.prepare(LANES)
    await admit(gate, 2)
    assert len(await transport.read(10, 0)) == 2
    if loss == "group":
        await client.xgroup_destroy(keys.orders(3), keys.WORKERS_GROUP)
        expected = 3  # the two that were read and not settled come again
    else:
        await client.delete(keys.orders(3))
        expected = 1
    await admit(gate, 1, "late")
    await transport.read(10, 0)
    assert len(await transport.read(10, 0)) == expected


async def test_consumers_have_names_of_their_own_and_do_not_pile_up(redis_backend: RedisBackend, client: Any) -> None:
    holder, other = (redis_backend.transport() for _ in range(2))
    assert isinstance(holder, StreamTransport)
    assert isinstance(other, StreamTransport)
    assert holder.consumer != other.consumer
    gate = redis_backend.gate()
    await open_rounds(gate)
    for transport in (holder, other):
        await transport.prepare([3])
    await admit(gate, 1)
    await holder.settle(await holder.read(10, 0))
    await other.read(10, 0)
    assert await other.retire_consumers(0) == 1
    names = [c["name"].decode() for c in await client.xinfo_consumers(keys.orders(3), keys.WORKERS_GROUP)]
    assert holder.consumer not in names


async def test_announcements_of_another_version_are_passed_over(redis_backend: RedisBackend, client: Any) -> None:
    """While nodes are replaced one after the other, there are both. Who waits asks the ledger, a second later."""
    sender = redis_backend.transport()
    changes = redis_backend.transport().state_changes()
    waiting = asyncio.ensure_future(anext(changes))
    async with asyncio.timeout(PATIENCE_S):
        while not waiting.done():
            await client.publish(keys.STATES_CHANNEL, b'{"4294967299":"unpaid"}')
            await client.publish(keys.STATES_CHANNEL, b'{"\xff":[1]}')
            await sender.publish_states({"unpaid": [4294967299]})
            await asyncio.wait([waiting], timeout=0.05)
    assert await waiting == {"unpaid": [4294967299]}
    await changes.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("fields", [None, [], [b"other", b"{}"]])
def test_an_entry_without_its_field_says_so(fields: list[bytes] | None) -> None:
    delivery = parse(3, b"1-1", fields)
    assert delivery.admission is None
    assert delivery.problem


def test_a_field_that_was_put_before_it_hides_no_order() -> None:
    assert parse(3, b"1-1", [b"note", b"mended by hand", b"order", b"text"]).payload == b"text"
