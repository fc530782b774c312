"""A broker can die, lose a queue, run short of memory, or be away from the start."""

import asyncio
from typing import Any

import pytest

from seckill.backends.rabbitmq import courier
from seckill.backends.rabbitmq.transport import RabbitTransport
from seckill.backends.redis.gate import RedisGate
from seckill.engine.orders.broker_relay import Relay
from seckill.errors import TransportUnavailable
from tests.backends.rabbitmq.conftest import LANES, Post, admit, numbers_of, read
from tests.patience import PATIENCE_S


async def until_passed_on(relay: Relay, count: int) -> None:
    """Does what the relay's loop does, without its waits."""
    done = 0
    async with asyncio.timeout(PATIENCE_S):
        while done < count:
            try:
                await relay.look_for_losses()
                done += await relay.take_over()
                done += await relay.relay(wait_s=0.05)
            except TransportUnavailable:
                await asyncio.sleep(0.05)


async def patiently(transport: RabbitTransport, count: int) -> list[Any]:
    """The numbers of that many different entries, whatever comes twice."""
    found: dict[str, Any] = {}
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            try:
                found |= {delivery.entry_id: delivery for delivery in await transport.read(500, 0.2)}
            except TransportUnavailable:
                await asyncio.sleep(0.05)
    return numbers_of(list(found.values()))


async def test_a_broker_that_is_killed_loses_nothing_and_stops_nobody_else(gate: RedisGate, mortal_post: Post) -> None:
    """Confirmed messages survive kill -9; admission goes on; relay and worker find their way back by themselves."""
    post = mortal_post
    relay, worker = post.relay(), post.transport()
    await relay.prepare()
    numbers = await admit(gate, 5)
    await relay.relay(wait_s=0)
    assert numbers_of(await read(worker, 5)) == numbers  # delivered, and not settled
    post.server.kill()
    numbers += await admit(gate, 5, "meanwhile")
    with pytest.raises(TransportUnavailable):
        await worker.read(10, 1)
    with pytest.raises(TransportUnavailable):
        await relay.relay(wait_s=0)
    late = post.transport()  # a worker that is started while the broker is away
    with pytest.raises(TransportUnavailable):
        await late.read(10, 1)
    with pytest.raises(TransportUnavailable):
        await late.publish_states({"unpaid": [int(numbers[0])]})
    assert await late.backlog(LANES) == 10
    post.server.start()
    await until_passed_on(relay, 5)
    await late.close()
    assert await patiently(worker, 10) == sorted(numbers)


async def test_a_deleted_queue_is_made_again_and_what_it_held_is_published_again(gate: RedisGate, post: Post) -> None:
    """The broker confirmed them, and then the queue was deleted. Unroutable is not delivered (F61)."""
    relay, worker = post.relay(), post.transport()
    await relay.prepare()
    numbers = await admit(gate, 3)
    await relay.relay(wait_s=0)
    channel = await post.link.channel()
    await channel.queue_delete(post.topology.orders)
    numbers += await admit(gate, 2, "late")
    with pytest.raises(TransportUnavailable, match="refused 2"):
        await relay.relay(wait_s=0)
    with pytest.raises(TransportUnavailable, match="refused 2"):  # those that were confirmed are not published again
        await relay.take_over()
    assert post.alarms.raised == ["the broker refuses orders; they wait in the streams"], "once for an outage"
    assert await relay.look_for_losses()
    await until_passed_on(relay, 5)
    assert await patiently(worker, 5) == sorted(numbers)
    await admit(gate, 1, "later")
    await relay.relay(wait_s=0)  # taken: the next refusal would be another outage
    assert relay._refused is False


async def test_a_worker_whose_queue_was_deleted_makes_it_again(gate: RedisGate, post: Post) -> None:
    relay, worker = post.relay(), post.transport()
    await relay.prepare()
    await worker.prepare(LANES)
    numbers = await admit(gate, 3)
    await relay.relay(wait_s=0)
    await read(worker, 3)
    channel = await post.link.channel()
    await channel.queue_delete(post.topology.orders)
    with pytest.raises(TransportUnavailable, match="deleted"):
        await worker.read(10, PATIENCE_S)
    assert await worker.read(10, 0) == []
    assert await relay.relay(wait_s=0) == 3, "the worker has told the relay to begin again"
    assert await patiently(worker, 3) == numbers


async def test_messages_that_vanish_are_published_again_after_a_while(gate: RedisGate, post: Post) -> None:
    """Purged, or lost with a disk: no error tells. Only that an entry is old and nothing waits for a worker."""
    patient, relay, worker = post.relay(lost_after_s=3600), post.relay(lost_after_s=0.05), post.transport()
    await relay.prepare()
    numbers = await admit(gate, 3)
    await relay.relay(wait_s=0)
    await asyncio.sleep(0.1)  # older than it may be
    assert not await relay.look_for_losses(), "they wait for a worker"
    channel = await post.link.channel()
    await channel.queue_purge(post.topology.orders)
    assert not await patient.look_for_losses(), "not yet"
    assert await relay.look_for_losses()
    assert not await relay.look_for_losses(), "not again at once"
    assert await relay.relay(wait_s=0) == 3
    assert numbers_of(await read(worker, 3)) == numbers


async def test_a_broker_short_of_memory_takes_nothing_and_workers_go_on(
    gate: RedisGate, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "CONFIRM_S_MAX", 1.0)
    relay, worker, other = post.relay(), post.transport(), post.transport()
    await relay.prepare()
    await worker.prepare(LANES)
    numbers = await admit(gate, 3)
    await relay.relay(wait_s=0)
    first = await read(worker, 3)
    await worker.publish_states({"unpaid": [int(numbers[0])]})  # its connection publishes, too
    post.server.control("set_vm_memory_high_watermark", "0")
    try:
        numbers += await admit(gate, 2, "meanwhile")
        with pytest.raises(TransportUnavailable):
            await relay.relay(wait_s=0)
        assert await worker.backlog(LANES) == 5
        assert (await worker.settle(first)).acknowledged == 3
        await worker.close()
        assert await other.read(10, 1) == [], "the acknowledgements got through, or they would come again"
    finally:
        post.server.control("set_vm_memory_high_watermark", "0.4")
    await until_passed_on(relay, 2)
    assert await patiently(other, 2) == sorted(numbers[3:])


async def test_names_keep_deployments_apart(post: Post) -> None:
    """Two ledgers on one vhost: neither can take the other's orders."""
    other = type(post.topology)("ffffffffffffffff", ())
    ours = {name for name in vars(post.topology).values() if isinstance(name, str)}
    assert ours.isdisjoint(name for name in vars(other).values() if isinstance(name, str))
