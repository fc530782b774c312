"""The promise of a transport, on every backend: it delivers each admission at least once, until it is settled."""

import asyncio

import pytest

from seckill.domain.admission import Admission
from seckill.domain.order_number import OrderNumber
from seckill.errors import TransportUnavailable
from seckill.lab.servers.proxy import Trouble
from seckill.ports.gate import Gate
from seckill.ports.transport import Delivery, Settled, Transport
from tests.backends.transport.conftest import LANES, admit, open_rounds
from tests.fixtures.backends import Backend, MortalBackend
from tests.patience import PATIENCE_S


def numbers(deliveries: list[Delivery]) -> list[OrderNumber]:
    return [delivery.admission.number for delivery in deliveries if delivery.admission]


async def prepare(transports: list[Transport]) -> None:
    for transport in transports:
        await transport.prepare(LANES)


async def test_what_was_admitted_before_the_first_worker_came_is_delivered(
    gate: Gate, transports: list[Transport]
) -> None:
    admitted = await admit(gate, 5)
    transport, _ = transports
    await transport.prepare(LANES)
    deliveries = await transport.read(10, 0)
    assert numbers(deliveries) == admitted, "in their order"
    first = deliveries[0].admission
    assert isinstance(first, Admission)
    assert (first.round_id, first.epoch, first.user, first.quantity) == (3, 1, "u0", 1)
    assert (first.slot, first.request_id) == (1, "k")


async def test_preparing_again_changes_nothing(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    await admit(gate, 3)
    assert len(await transport.read(10, 0)) == 3
    await prepare(transports)
    assert await transport.read(10, 0) == []
    assert await transport.backlog(LANES) == 3


async def test_two_consumers_never_get_the_same_entry(gate: Gate, transports: list[Transport]) -> None:
    one, two = transports
    await prepare(transports)
    admitted = await admit(gate, 20)
    first = await one.read(10, 0)
    second = await two.read(100, 0)
    assert (len(first), len(second)) == (10, 10)
    assert numbers(first) + numbers(second) == admitted


async def test_all_lanes_are_read_and_told_apart(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    by_lane = {lane: await admit(gate, 2, lane=lane) for lane in LANES}
    read: list[Delivery] = []
    while deliveries := await transport.read(10, 0):
        read += deliveries
    assert {lane: numbers([d for d in read if d.lane == lane]) for lane in LANES} == by_lane
    assert [await transport.backlog([lane]) for lane in LANES] == [2, 2]
    await transport.settle([delivery for delivery in read if delivery.lane == 4])
    assert [await transport.backlog([lane]) for lane in LANES] == [2, 0]


async def test_no_more_is_read_of_a_lane_than_was_asked_for(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    for lane in LANES:
        await admit(gate, 5, lane=lane)
    deliveries = await transport.read(3, 0)
    assert deliveries
    assert all(len([d for d in deliveries if d.lane == lane]) <= 3 for lane in LANES)


async def test_a_reader_that_waits_is_woken(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    waiting = asyncio.ensure_future(transport.read(10, PATIENCE_S))
    await asyncio.wait([waiting], timeout=0.1)
    assert not waiting.done()
    admitted = await admit(gate, 1)
    assert numbers(await waiting) == admitted


async def test_a_reader_that_waits_in_vain_gets_nothing(transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    assert await transport.read(10, 0.05) == []
    assert await transport.read(10, 0) == []


async def test_readers_that_wait_together_share_what_comes(gate: Gate, transports: list[Transport]) -> None:
    await prepare(transports)
    waiting = [asyncio.ensure_future(transport.read(100, 0.5)) for transport in transports]
    await asyncio.wait(waiting, timeout=0.05)
    admitted = await admit(gate, 10)
    got = [number for deliveries in await asyncio.gather(*waiting) for number in numbers(deliveries)]
    for transport in transports:
        got += numbers(await transport.read(100, 0))
    assert sorted(got) == admitted


async def test_settled_entries_are_gone_and_the_counts_tell(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    await admit(gate, 3)
    deliveries = await transport.read(10, 0)
    assert await transport.backlog(LANES) == 3, "until they are settled"
    assert await transport.settle(deliveries) == Settled(3, 3)
    assert await transport.backlog(LANES) == 0
    assert await transport.settle(deliveries) == Settled(0, 0)
    assert await transport.take_over(0, 10) == []


async def test_entries_of_a_silent_consumer_are_taken_over(gate: Gate, transports: list[Transport]) -> None:
    """Delivered, then the worker crashed (F39, F40)."""
    dead, alive = transports
    await prepare(transports)
    await admit(gate, 4)
    taken = await dead.read(10, 0)
    assert await alive.read(10, 0) == [], "they belong to another consumer"
    assert await alive.take_over(idle_s=60, count=10) == [], "who may still be at work"
    assert await alive.take_over(idle_s=0, count=10) == taken
    assert await alive.take_over(idle_s=60, count=10) == [], "now they are the other one's, as if read now"
    assert await alive.read(10, 0) == []
    assert await alive.settle(taken) == Settled(4, 4)


async def test_a_consumer_takes_over_its_own_that_it_could_not_finish(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    await admit(gate, 2)
    read = await transport.read(10, 0)
    assert await transport.take_over(idle_s=0, count=10) == read


async def test_no_more_is_taken_over_than_was_asked_for(gate: Gate, transports: list[Transport]) -> None:
    dead, alive = transports
    await prepare(transports)
    for lane in LANES:
        await admit(gate, 4, lane=lane)
    await dead.read(10, 0)
    await dead.read(10, 0)
    assert len(await alive.take_over(idle_s=0, count=6)) == 6


async def test_a_worker_that_was_given_up_for_dead_settles_without_harm(
    gate: Gate, transports: list[Transport]
) -> None:
    """A duplicate delivery: both have it, both write it (one row), both settle."""
    zombie, heir = transports
    await prepare(transports)
    await admit(gate, 3)
    deliveries = await zombie.read(10, 0)
    inherited = await heir.take_over(idle_s=0, count=10)
    assert inherited == deliveries
    assert await zombie.settle(deliveries[:1]) == Settled(1, 1)
    assert await heir.settle(inherited) == Settled(2, 2), "the counts tell that another was quicker"
    assert await zombie.settle(deliveries) == Settled(0, 0)
    assert await heir.backlog(LANES) == 0


async def test_a_delivery_that_was_lost_on_its_way_comes_again(
    backend: Backend, gate: Gate, transports: list[Transport]
) -> None:
    """The answer to a reading is lost: the entries are pending, and found by the next who looks."""
    _, alive = transports
    await prepare(transports)
    async with backend.node() as node:
        await node.transport.prepare(LANES)
        assert await node.transport.read(10, 0) == []
        admitted = await admit(gate, 3)
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(TransportUnavailable):
            await node.transport.read(10, PATIENCE_S)
        assert await alive.read(10, 0) == [], "the fault has hit its window"
        assert numbers(await alive.take_over(idle_s=0, count=10)) == admitted


async def test_a_settlement_whose_answer_is_lost_can_be_repeated(
    backend: Backend, gate: Gate, transports: list[Transport]
) -> None:
    await prepare(transports)
    async with backend.node() as node:
        await node.transport.prepare(LANES)
        await admit(gate, 3)
        deliveries = await node.transport.read(10, 0)
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(TransportUnavailable):
            await node.transport.settle(deliveries)
        assert await transports[0].backlog(LANES) == 0, "the fault has hit its window"
        assert await node.transport.settle(deliveries) == Settled(0, 0)
        assert await transports[0].take_over(0, 10) == []


async def test_who_cannot_reach_it_is_told_and_goes_on_later(backend: Backend, gate: Gate) -> None:
    async with backend.node() as node:
        with node.in_trouble(Trouble.REFUSED):
            for call in (
                lambda: node.transport.prepare(LANES),
                lambda: node.transport.backlog(LANES),
                lambda: node.transport.publish_states({"unpaid": [3]}),
            ):
                with pytest.raises(TransportUnavailable):
                    await call()
        await node.transport.prepare(LANES)
        admitted = await admit(gate, 2)
        assert numbers(await node.transport.read(10, 0)) == admitted


async def test_a_reader_that_is_cancelled_loses_nothing(gate: Gate, transports: list[Transport]) -> None:
    """Whatever was on its way to it can be taken over; what was not is read by the next."""
    transport, other = transports
    await prepare(transports)
    admitted: list[OrderNumber] = []
    for turn in range(40):
        reading = asyncio.ensure_future(transport.read(1, PATIENCE_S))
        admitting = asyncio.ensure_future(admit(gate, 1, f"turn{turn}-"))
        for _ in range(turn % 10):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        admitted += await admitting
    found: list[Delivery] = []
    async with asyncio.timeout(PATIENCE_S):
        while len({delivery.entry_id for delivery in found}) < len(admitted):
            found += await other.read(100, 0)
            found += await other.take_over(0, 100)
    assert sorted(set(numbers(found))) == admitted


async def test_what_a_lost_store_had_is_gone_and_new_entries_are_read(
    backend: Backend, gate: Gate, transports: list[Transport]
) -> None:
    transport, _ = transports
    await prepare(transports)
    await admit(gate, 2)
    deliveries = await transport.read(10, 0)
    await backend.lose_everything()
    assert await transport.settle(deliveries) == Settled(0, 0)
    assert await transport.backlog(LANES) == 0
    await open_rounds(gate)
    admitted = await admit(gate, 2, "late")
    found: list[Delivery] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < 2:
            found += await transport.read(10, 0)
    assert numbers(found) == admitted
    assert {d.entry_id for d in found}.isdisjoint({d.entry_id for d in deliveries}), "an entry's id is its own for ever"


async def test_consumers_that_hold_something_are_never_retired(gate: Gate, transports: list[Transport]) -> None:
    holder, other = transports
    for transport in transports:
        await transport.prepare([3])
    await admit(gate, 1)
    held = await holder.read(10, 0)
    await other.read(10, 0)
    assert await other.retire_consumers(0) == 0
    assert await other.take_over(idle_s=0, count=10) == held, "nothing was forgotten with its consumer"
    await other.settle(held)
    await holder.read(10, 0)
    assert await other.retire_consumers(60) == 0, "it was heard of a moment ago"
    assert await other.retire_consumers(0) == 1
    assert await other.retire_consumers(0) == 0
    admitted = await admit(gate, 1, "late")
    assert numbers(await holder.read(10, 0)) == admitted, "who was forgotten may come back"


async def test_states_reach_all_listeners(backend: Backend) -> None:
    sender = backend.transport()
    listeners = [backend.transport().state_changes() for _ in range(2)]
    waiting = [asyncio.ensure_future(anext(changes)) for changes in listeners]
    states = {"unpaid": [int(OrderNumber(1, 2, 3)), 2**63 - 1], "failed": [int(OrderNumber(2, 2, 4))]}
    async with asyncio.timeout(PATIENCE_S):
        while not all(each.done() for each in waiting):  # what is sent before anyone listens is missed, as documented
            await sender.publish_states(states)
            await asyncio.wait(waiting, timeout=0.05)
    assert [await each for each in waiting] == [states, states]
    for changes in listeners:
        await changes.aclose()  # type: ignore[attr-defined]


async def test_versions_reach_all_listeners(backend: Backend) -> None:
    sender, receiver = backend.transport(), backend.transport()
    changes = receiver.version_changes()
    waiting = asyncio.ensure_future(anext(changes))
    async with asyncio.timeout(PATIENCE_S):
        while not waiting.done():  # what is sent before anyone listens is missed, as documented
            await sender.publish_version(7, 1_000_000_008)
            await asyncio.wait([waiting], timeout=0.05)
    assert await waiting == (7, 1_000_000_008)
    await changes.aclose()  # type: ignore[attr-defined]


async def test_what_was_admitted_is_delivered_after_the_server_was_killed(mortal: MortalBackend) -> None:
    """This includes what a consumer had in hand, and nothing that was settled."""
    gate = mortal.gate()
    await open_rounds(gate)
    transport = mortal.transport()
    await transport.prepare(LANES)
    admitted = await admit(gate, 9)
    await transport.settle(await transport.read(3, 0))
    held = await transport.read(3, 0)
    await mortal.kill_and_start()
    transport = mortal.transport()
    await transport.prepare(LANES)
    assert await transport.take_over(idle_s=0, count=100) == held
    assert numbers(held) + numbers(await transport.read(100, 0)) == admitted[3:]


async def test_the_flow_of_a_lane_is_counted_in_orders(gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await prepare(transports)
    before = await transport.flow(LANES)
    await admit(gate, 7)
    await admit(gate, 2, lane=4)
    settled = 0
    async with asyncio.timeout(PATIENCE_S):
        while settled < 7:  # a busy node of a cluster may have nothing to give at once
            found = [each for each in await transport.read(100, 0) if each.lane == 3]
            await transport.settle(found)
            settled += len(found)
    after = await transport.flow(LANES)
    assert {lane: after[lane].admitted - before[lane].admitted for lane in LANES} == {3: 7, 4: 2}
    assert {lane: flow.waiting for lane, flow in after.items()} == {3: 0, 4: 2}
    assert await transport.flow([]) == {}
