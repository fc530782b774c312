"""The lane streams promise more than the suite tests: a group that was destroyed, and consumers by name."""

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


@pytest.mark.parametrize("in_hand", [0, 2])
@pytest.mark.parametrize("how", ["set", "made again"])
async def test_a_group_that_stands_behind_entries_misses_none(
    redis_backend: RedisBackend, client: Any, how: str, in_hand: int
) -> None:
    """XGROUP SETID $, or XGROUP CREATE $: no reading gives out what was there before, and no consumer has it."""
    gate, transport, other = redis_backend.gate(), redis_backend.transport(), redis_backend.transport()
    await open_rounds(gate)
    await transport.prepare(LANES)
    await other.prepare(LANES)
    admitted = await admit(gate, in_hand, "first") if in_hand else []
    held = await other.read(10, 0) if in_hand else []
    admitted += await admit(gate, 3)
    key = keys.orders(3)
    if how == "made again":
        await client.xgroup_destroy(key, keys.WORKERS_GROUP)
        await client.xgroup_create(key, keys.WORKERS_GROUP, "$")
    else:
        await client.xgroup_setid(key, keys.WORKERS_GROUP, "$")
        await other.settle(held)
    assert await transport.read(10, 0) == []
    late = await admit(gate, 1, "late")
    taken = await transport.take_over(PATIENCE_S, 10)
    found = {delivery.admission.number for delivery in taken if delivery.admission is not None}
    assert found == set(admitted[0 if how == "made again" else in_hand :])
    assert await transport.take_over(PATIENCE_S, 10) == [], "once: they are in hand"
    (newest,) = await transport.read(10, 0)
    assert newest.admission is not None
    assert [newest.admission.number] == late
    settled = await transport.settle([*taken, newest])
    assert settled.acknowledged == settled.deleted == len(taken) + 1
    assert await client.xlen(key) == 0


async def test_entries_in_hand_are_not_taken_from_their_worker(redis_backend: RedisBackend) -> None:
    gate, transport, other = redis_backend.gate(), redis_backend.transport(), redis_backend.transport()
    await open_rounds(gate)
    await transport.prepare(LANES)
    await other.prepare(LANES)
    await admit(gate, 3)
    assert len(await other.read(2, 0)) == 2
    assert await transport.take_over(PATIENCE_S, 10) == []


@pytest.mark.parametrize("lane", LANES)
async def test_something_else_in_the_place_of_a_queue_holds_up_no_lane(
    redis_backend: RedisBackend, client: Any, lane: int
) -> None:
    gate, transport = redis_backend.gate(), redis_backend.transport()
    await open_rounds(gate)
    await transport.prepare(LANES)
    await client.set(keys.orders(lane), "?")
    for other in LANES:
        if other != lane:
            await admit(gate, 2, lane=other)
    found: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < 2:
            found += [delivery.lane for delivery in await transport.read(10, 0)]
        await admit(gate, 1, lane=lane)
        while len(found) < 3:
            found += [delivery.lane for delivery in await transport.read(10, 0)]
    assert found[2:] == [lane], "it is a queue again"
    assert await transport.backlog(LANES) == 3


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
    """While nodes are replaced one after the other, both versions run. A waiting claim asks the ledger, a second
    later."""
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
    (delivery,) = parse(3, b"1-1", fields)
    assert delivery.admission is None
    assert delivery.problem


def test_a_field_that_was_put_before_it_hides_no_order() -> None:
    (delivery,) = parse(3, b"1-1", [b"note", b"mended by hand", b"order", b"text"])
    assert delivery.payload == b"text"
