"""Orders that are over leave the buyer's record, which is read at every claim, and are still known by their keys."""

from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.errors import GateUnavailable
from seckill.ports.gate import Release, Released
from tests.backends.gate.conftest import give_back, held_by, open_round, outcomes
from tests.backends.gate.test_release import buy
from tests.fixtures.backends import RedisBackend
from tests.making import make_round

TIMES = 300
# A note and one order, with room for larger numbers.
RECORD_BYTES_MAX = 100


async def test_a_record_stays_short_however_often_its_buyer_cancels(redis_gate: RedisGate, client: Any) -> None:
    """Otherwise one buyer would slow the gate down for all: it reads the whole record at each of that buyer's
    claims."""
    round_ = await open_round(redis_gate, make_round(total=1))
    buyers, past = keys.buyers(round_.ref), keys.past(round_.ref)
    for i in range(TIMES):
        held = await buy(redis_gate, round_, "ann", key=f"k{i}")
        assert await client.hstrlen(buyers, "ann") <= RECORD_BYTES_MAX
        released = await give_back(redis_gate, round_.ref, [Release(held.number, "ann", 1, f"k{i}", lapsed=True)])
        assert released == [Released.RELEASED]
    assert await client.hstrlen(buyers, "ann") <= RECORD_BYTES_MAX
    assert await client.hlen(past) == TIMES
    again = (await redis_gate.admit(round_.ref, [Claim("ann", 1, f"k{i}") for i in range(TIMES)])).answers
    assert {answer.outcome for answer in again} == {Outcome.REPEATED}
    assert len({answer.holdings[0].number for answer in again}) == TIMES


async def test_only_buyers_who_have_such_orders_are_looked_up(redis_gate: RedisGate, client: Any) -> None:
    """The claims of all other buyers cost what they would without them."""
    round_ = await open_round(redis_gate, make_round(total=9, limit_per_buyer=2))
    held = await buy(redis_gate, round_, "ann", key="k")
    await give_back(redis_gate, round_.ref, [Release(held.number, "ann", 1, "k")])
    for user in ("ann", "bob"):  # a buyer whose record is not looked up would not be told
        await client.hset(keys.past(round_.ref), f"planted {user}", "5:1:1:1:planted:0")
    claims = [Claim("bob", 1, "planted"), Claim("ann", 1, "planted"), Claim("bob", 1, "planted too")]
    found = await outcomes(redis_gate, round_.ref, claims)
    assert found == [Outcome.ADMITTED, Outcome.REPEATED, Outcome.ADMITTED]


async def test_a_claim_that_cannot_look_back_changes_nothing(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    round_ = await open_round(redis_gate, make_round(total=9))
    held = await buy(redis_gate, round_, "ann", key="k")
    await give_back(redis_gate, round_.ref, [Release(held.number, "ann", 1, "k")])
    await client.delete(keys.past(round_.ref))
    await client.set(keys.past(round_.ref), "x")
    before = await redis_backend.contents()
    with pytest.raises(GateUnavailable):
        await redis_gate.admit(round_.ref, [Claim("bob", 1), Claim("ann", 1, "another")])
    assert await redis_backend.contents() == before


async def test_records_that_an_earlier_version_wrote(redis_gate: RedisGate, client: Any) -> None:
    """They have orders in them that are over, which move when the next order of the buyer ends."""
    round_ = await open_round(redis_gate, make_round(total=9, limit_per_buyer=3))
    buyers, past = keys.buyers(round_.ref), keys.past(round_.ref)
    await client.hset(buyers, "ann", "5:1:1:1:k1:0 5:2:2:2::0 5:3:1:1:k3:1")
    await client.hset(keys.round_(round_.ref), mapping={"available": 8, "admitted": 4, "released": 3})
    (live,) = await held_by(redis_gate, round_.ref, "ann")
    over, last = Release(live.number, "ann", 1), Release(live.number, "ann", 1, "k3", lapsed=True)
    first, second = (_with_counter(over, counter, key) for counter, key in ((1, "k1"), (2, "")))

    async def known() -> list[Outcome]:
        return await outcomes(redis_gate, round_.ref, [Claim("ann", 1, "k1"), Claim("ann", 1, "k3")])

    assert await known() == [Outcome.REPEATED] * 2
    assert await give_back(redis_gate, round_.ref, [first, second]) == [Released.ALREADY] * 2
    assert await client.hlen(past) == 0
    assert await give_back(redis_gate, round_.ref, [last]) == [Released.RELEASED]
    assert await client.hgetall(past) == {
        b"k1 ann": b"5:1:1:1:k1:0",
        b"5:2 ann": b"5:2:2:2::0",
        b"k3 ann": b"5:3:1:1:k3:0",
    }
    note, _, rest = (await client.hget(buyers, "ann")).decode().partition(" ")
    assert (note.split(":")[:2], rest) == (["~4", "1"], "")
    assert await known() == [Outcome.REPEATED] * 2
    assert await give_back(redis_gate, round_.ref, [first, second, last]) == [Released.ALREADY] * 3
    view = await redis_gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.admitted, view.released) == (9, 4, 4)


def _with_counter(release: Release, counter: int, request_id: str) -> Release:
    number = type(release.number)(release.number.seconds, release.number.lane, counter)
    return Release(number, release.user, release.epoch, request_id)
