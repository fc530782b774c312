"""Something stands under a key or in a field of a round that no gate writes there: it counts as lost, nothing else."""

from datetime import UTC, datetime
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.errors import GateUnavailable
from seckill.ports.gate import Gate, Release, Released
from tests.backends.gate.conftest import open_round, outcomes, rebuild
from tests.fixtures.backends import RedisBackend
from tests.making import make_round

pytestmark = pytest.mark.usefixtures("a_second_passes")

ROUND, OTHER = make_round(id=1, total=10), make_round(id=2, total=10)
KEYS = {"round": keys.round_, "buyers": keys.buyers, "past": keys.past}
FIELDS = ["status", "limit", "begins_ms", "ends_ms", "available", "admitted", "version", "epoch", "id", "lane"]
FIELDS += ["cool_down_s"]
# To Lua, all but the first two are numbers.
GARBAGE = ["x", "", "nan", "inf", "0x10", " 5", "9" * 16]


async def overwrite(client: Any, key: str) -> None:
    await client.delete(key)
    await client.set(key, "x")


async def admits(gate: Gate) -> bool:
    try:
        (outcome,) = await outcomes(gate, ROUND.ref, [Claim("zoe", 1)])
    except GateUnavailable:
        return False
    assert outcome in (Outcome.ADMITTED, Outcome.NOT_READY, Outcome.OVERLOADED)
    return outcome is Outcome.ADMITTED


async def is_seen(gate: Gate) -> bool:
    """The other round is seen, whatever has become of this one."""
    _, (pulse, other) = await gate.pulses([ROUND.ref, OTHER.ref])
    assert other is not None
    return pulse is not None


async def is_rebuilt(gate: RedisGate) -> bool:
    await gate.fence(ROUND)
    held = Holding(OrderNumber(1, ROUND.lane, 1), 1, 1, "k", live=True)
    await rebuild(gate, make_round(id=1, total=10, epoch=2), {"ann": [held]})
    (again,) = await outcomes(gate, ROUND.ref, [Claim("ann", 1, "k")])
    return again is Outcome.REPEATED and await is_seen(gate) and await admits(gate)


@pytest.mark.parametrize("which", KEYS)
async def test_something_else_under_a_key_of_a_round_counts_as_lost(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, which: str
) -> None:
    for round_ in (ROUND, OTHER):
        await open_round(redis_gate, round_)
    assert await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k")]) == [Outcome.ADMITTED]
    key = KEYS[which](ROUND.ref)
    await overwrite(client, key)
    before = await redis_backend.contents()
    assert not await admits(redis_gate)
    assert not await is_seen(redis_gate)
    view = await redis_gate.inspect(ROUND.ref)
    assert view is None or not view.whole
    (known,), (unknown,) = [await redis_gate.holdings([ROUND.ref], user) for user in ("ann", "zoe")]
    assert (known is None) == (which == "buyers"), "a record that is there tells all"
    assert unknown is None, "it cannot know"
    assert await redis_gate.damage(ROUND.ref) == [f"{key} is not a hash"]
    assert await redis_gate.damage(OTHER.ref) == []
    assert await redis_backend.contents() == before, "nothing was written"
    assert await is_rebuilt(redis_gate)


@pytest.mark.parametrize("value", GARBAGE)
@pytest.mark.parametrize("field", FIELDS)
async def test_something_else_in_a_field_counts_as_lost(
    redis_gate: RedisGate, client: Any, field: str, value: str
) -> None:
    for round_ in (ROUND, OTHER):
        await open_round(redis_gate, round_)
    await client.hset(keys.round_(ROUND.ref), field, value)
    assert not await admits(redis_gate)
    assert not await is_seen(redis_gate)
    assert await redis_gate.inspect(ROUND.ref) is None
    assert await redis_gate.damage(ROUND.ref) == [f"{keys.round_(ROUND.ref)} has something else as its {field}"]
    assert await is_rebuilt(redis_gate)


@pytest.mark.parametrize("field", ["total", "dealt", "released", "revision", "opened_ms", "buyers", "past", "got:x"])
async def test_also_in_one_that_no_claim_needs(redis_gate: RedisGate, client: Any, field: str) -> None:
    for round_ in (ROUND, OTHER):
        await open_round(redis_gate, round_)
    await client.hset(keys.round_(ROUND.ref), field, "x")
    if field != "got:x":  # a round of one lane has none, and is not asked for it
        assert not await is_seen(redis_gate)
    assert await redis_gate.inspect(ROUND.ref) is None
    assert await is_rebuilt(redis_gate)


@pytest.mark.parametrize("value", ["x", "1.5"])
@pytest.mark.parametrize("field", ["available", "released", "version", "buyers", "past"])
async def test_nothing_is_given_back_to_a_round_whose_numbers_are_none(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, field: str, value: str
) -> None:
    """A script that failed in the middle would leave half of it done."""
    await open_round(redis_gate, ROUND)
    reply = await redis_gate.admit(ROUND.ref, [Claim("ann", 1, "k")])
    await client.hset(keys.round_(ROUND.ref), field, value)
    before = await redis_backend.contents()
    release = Release(reply.answers[0].holdings[0].number, "ann", 1, "k")
    assert list((await redis_gate.release(ROUND.ref, [release])).results) == [Released.NOT_YET]
    assert await redis_backend.contents() == before


@pytest.mark.parametrize("what", ["orders", "days", "a day", "a day of more than it can have", "home"])
async def test_something_else_under_a_key_of_a_lane_is_taken_away(
    redis_gate: RedisGate, client: Any, what: str
) -> None:
    """Otherwise no round of the lane could ever sell again."""
    await open_round(redis_gate, ROUND)
    assert await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k")]) == [Outcome.ADMITTED]
    assert await redis_gate.discard_damage([ROUND.lane, 7]) == [], "what is sound stays"
    if what.startswith("a day"):
        key = keys.days(ROUND.lane)
        await client.hset(key, datetime.now(UTC).strftime("%Y%m%d"), "x" if what == "a day" else "9" * 5000)
    else:
        key = {"orders": keys.orders, "days": keys.days, "home": keys.home}[what](ROUND.lane)
        await client.delete(key)
        await (client.rpush(key, "x") if what == "home" else client.set(key, "x"))
    if what != "home":  # which a server that nothing can replace is not asked for
        assert not await admits(redis_gate)
    assert await redis_gate.discard_damage([ROUND.lane]) == [key]
    assert await redis_gate.discard_damage([ROUND.lane]) == []
    if what == "home":
        assert await client.get(key) == b"?", "a server that took over has to be compared first"
    while not await admits(redis_gate):  # without its counter, not before the next second
        pass


@pytest.mark.parametrize(
    "record", ["garbage", "", "1:1:1:1:k:1 garbage", "1:1:1:1:k", "~1:1", "~1:1:1 x", "x1:1:1:1:k:1"]
)
async def test_something_else_in_the_place_of_a_buyers_record_admits_nobody(
    redis_gate: RedisGate, client: Any, record: str
) -> None:
    """The buyer would get a second order. No other claim is decided either, until the round has been rebuilt."""
    for round_ in (ROUND, OTHER):
        await open_round(redis_gate, round_)
    await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k")])
    await client.hset(keys.buyers(ROUND.ref), "ann", record)
    before = [await client.hgetall(keys.buyers(ROUND.ref)), await client.xlen(keys.orders(ROUND.lane))]
    claims = [Claim("bob", 1, "k"), Claim("ann", 1, "other"), Claim("cid", 1, "k")]
    assert await outcomes(redis_gate, ROUND.ref, claims) == [Outcome.NOT_READY] * 3
    assert before == [await client.hgetall(keys.buyers(ROUND.ref)), await client.xlen(keys.orders(ROUND.lane))]
    assert not await admits(redis_gate)
    assert not await is_seen(redis_gate), "so the keeper rebuilds it"
    assert await is_rebuilt(redis_gate)


@pytest.mark.parametrize("record", ["garbage", "", "{} garbage", "garbage {}", "~1:1", "~1:1:1 x", "x{}"])
async def test_something_else_in_the_place_of_a_buyers_record_keeps_no_unit(
    redis_gate: RedisGate, client: Any, record: str
) -> None:
    """It keeps neither the buyer's unit nor those that come back with it: the round is rebuilt, and they come again."""
    for round_ in (ROUND, OTHER):
        await open_round(redis_gate, round_)
    reply = await redis_gate.admit(ROUND.ref, [Claim("ann", 1, "k"), Claim("bob", 1, "k")])
    releases = [
        Release(answer.holdings[0].number, user, 1, "k")
        for user, answer in zip(("ann", "bob"), reply.answers, strict=True)
    ]
    held = (await client.hget(keys.buyers(ROUND.ref), "ann")).decode()
    await client.hset(keys.buyers(ROUND.ref), "ann", record.format(held))
    before = [await client.hgetall(key(ROUND.ref)) for key in (keys.buyers, keys.past)]
    assert list((await redis_gate.release(ROUND.ref, releases)).results) == [Released.NOT_YET] * 2
    assert before == [await client.hgetall(key(ROUND.ref)) for key in (keys.buyers, keys.past)]
    assert not await is_seen(redis_gate), "so the keeper rebuilds it"
    assert await is_rebuilt(redis_gate)


async def test_something_else_in_the_place_of_an_order_that_is_over_admits_nobody(
    redis_gate: RedisGate, client: Any
) -> None:
    for round_ in (ROUND, OTHER):
        await open_round(redis_gate, round_)
    reply = await redis_gate.admit(ROUND.ref, [Claim("ann", 1, "k")])
    release = Release(reply.answers[0].holdings[0].number, "ann", 1, "k")
    assert list((await redis_gate.release(ROUND.ref, [release])).results) == [Released.RELEASED]
    await client.hset(keys.past(ROUND.ref), "k ann", "garbage")
    assert await outcomes(redis_gate, ROUND.ref, [Claim("ann", 1, "k")]) == [Outcome.NOT_READY]
    assert not await is_seen(redis_gate)
    assert await is_rebuilt(redis_gate)
