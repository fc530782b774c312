"""Orders that one call of the gate admits may share an entry: everything else goes by order all the same."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.queue_entry_forms import RedisEntryForms
from seckill.backends.redis.relay_source import StreamRelaySource
from seckill.domain.admission import Admission, Claim
from seckill.domain.order_number import COUNTER_MAX, OrderNumber
from seckill.domain.outcome import Outcome
from seckill.ports.gate import Gate
from seckill.ports.queue_entry import read_entry, read_together, standing_alone, write_entry, write_together
from seckill.ports.transport import Delivery, Settled, Transport
from tests.backends.transport.conftest import LANES, admit, open_rounds
from tests.fixtures.backends import Backend, MemoryBackend, RedisBackend, ServerBackend
from tests.making import make_round


@pytest.fixture
async def gate(backend: Backend) -> Gate:
    """A gate with a round in each lane, whose orders may share entries."""
    await share(backend)
    gate = backend.gate()
    await open_rounds(gate)
    return gate


@pytest.fixture
async def on_redis(redis_backend: RedisBackend) -> Gate:
    await share(redis_backend)
    gate = redis_backend.gate()
    await open_rounds(gate)
    return gate


async def share(backend: Backend) -> None:
    if isinstance(backend, MemoryBackend):
        backend.store.together = True
    else:
        assert isinstance(backend, ServerBackend)
        forms = RedisEntryForms(backend.url)
        await forms.allow(LANES)
        await forms.close()


def numbers(deliveries: list[Delivery]) -> list[OrderNumber]:
    return [delivery.admission.number for delivery in deliveries if delivery.admission]


async def test_they_are_delivered_one_by_one_and_settled_together(gate: Gate, transports: list[Transport]) -> None:
    one, two = transports
    await one.prepare(LANES)
    await two.prepare(LANES)
    admitted = await admit(gate, 5) + await admit(gate, 1, "alone") + await admit(gate, 3, "last")
    assert await one.backlog(LANES) == 9
    read: list[Delivery] = []
    while found := await one.read(100, 0):
        read += found
    assert numbers(read) == admitted
    assert [delivery.of for delivery in read] == [5] * 5 + [1] + [3] * 3
    assert len({delivery.entry_id for delivery in read}) == 3
    assert await one.settle(read[1:]) == Settled(4, 4), "an entry of which one is not written stays"
    assert await one.backlog(LANES) == 5
    again = await two.take_over(0, 100)
    assert numbers(again) == admitted[:5], "all of it, for nobody knows which of them are written"
    assert await two.settle(again) == Settled(5, 5)
    assert await one.settle(read[:5]) == Settled(0, 0)
    assert await one.backlog(LANES) == 0


async def test_the_backlog_is_capped_by_orders(backend: Backend, gate: Gate, transports: list[Transport]) -> None:
    transport, _ = transports
    await transport.prepare(LANES)
    narrow = backend.gate(backlog_max=5)
    ref = make_round(id=3, lane=3).ref
    await narrow.admit(ref, [Claim(f"a{i}", 1) for i in range(4)])
    reply = await narrow.admit(ref, [Claim(f"b{i}", 1) for i in range(3)])
    assert [answer.outcome for answer in reply.answers] == [Outcome.ADMITTED, *[Outcome.OVERLOADED] * 2]
    view = await gate.inspect(ref)
    assert view is not None
    assert view.backlog == await transport.backlog(LANES) == 5
    assert await transport.settle(await transport.read(100, 0)) == Settled(5, 5)
    reply = await narrow.admit(ref, [Claim(f"c{i}", 1) for i in range(6)])
    assert [answer.outcome for answer in reply.answers].count(Outcome.ADMITTED) == 5
    assert await transport.backlog(LANES) == 5


async def test_everything_about_an_order_is_in_it(gate: Gate, transports: list[Transport]) -> None:
    """A user's name of any kind, request ids, metadata, quantities, slots."""
    transport, _ = transports
    await transport.prepare(LANES)
    round_ = make_round(id=9, lane=3, total=10_000, limit_per_buyer=9)
    opening = await gate.open_round(round_)
    await gate.update_round(replace(round_, opened_ms=opening.opened_ms))
    claims = [
        Claim("安娜 \"'\\/\n", 2, "k1", '{"note":"für dich"}'),
        Claim("安娜 \"'\\/\n", 3, "k2"),
        Claim("b" * 128, 1),
        Claim("cid", 10, "k3"),
        Claim("dan", 1, person="the dans"),
    ]
    reply = await gate.admit(round_.ref, claims)
    assert [answer.outcome for answer in reply.answers].count(Outcome.LIMIT_REACHED) == 1
    admitted = [(claim, answer) for claim, answer in zip(claims, reply.answers, strict=True) if answer.holdings]
    found = [delivery.admission for delivery in await transport.read(100, 0)]
    assert found == [
        Admission(
            number=answer.holdings[0].number,
            round_id=9,
            epoch=1,
            user=claim.user,
            quantity=claim.quantity,
            slot=answer.holdings[0].slot,
            request_id=claim.request_id,
            admitted_ms=reply.now_ms,
            metadata=claim.metadata,
            person=claim.person,
        )
        for claim, answer in admitted
    ]
    assert [each.slot for each in found if each] == [1, 2, 1, 1]


async def test_a_stream_that_is_lost_takes_its_count_with_it(redis_backend: RedisBackend, on_redis: Gate) -> None:
    gate, transport = on_redis, redis_backend.transport()
    await transport.prepare(LANES)
    await admit(gate, 7)
    assert await redis_backend.client.hget(keys.queue(3), "more") == b"6"
    await redis_backend.client.delete(keys.orders(3))
    assert await transport.backlog(LANES) == 0
    await admit(gate, 3, "later")
    assert await transport.backlog(LANES) == 3
    await redis_backend.client.hset(keys.queue(3), "more", "inf")
    await admit(gate, 2, "latest")
    assert await redis_backend.client.hget(keys.queue(3), "more") == b"1", "what is no number counts as none"


async def test_where_nobody_has_allowed_it_each_has_its_own(redis_backend: RedisBackend, on_redis: Gate) -> None:
    gate = on_redis
    client = redis_backend.client
    for form in (None, "1", "3"):
        await (client.hdel(keys.queue(3), "form") if form is None else client.hset(keys.queue(3), "form", form))
        before = await client.xlen(keys.orders(3))
        await admit(gate, 4, f"of {form} ")
        assert await client.xlen(keys.orders(3)) == before + 4
    assert await client.hget(keys.queue(3), "more") in (None, b"0")


async def test_a_broker_gets_each_in_an_entry_of_its_own(redis_backend: RedisBackend, on_redis: Gate) -> None:
    """Those from before the broker came, too: they are written anew, and none is lost or doubled."""
    source = StreamRelaySource(redis_backend.url)
    admitted = await admit(on_redis, 4)
    await source.prepare(LANES)
    assert await source.read(100, 0) == []
    relayed = await source.read(100, 0)
    assert numbers(relayed) == admitted
    assert [delivery.of for delivery in relayed] == [1] * 4
    assert [read_entry(3, "1-1", delivery.payload).admission for delivery in relayed] == [d.admission for d in relayed]
    later = await admit(on_redis, 2, "later")
    assert numbers(await source.read(100, 0)) == later, "nobody puts them together any more"
    assert await source.backlog(LANES) == 6
    assert await redis_backend.client.hget(keys.queue(3), "more") == b"0"
    await source.close()


def an_admission(counter: int, **more: Any) -> Admission:
    given: dict[str, Any] = {
        "user": f"u{counter}",
        "quantity": 1,
        "slot": 1,
        "request_id": "k",
        "metadata": "",
        "item": 0,
        "person": "",
    }
    number = OrderNumber(1000, 3, counter)
    return Admission(number=number, round_id=3, epoch=1, admitted_ms=1_700_000_000_000, **(given | more))


def test_what_is_written_is_read() -> None:
    all_kinds = [
        an_admission(1),
        an_admission(2, user="", request_id="", metadata='{"a":[1]}'),
        an_admission(3, item=7, person="p", quantity=1000, slot=9),
    ]
    for admissions in (all_kinds, all_kinds[:1], [an_admission(5), an_admission(6)]):
        found = read_together(3, "1-1", write_together(admissions))
        assert [delivery.admission for delivery in found] == admissions
        assert {delivery.of for delivery in found} == {len(admissions)}
        assert [read_entry(3, "1-1", standing_alone(delivery).payload).admission for delivery in found] == admissions


@pytest.mark.parametrize(
    "bad", [{"user": "x" * 129}, {"quantity": 0}, {"quantity": 1001}, {"slot": 0}, {"metadata": "[]"}]
)
def test_one_that_cannot_be_understood_is_no_hindrance_to_the_others(bad: dict[str, Any]) -> None:
    good = [an_admission(1), an_admission(3)]
    found = read_together(3, "1-1", write_together([good[0], an_admission(2, **bad), good[1]]))
    assert [delivery.admission for delivery in found] == [good[0], None, good[1]]
    assert found[1].problem
    assert b'"counter":2' in found[1].payload
    names = {standing_alone(delivery).entry_id for delivery in found}
    assert len(names) == 3, "each is set aside under a name of its own"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"{}",
        msgspec.msgpack.encode([2]),
        msgspec.msgpack.encode([3, 3, 1, 3, 1, 1, 1, ["a"], [1], [1], [], [], [], []]),
        msgspec.msgpack.encode([2, 3, 1, 3, 1, 1, 1, [], [], [], [], [], [], []]),
        msgspec.msgpack.encode([2, 3, 1, 3, 1, 1, 1, ["a"], [1, 2], [1], [], [], [], []]),
    ],
)
def test_what_is_no_such_entry_is_one_that_cannot_be_understood(payload: bytes) -> None:
    (delivery,) = read_together(3, "1-1", payload)
    assert (delivery.admission, delivery.payload, delivery.of) == (None, payload, 1)
    assert delivery.problem


def test_no_entry_of_another_lane_or_beyond_the_last_number_is_taken() -> None:
    admissions = [an_admission(COUNTER_MAX), an_admission(COUNTER_MAX)]
    found = read_together(3, "1-1", write_together(admissions))
    assert [delivery.admission is None for delivery in found] == [False, True]
    assert [d.admission for d in read_together(4, "1-1", write_together([an_admission(1), an_admission(2)]))] == [
        None
    ] * 2


def test_an_order_with_an_entry_of_its_own_stays_as_it_is() -> None:
    delivery = read_entry(3, "1-1", write_entry(an_admission(1)))
    assert standing_alone(delivery) is delivery
