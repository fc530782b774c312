"""A key or a field of a round is gone: the gate admits no one and takes nothing back until it has been rebuilt."""

from datetime import UTC, datetime
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim, Holding
from seckill.domain.order_number import ORIGIN_S, OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundRef
from seckill.ports.gate import Gate, Release, Released
from tests.backends.gate.conftest import give_back, open_round, outcomes, rebuild
from tests.fixtures.backends import MemoryBackend, RedisBackend
from tests.making import make_round

ROUND = make_round(total=10)


async def buy(gate: Gate, *users: str) -> list[OrderNumber]:
    answers = (await gate.admit(ROUND.ref, [Claim(user, 1, "k") for user in users])).answers
    assert {answer.outcome for answer in answers} == {Outcome.ADMITTED}
    return [answer.holdings[0].number for answer in answers]


async def sells_nothing(gate: Gate, ref: RoundRef) -> bool:
    known, new = await outcomes(gate, ref, [Claim("ann", 1, "k"), Claim("zoe", 1, "k")])
    _, (pulse,) = await gate.pulses([ref])
    return (known, new, pulse) == (Outcome.NOT_READY, Outcome.NOT_READY, None)


@pytest.mark.parametrize("gone", ["all", "one"])
async def test_without_records_of_its_buyers_nothing_is_decided(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, gone: str
) -> None:
    """Every buyer could buy once more, and a repeat would become a second order."""
    await open_round(redis_gate, ROUND)
    ann, _ = await buy(redis_gate, "ann", "bob")
    if gone == "all":
        await client.delete(keys.buyers(ROUND.ref))
    else:
        await client.hdel(keys.buyers(ROUND.ref), "ann")
    before = await redis_backend.contents()
    assert await sells_nothing(redis_gate, ROUND.ref)
    assert await give_back(redis_gate, ROUND.ref, [Release(ann, "ann", 1)]) == [Released.NOT_YET]
    view = await redis_gate.inspect(ROUND.ref)
    assert view is not None
    assert not view.whole
    assert await redis_backend.contents() == before, "nothing was written"


async def test_without_what_is_known_of_orders_that_are_over_nothing_is_decided(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """Their keys are there: a late repeat would become a second order."""
    await open_round(redis_gate, ROUND)
    ann, _ = await buy(redis_gate, "ann", "bob")
    release = Release(ann, "ann", 1, request_id="k")
    assert await give_back(redis_gate, ROUND.ref, [release]) == [Released.RELEASED]
    assert await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k")]) == [Outcome.REPEATED]
    await client.delete(keys.past(ROUND.ref))
    before = await redis_backend.contents()
    assert await sells_nothing(redis_gate, ROUND.ref)
    assert await give_back(redis_gate, ROUND.ref, [release]) == [Released.NOT_YET]
    assert await redis_backend.contents() == before


async def test_in_memory_the_same() -> None:
    memory = MemoryBackend()
    gate, store = memory.gate(), memory.store
    await open_round(gate, ROUND)
    ann, _ = await buy(gate, "ann", "bob")
    del store.contents.buyers[ROUND.ref]["ann"]
    assert await sells_nothing(gate, ROUND.ref)
    assert await give_back(gate, ROUND.ref, [Release(ann, "ann", 1)]) == [Released.NOT_YET]
    view = await gate.inspect(ROUND.ref)
    assert view is not None
    assert not view.whole


async def test_a_round_that_nobody_has_bought_in_has_no_records_to_lose(redis_gate: RedisGate, client: Any) -> None:
    await open_round(redis_gate, ROUND)
    await client.delete(keys.buyers(ROUND.ref))
    assert await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]


async def test_records_are_counted_by_a_rebuild(redis_gate: RedisGate, client: Any) -> None:
    await open_round(redis_gate, ROUND)
    holdings = {
        user: [Holding(OrderNumber(1, ROUND.lane, i), 1, 1, "k", live=True)] for i, user in enumerate(("ann", "bob"))
    }
    await redis_gate.fence(ROUND)
    await rebuild(redis_gate, make_round(total=10, epoch=2), holdings)
    assert await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k")]) == [Outcome.REPEATED]
    await client.hdel(keys.buyers(ROUND.ref), "bob")
    assert await sells_nothing(redis_gate, ROUND.ref)


async def test_a_round_of_an_earlier_version_sells_on_and_is_counted_from_then_on(
    redis_gate: RedisGate, client: Any
) -> None:
    """It did not count its buyers. A node of that version may still be selling, too."""
    await open_round(redis_gate, ROUND)
    await buy(redis_gate, "ann", "bob")
    await client.hdel(keys.round_(ROUND.ref), "buyers")
    _, (pulse,) = await redis_gate.pulses([ROUND.ref])
    assert pulse is not None
    known, new = await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k"), Claim("cid", 1)])
    assert (known, new) == (Outcome.REPEATED, Outcome.ADMITTED)
    assert await client.hget(keys.round_(ROUND.ref), "buyers") == b"3"
    await client.hset(keys.round_(ROUND.ref), "buyers", 1)  # two of them were admitted by a node of that version
    assert await outcomes(redis_gate, ROUND.ref, [Claim("dan", 1)]) == [Outcome.ADMITTED]
    assert await client.hget(keys.round_(ROUND.ref), "buyers") == b"4"


async def test_also_of_an_earlier_version_all_records_gone_are_noticed(redis_gate: RedisGate, client: Any) -> None:
    await open_round(redis_gate, ROUND)
    await buy(redis_gate, "ann")
    await client.hdel(keys.round_(ROUND.ref), "buyers")
    await client.delete(keys.buyers(ROUND.ref))
    assert await sells_nothing(redis_gate, ROUND.ref)


@pytest.mark.parametrize(
    "field",
    [
        "status",
        "limit",
        "begins_ms",
        "ends_ms",
        "available",
        "admitted",
        "version",
        "epoch",
        "id",
        "lane",
        "cool_down_s",
    ],
)
async def test_without_a_field_of_the_round_nothing_is_decided(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, field: str
) -> None:
    await open_round(redis_gate, ROUND)
    await buy(redis_gate, "ann")
    await client.hdel(keys.round_(ROUND.ref), field)
    before = await redis_backend.contents()
    assert await sells_nothing(redis_gate, ROUND.ref)
    assert await redis_backend.contents() == before


@pytest.mark.parametrize("field", ["total", "dealt", "released", "revision", "opened_ms"])
async def test_a_field_that_no_claim_needs_is_missed_by_the_pulse(
    redis_gate: RedisGate, client: Any, field: str
) -> None:
    await open_round(redis_gate, ROUND)
    await client.hdel(keys.round_(ROUND.ref), field)
    _, (pulse,) = await redis_gate.pulses([ROUND.ref])
    assert pulse is None


@pytest.mark.parametrize("gone", ["hash", "field"])
async def test_a_lost_counter_gives_out_no_number_twice(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, gone: str
) -> None:
    """In the second of the loss, numbers that begin at 1 again would be those of before (F22)."""
    while True:  # until both are done within one second
        await redis_backend.lose_everything()
        await open_round(redis_gate, ROUND)
        ann, bob = await buy(redis_gate, "ann", "bob")
        if gone == "hash":
            await client.delete(keys.days(ROUND.lane))
        else:
            await client.hset(keys.days(ROUND.lane), "20200101", 7)
            await client.hdel(keys.days(ROUND.lane), datetime.now(UTC).strftime("%Y%m%d"))
        reply = await redis_gate.admit(ROUND.ref, [Claim("zoe", 1)])
        if reply.now_ms // 1000 - ORIGIN_S == ann.seconds:
            break
    assert [answer.outcome for answer in reply.answers] == [Outcome.NOT_READY], "not before the next second"
    while reply.answers[0].outcome is Outcome.NOT_READY:
        reply = await redis_gate.admit(ROUND.ref, [Claim("zoe", 1)])
    (answer,) = reply.answers
    assert answer.outcome is Outcome.ADMITTED
    assert answer.holdings[0].number not in (ann, bob)
    assert answer.holdings[0].number.counter == 1


async def test_a_server_whose_clock_was_set_back_sells_on(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """It has sold with a clock that was a month ahead, and today's counter is not there: no buyer waits for a month,
    and no number is given out twice, even within the second of the loss."""
    while True:  # until all is done within one second
        await redis_backend.lose_everything()
        await open_round(redis_gate, ROUND)
        numbers = await buy(redis_gate, "ann", "bob")
        seconds, _ = await client.time()
        await client.execute_command("XSETID", keys.orders(ROUND.lane), f"{(seconds + 30 * 86_400) * 1000}-0")
        await client.delete(keys.days(ROUND.lane))
        numbers += await buy(redis_gate, "cat", "dan", "eve")
        if len({number.seconds for number in numbers}) == 1:
            break
    assert len(set(numbers)) == 5
    numbers += await buy(redis_gate, "zoe")
    assert numbers[5].counter == numbers[4].counter + 1, "from there on it counts"
