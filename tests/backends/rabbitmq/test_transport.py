"""RabbitMQ as a transport: the same promises as the lane streams, on a real broker."""

import asyncio
import json
from typing import Any

import pytest
from aiormq import spec

from seckill.backends.rabbitmq.transport import ENTRY, LANE, routing_key
from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.backends.redis.streams import StreamTransport
from seckill.domain.order_number import OrderNumber
from seckill.errors import TransportUnavailable
from seckill.ports.broker import Due
from tests.backends.rabbitmq.conftest import LANES, RETRY_DELAYS_S, Post, admit, numbers_of, read
from tests.patience import PATIENCE_S


async def test_what_was_admitted_before_anybody_came_is_delivered(gate: RedisGate, post: Post) -> None:
    numbers = await admit(gate, 5)
    relay, worker = post.relay(), post.transport()
    await relay.prepare()
    assert await relay.relay(wait_s=0) == 5
    assert await relay.relay(wait_s=0) == 0, "confirmed once, published once"
    deliveries = await read(worker, 5)
    assert numbers_of(deliveries) == numbers
    assert {delivery.lane for delivery in deliveries} == {3}


async def test_two_workers_never_get_the_same_entry(gate: RedisGate, post: Post) -> None:
    """They do not as long as both live (F38)."""
    one, two = post.transport(), post.transport()
    assert await one.read(1, 0) == await two.read(1, 0) == []  # both consume from now on
    await admit(gate, 2000)
    relay = post.relay()
    await relay.prepare()
    while await relay.relay(wait_s=0):
        pass
    found: list[set[str]] = [set(), set()]
    while sum(map(len, found)) < 2000:
        for mine, transport in zip(found, (one, two), strict=True):
            mine |= {delivery.entry_id for delivery in await transport.read(500, 1)}
    assert not found[0] & found[1]
    assert all(found), "the work is shared"


async def test_settled_entries_are_gone_from_stream_and_queue(gate: RedisGate, post: Post, client: Any) -> None:
    """The entry stays in the stream until then, so that the backlog is told by it alone (F35, F41)."""
    relay, worker = post.relay(), post.transport()
    await relay.prepare()
    await worker.prepare(LANES)
    await admit(gate, 3)
    await relay.relay(wait_s=0)
    assert await client.xpending(keys.orders(3), keys.RELAY_GROUP) == {
        "pending": 0,
        "min": None,
        "max": None,
        "consumers": [],
    }
    deliveries = await read(worker, 3)
    assert await worker.backlog(LANES) == 3
    settled = await worker.settle(deliveries)
    assert (settled.acknowledged, settled.deleted) == (3, 3)
    assert await worker.backlog(LANES) == 0
    again = await worker.settle(deliveries)
    assert (again.acknowledged, again.deleted) == (0, 0)
    await worker.close()
    assert await post.ready(post.topology.orders) == 0


async def test_entries_of_a_dead_worker_go_to_another(gate: RedisGate, post: Post) -> None:
    relay, dead, alive = post.relay(), post.transport(), post.transport()
    await relay.prepare()
    numbers = await admit(gate, 4)
    await relay.relay(wait_s=0)
    assert numbers_of(await read(dead, 4)) == numbers
    await dead.close()
    assert numbers_of(await read(alive, 4)) == numbers


async def test_what_a_worker_could_not_finish_it_takes_up_again(gate: RedisGate, post: Post) -> None:
    relay, worker = post.relay(), post.transport()
    await relay.prepare()
    await admit(gate, 2)
    await relay.relay(wait_s=0)
    deliveries = await read(worker, 2)
    assert await worker.take_over(idle_s=60, count=10) == []
    assert await worker.take_over(idle_s=-1, count=10) == deliveries
    await worker.settle(deliveries)
    assert await worker.take_over(idle_s=-1, count=10) == []


async def test_acknowledging_some_leaves_the_others(gate: RedisGate, post: Post) -> None:
    """A later entry that is settled first must not settle an earlier one."""
    relay, worker, other = post.relay(), post.transport(), post.transport()
    await relay.prepare()
    numbers = await admit(gate, 3)
    await relay.relay(wait_s=0)
    first, second, third = await read(worker, 3)
    assert (await worker.settle([second, third])).acknowledged == 2
    await worker.close()
    assert numbers_of(await read(other, 1)) == numbers[:1]
    assert await other.read(10, 0.2) == []
    assert first.admission is not None


async def test_a_lost_confirm_makes_a_copy_and_one_settling_ends_both(gate: RedisGate, post: Post) -> None:
    """The relay dies between the confirm and its note of it (F61)."""
    dying, relay, worker = post.relay(), post.relay(), post.transport()
    await dying.prepare()
    await worker.prepare(LANES)
    (number,) = await admit(gate, 1)
    entries = await post.source.read(10, 0)
    assert await post.courier.post(entries) == entries  # and here it dies
    assert await relay.take_over() == 1
    (delivery,) = await read(worker, 1)
    while len(next(iter(worker._held.values())).tags) < 2:
        assert await worker.read(10, 20) == [delivery], "the copy is the same entry"
    assert numbers_of([delivery]) == [number]
    settled = await worker.settle([delivery])
    assert (settled.acknowledged, settled.deleted) == (1, 1)
    await worker.close()
    assert await post.ready(post.topology.orders) == 0


async def test_a_message_that_comes_after_its_entry_was_settled_does_no_harm(gate: RedisGate, post: Post) -> None:
    relay, worker, other = post.relay(), post.transport(), post.transport()
    await relay.prepare()
    await admit(gate, 1)
    await relay.relay(wait_s=0)
    (delivery,) = await read(worker, 1)
    await other._streams.settle([delivery])  # by a worker that reads the streams
    settled = await worker.settle([delivery])
    assert (settled.acknowledged, settled.deleted) == (1, 0)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{garbage", {LANE: 3, ENTRY: "1-1"}),
        (b"\xff\xfe", {LANE: 3, ENTRY: "1-1"}),
        (b"{}", {}),
        (b"{}", {LANE: "3", ENTRY: 1}),
        (b"{}", {LANE: 3, ENTRY: "1-1; DEL"}),
    ],
)
async def test_a_message_that_cannot_be_read_says_why_and_can_be_settled(
    post: Post, body: bytes, headers: dict[str, Any]
) -> None:
    worker = post.transport()
    channel = await post.link.channel()
    properties = spec.Basic.Properties(headers=headers)
    await channel.basic_publish(body, routing_key=post.topology.orders, properties=properties)
    (delivery,) = await read(worker, 1)
    assert delivery.admission is None
    assert delivery.problem
    assert (await worker.settle([delivery])).acknowledged == 1


async def test_states_reach_every_node_by_the_topic_exchange(post: Post) -> None:
    sender, *nodes = [post.transport() for _ in range(3)]
    changes = [node.state_changes() for node in nodes]
    waiting = [asyncio.ensure_future(anext(change)) for change in changes]
    states = {"unpaid": [int(OrderNumber(1, 2, 3)), 2**63 - 1]}
    while not all(one.done() for one in waiting):  # sent before a node has its queue: missed, as documented
        await sender.publish_states(states)
        await asyncio.wait(waiting, timeout=0.05)
    assert [await one for one in waiting] == [states, states]
    for change in changes:
        await change.aclose()  # type: ignore[attr-defined]


async def test_another_program_can_listen_to_failures_only(post: Post) -> None:
    """Results have routing keys by their kind, so another program can ask for failures alone (M10)."""
    assert [routing_key(state) for state in ("unpaid", "paid", "failed", "expired")] == [
        "order.success",
        "order.success",
        "order.fail",
        "order.expired",
    ]
    channel = await post.link.channel()
    queue = (await channel.queue_declare(exclusive=True)).queue
    assert queue is not None
    await channel.queue_bind(queue, post.topology.results, routing_key="order.fail")
    sender = post.transport()
    await sender.publish_states({"unpaid": [int(OrderNumber(1, 2, 3))], "failed": [int(OrderNumber(1, 2, 4))]})
    while not (message := await channel.basic_get(queue)).body:
        await asyncio.sleep(0.02)
    assert json.loads(message.body) == {str(int(OrderNumber(1, 2, 4))): "failed"}


async def test_returned_units_reach_every_node_by_the_fanout(post: Post) -> None:
    sender, *nodes = [post.transport() for _ in range(3)]
    changes = [node.version_changes() for node in nodes]
    waiting = [asyncio.ensure_future(anext(change)) for change in changes]
    while not all(one.done() for one in waiting):
        await sender.publish_version(7, 3)
        await asyncio.wait(waiting, timeout=0.05)
    assert [await one for one in waiting] == [(7, 3), (7, 3)]
    for change in changes:
        await change.aclose()  # type: ignore[attr-defined]


async def test_a_listener_learns_that_the_broker_is_gone(post: Post) -> None:
    node = post.transport()
    changes = node.state_changes()
    waiting = asyncio.ensure_future(anext(changes))
    while not waiting.done():
        await node.publish_states({"unpaid": [3]})
        await asyncio.wait([waiting], timeout=0.05)
    await node._incoming.close()
    with pytest.raises(TransportUnavailable):
        async for _ in changes:  # those that had arrived before
            pass


async def until_due(post: Post, wanted: set[Due]) -> None:
    found: set[Due] = set()
    async with asyncio.timeout(PATIENCE_S):
        while found < wanted:
            found |= await post.delays.due(0.2)
    assert found == wanted


async def test_each_delay_has_a_queue_that_leads_to_due(post: Post) -> None:
    """A short delay does not wait behind a long one (M12, M17, F54, F70)."""
    await post.delays.remind_of_expiry(30)
    await post.delays.remind_of_retry(RETRY_DELAYS_S[1], "the entry", "the reason")
    await post.delays.remind_of_expiry(0.3)
    await until_due(post, {Due.RETRY, Due.EXPIRY})
    assert await post.ready(post.topology.expiry(30)) == 1


async def test_what_was_given_up_waits_for_people(post: Post) -> None:
    await post.delays.give_up("the entry", "the reason")
    channel = await post.link.channel()
    message = await channel.basic_get(post.topology.dead, no_ack=True)
    assert json.loads(message.body) == {"due": None, "payload": "the entry", "reason": "the reason"}


async def test_reminders_never_stand_in_the_way(post: Post) -> None:
    """Whatever else is in the queue, and whether the broker is there or not."""
    channel = await post.link.channel()
    await channel.basic_publish(b"hello", routing_key=post.topology.due)
    await post.delays.remind_of_retry(RETRY_DELAYS_S[0], "", "")
    await until_due(post, {Due.RETRY})
    await post.delays.remind_of_retry(999.0, "", "no such queue")
    await post.delays.remind_of_retry(RETRY_DELAYS_S[0], "", "kept quiet for a while after that")


@pytest.mark.parametrize("first", ["streams", "broker"])
async def test_orders_in_flight_survive_a_change_of_the_setting(gate: RedisGate, post: Post, first: str) -> None:
    """Some not read yet, some read and not settled, some settled. The next worker gets exactly the rest, for
    certain; copies that the other still holds are recognised when they come."""
    streams, broker, relay = StreamTransport(post.redis_url), post.transport(), post.relay()
    before, after = (streams, broker) if first == "streams" else (broker, streams)
    await before.prepare(LANES)
    await relay.prepare()
    numbers = await admit(gate, 6)
    if first == "broker":
        await relay.relay(wait_s=0)
    taken = await read(broker, 4) if first == "broker" else await streams.read(4, 0)
    await before.settle(taken[:2])
    numbers += await admit(gate, 3, "late")
    if first == "broker":
        await post.source.read(10, 0)  # and the relay dies with the late ones in hand
        await before.close()
    await after.prepare(LANES)
    if first == "streams":
        assert await post.relay().relay(wait_s=0) == 7
        rest = await read(broker, 7)
    else:
        rest = await streams.read(100, 0)
    assert numbers_of(rest) == sorted(set(numbers) - set(numbers_of(taken[:2])))
    await after.settle(rest)
    assert await after.backlog(LANES) == 0
    # And back again: what is left there is known already, and nothing comes twice for ever.
    if first == "streams":
        assert await streams.take_over(0, 10) == []
        assert await streams.read(10, 0) == []
    else:
        back = post.transport()
        leftovers = await read(back, 4)
        assert {d.entry_id for d in leftovers} < {d.entry_id for d in rest}
        assert (await back.settle(leftovers)).deleted == 0
        assert await back.read(10, 0.2) == []
    await streams.close()
