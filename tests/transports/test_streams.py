"""The lane streams as a transport: at least once, until settled."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from seckill.domain import Admission, Claim
from seckill.gates import keys
from seckill.gates.redis import RedisGate, connect
from seckill.numbers import OrderNumber
from seckill.transports.streams import StreamTransport, parse
from tests.making import make_round

LANES = [3, 4]


@pytest.fixture
async def gate(redis_url: str) -> AsyncIterator[RedisGate]:
    gate = RedisGate(redis_url, timeout_s=5, backlog_max=10**6)
    round_ = make_round(total=10_000)
    opening = await gate.open_round(round_)
    round_ = replace(round_, opened_ms=opening.opened_ms)
    await gate.update_round(round_)
    yield gate
    await gate.close()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Any]:
    client = connect(redis_url)
    yield client
    await client.aclose()


@pytest.fixture
async def transports(redis_url: str) -> AsyncIterator[list[StreamTransport]]:
    made = [StreamTransport(redis_url) for _ in range(2)]
    yield made
    for transport in made:
        await transport.close()


async def admit(gate: RedisGate, count: int, prefix: str = "u") -> list[Any]:
    reply = await gate.admit(make_round().ref, [Claim(f"{prefix}{i}", 1, "k") for i in range(count)])
    return [answer.holdings[0].number for answer in reply.answers]


async def test_what_was_admitted_before_the_first_worker_came_is_delivered(
    gate: RedisGate, transports: list[StreamTransport]
) -> None:
    """F37: the group begins at 0."""
    numbers = await admit(gate, 5)
    transport, _ = transports
    await transport.prepare(LANES)
    deliveries = await transport.read(10, 0)
    admissions = [delivery.admission for delivery in deliveries]
    assert [admission.number for admission in admissions if admission] == numbers
    first = admissions[0]
    assert isinstance(first, Admission)
    assert (first.round_id, first.epoch, first.user, first.quantity, first.slot, first.request_id) == (
        1,
        1,
        "u0",
        1,
        1,
        "k",
    )


async def test_two_consumers_never_get_the_same_entry(gate: RedisGate, transports: list[StreamTransport]) -> None:
    """F38."""
    one, two = transports
    assert one.consumer != two.consumer
    for transport in transports:
        await transport.prepare(LANES)
    await admit(gate, 20)
    first = {delivery.entry_id for delivery in await one.read(10, 0)}
    second = {delivery.entry_id for delivery in await two.read(100, 0)}
    assert (len(first), len(second), first & second) == (10, 10, set())


async def test_settled_entries_are_gone_and_the_counts_tell(gate: RedisGate, transports: list[StreamTransport]) -> None:
    """F35, F41."""
    transport, _ = transports
    await transport.prepare(LANES)
    await admit(gate, 3)
    deliveries = await transport.read(10, 0)
    assert await transport.backlog(LANES) == 3
    settled = await transport.settle(deliveries)
    assert (settled.acknowledged, settled.deleted) == (3, 3)
    assert await transport.backlog(LANES) == 0
    again = await transport.settle(deliveries)
    assert (again.acknowledged, again.deleted) == (0, 0)


async def test_entries_of_a_silent_consumer_are_taken_over(gate: RedisGate, transports: list[StreamTransport]) -> None:
    """F39, F40."""
    dead, alive = transports
    for transport in transports:
        await transport.prepare(LANES)
    await admit(gate, 4)
    taken = await dead.read(10, 0)
    assert await alive.take_over(idle_s=60, count=10) == []
    assert await alive.take_over(idle_s=0, count=10) == taken
    assert await alive.read(10, 0) == []


@pytest.mark.parametrize("loss", ["group", "stream"])
async def test_a_lost_group_is_made_again_and_nothing_is_missed(
    gate: RedisGate, client: Any, transports: list[StreamTransport], loss: str
) -> None:
    """F37: XGROUP DESTROY or DEL in the middle."""
    transport, _ = transports
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


async def test_consumers_that_hold_something_are_never_retired(
    gate: RedisGate, client: Any, transports: list[StreamTransport]
) -> None:
    """F40."""
    holder, other = transports
    for transport in transports:
        await transport.prepare([3])
    await admit(gate, 1)
    (delivery,) = await holder.read(10, 0)
    assert await other.retire_consumers(0) == 0
    assert await client.xpending(keys.orders(3), keys.WORKERS_GROUP) != []
    await holder.settle([delivery])
    await other.read(10, 0)
    assert await other.retire_consumers(0) == 1
    names = [c["name"].decode() for c in await client.xinfo_consumers(keys.orders(3), keys.WORKERS_GROUP)]
    assert names == [other.consumer]


def entry(**changes: object) -> bytes:
    facts: dict[str, object] = {"v": 1, "round": 1, "epoch": 1, "lane": 3, "seconds": 1, "at_ms": 1}
    facts |= {"counter": 1, "quantity": 1, "slot": 1, "user": "u", "request": ""}
    return json.dumps(facts | changes).encode()


def test_an_entry_of_ours_can_be_read() -> None:
    assert parse(3, b"1-1", {b"order": entry()}).admission is not None


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {},
        {b"order": b""},
        {b"order": b"{}"},
        {b"order": entry(v=2)},
        {b"order": entry(lane=4)},
        {b"order": entry(quantity="1")},
        {b"order": entry(surprise=1)},
        {b"order": b"\xff\xfe"},
    ],
)
def test_an_entry_that_cannot_be_read_says_why(fields: dict[bytes, bytes] | None) -> None:
    """F43."""
    delivery = parse(3, b"1-1", fields)
    assert delivery.admission is None
    assert delivery.problem


async def test_states_reach_whoever_listens(transports: list[StreamTransport]) -> None:
    sender, receiver = transports
    changes = receiver.state_changes()
    waiting = asyncio.ensure_future(anext(changes))
    number = OrderNumber(1, 2, 3)
    while not waiting.done():  # a message sent before the subscription stands is missed, as documented
        await sender.publish_states({number: "unpaid"})
        await asyncio.wait([waiting], timeout=0.05)
    assert await waiting == {number: "unpaid"}
    await changes.aclose()  # type: ignore[attr-defined]


async def test_versions_reach_whoever_listens(transports: list[StreamTransport]) -> None:
    sender, receiver = transports
    changes = receiver.version_changes()
    waiting = asyncio.ensure_future(anext(changes))
    while not waiting.done():  # a message sent before the subscription stands is missed, as documented
        await sender.publish_version(7, 1_000_000_008)
        await asyncio.wait([waiting], timeout=0.05)
    assert await waiting == (7, 1_000_000_008)
    await changes.aclose()  # type: ignore[attr-defined]
