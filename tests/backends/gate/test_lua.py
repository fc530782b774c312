"""The scripts promise more than the suite tests: nothing by halves when the server refuses, and their own keys only."""

import asyncio
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from redis.exceptions import ResponseError

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.engine.claims.claim_batches import BATCH_MAX
from seckill.errors import GateUnavailable
from seckill.ports.gate import Found, Release
from seckill.ports.queue_entry import read_entry
from tests.backends.gate.conftest import give_back, open_round, outcomes, rebuild
from tests.fixtures.backends import RedisBackend
from tests.making import make_round


@pytest.mark.parametrize(
    "quantity", [0, -1, 1.5, 1001, 2**53, -(2**53), math.nan, math.inf, "1", "0x10", "", True, None, [1]]
)
async def test_the_script_itself_refuses_a_bad_quantity(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, quantity: Any
) -> None:
    """Called directly, past every check of the API (F60, S23)."""
    round_ = await open_round(redis_gate, make_round(limit_per_buyer=1000, total=10_000))
    before = await redis_backend.contents()
    assert await outcomes(redis_gate, round_.ref, [Claim("ann", quantity)]) == [Outcome.INVALID]
    assert await redis_backend.contents() == before


async def test_names_of_every_length_arrive_as_they_were_sent(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """They do so in a batch as large as any, because lengths decide how claims are packed."""
    round_ = await open_round(redis_gate, make_round(limit_per_buyer=1000, total=1_000_000))
    claims = [
        Claim(str(i).zfill(3) + "顧/" * (i % 63) + "x" * (i % 2), 1 + 2 * i, "k" * (i % 65)) for i in range(BATCH_MAX)
    ]
    answers = (await redis_gate.admit(round_.ref, claims)).answers
    assert {answer.outcome for answer in answers} == {Outcome.ADMITTED}
    entries = [
        read_entry(3, entry_id.decode(), fields[b"order"]).admission
        for entry_id, fields in await client.xrange(keys.orders(3))
    ]
    for claim, answer, entry in zip(claims, answers, entries, strict=True):
        assert entry is not None
        (order,) = answer.holdings
        assert await redis_gate.holdings([round_.ref], claim.user) == [(order,)]
        assert order == Holding(entry.number, claim.quantity, 1, claim.request_id, live=True)
        assert (entry.user, entry.quantity, entry.slot, entry.request_id) == (
            claim.user,
            claim.quantity,
            1,
            claim.request_id,
        )


@pytest.mark.parametrize("key", ["orders", "buyers", "days", "round"])
async def test_a_key_of_the_wrong_type_leaves_everything_as_it_was(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, key: str
) -> None:
    """Lua does not roll back, so nothing may be written before the last thing that can fail (F7)."""
    round_ = await open_round(redis_gate, make_round(total=5))
    await redis_gate.admit(round_.ref, [Claim("ann", 1)])
    name = {
        "orders": keys.orders(3),
        "buyers": keys.buyers(round_.ref),
        "days": keys.days(3),
        "round": keys.round_(round_.ref),
    }[key]
    await client.delete(name)
    await client.set(name, "not what it should be")
    before = await redis_backend.contents()
    with pytest.raises(GateUnavailable):
        await redis_gate.admit(round_.ref, [Claim("bob", 1), Claim("cid", 1)])
    assert await redis_backend.contents() == before


async def test_a_counter_that_is_no_number_leaves_everything_as_it_was(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    round_ = await open_round(redis_gate, make_round())
    await redis_gate.admit(round_.ref, [Claim("ann", 1)])
    (day,) = await client.hkeys(keys.days(3))
    await client.hset(keys.days(3), day, "many")
    before = await redis_backend.contents()
    with pytest.raises(GateUnavailable):
        await redis_gate.admit(round_.ref, [Claim("bob", 1)])
    assert await redis_backend.contents() == before


async def test_full_memory_refuses_whole_batches_and_changes_nothing(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """Grows until the server is full; every batch is either there completely or not at all (F7)."""
    round_ = await open_round(redis_gate, make_round(total=1_000_000))
    used = (await client.info("memory"))["used_memory"]
    await client.config_set("maxmemory", used + 1_000_000)
    try:
        admitted = 0
        for batch in range(1000):
            before = await redis_backend.contents()
            try:
                reply = await redis_gate.admit(round_.ref, [Claim(f"u{batch}-{i}", 1) for i in range(200)])
            except GateUnavailable as error:
                assert "maxmemory" in str(error)  # noqa: PT017
                assert await redis_backend.contents() == before
                break
            admitted += sum(answer.outcome is Outcome.ADMITTED for answer in reply.answers)
        else:
            pytest.fail("memory never ran out, so nothing was shown")
    finally:
        await client.config_set("maxmemory", 0)
    view = await redis_gate.inspect(round_.ref)
    assert view is not None
    assert view.admitted == admitted == view.total - view.available == view.buyers
    assert await client.xlen(keys.orders(3)) == admitted
    assert admitted > 0


async def test_the_days_counter_stops_at_its_24_bits(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    round_ = await open_round(redis_gate, make_round())
    await redis_gate.admit(round_.ref, [Claim("ann", 1)])
    (day,) = await client.hkeys(keys.days(3))
    await client.hset(keys.days(3), day, 2**24 - 2)
    assert await outcomes(redis_gate, round_.ref, [Claim("bob", 1), Claim("cid", 1)]) == [
        Outcome.ADMITTED,
        Outcome.OVERLOADED,
    ]


async def test_days_are_kept_for_forty_days_and_named_by_the_utc_date(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """A new day throws the old ones away (F23)."""
    await client.hset(keys.days(3), mapping={"20200101": 5, "20991231": 7})
    round_ = await open_round(redis_gate, make_round())
    await redis_gate.admit(round_.ref, [Claim("ann", 1)])
    seconds, _ = await client.time()
    days = await client.hgetall(keys.days(3))
    assert b"20200101" not in days
    assert days[b"20991231"] == b"7"
    today = datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d").encode()
    assert days[today] == b"1"


async def test_control_check_then_act_oversells(client: Any) -> None:
    """The control of the test above: the same crowd against "read the stock, then take one" sells too much.
    If this one fails, the test above proves nothing."""
    await client.set("stock", 60)
    sold = 0

    async def buy() -> None:
        nonlocal sold
        if int(await client.get("stock")) > 0:
            await client.decr("stock")
            sold += 1

    await asyncio.gather(*(buy() for _ in range(250)))
    assert sold > 60


async def test_the_script_is_loaded_again_when_the_server_forgot_it(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    round_ = await open_round(redis_gate, make_round())
    assert await outcomes(redis_gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]
    await client.script_flush()
    assert await outcomes(redis_gate, round_.ref, [Claim("bob", 1)]) == [Outcome.ADMITTED]


async def test_scripts_touch_only_the_keys_they_are_given(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """A user who may touch one lane only can run them; a key built inside a script would be denied (F6)."""
    await client.acl_setuser(
        "lane3", enabled=True, passwords=["+pw"], commands=["+@all"], keys=[f"seckill:{{{keys.tag(3)}}}:*"]
    )
    try:
        round_ = await open_round(redis_gate, make_round())
        connection = await client.connection_pool.get_connection()
        try:
            await connection.send_command("AUTH", "lane3", "pw")
            await connection.read_response()
            await connection.send_command("GET", "anything else")
            with pytest.raises(ResponseError):
                await connection.read_response()
            source = redis_gate._admit.source
            names = [keys.round_(round_.ref), keys.buyers(round_.ref), keys.orders(3), keys.days(3)]
            names += [keys.past(round_.ref), keys.queue(3)]
            await connection.send_command(
                "EVAL", source, len(names), *names, 10, *map(msgspec.msgpack.encode, (["ann"], [1], [""])), 1
            )
            assert (await connection.read_response())[3] == b"admitted"
        finally:
            await connection.disconnect()
            await client.connection_pool.release(connection)
    finally:
        await client.acl_deluser("lane3")


@pytest.mark.parametrize("key", ["buyers", "round", "past"])
async def test_a_release_with_a_key_of_the_wrong_type_leaves_everything_as_it_was(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any, key: str
) -> None:
    round_ = await open_round(redis_gate, make_round(total=5))
    (answer,) = (await redis_gate.admit(round_.ref, [Claim("ann", 1)])).answers
    name = {
        "buyers": keys.buyers(round_.ref),
        "round": keys.round_(round_.ref),
        "past": keys.past(round_.ref),
    }[key]
    await client.delete(name)
    await client.set(name, "x")
    before = await redis_backend.contents()
    with pytest.raises(GateUnavailable):
        await give_back(redis_gate, round_.ref, [Release(answer.holdings[0].number, "ann", 1)])
    assert await redis_backend.contents() == before


async def test_buyers_without_their_round_are_not_sold_to_again(redis_gate: RedisGate, client: Any) -> None:
    round_ = await open_round(redis_gate, make_round())
    await redis_gate.admit(round_.ref, [Claim("ann", 1)])
    await client.delete(keys.round_(round_.ref))
    assert (await redis_gate.open_round(round_)).found is Found.REMNANT
    assert await client.exists(keys.round_(round_.ref)) == 0


async def test_a_server_that_has_gone_back_to_before_a_rebuild_admits_nobody(
    redis_gate: RedisGate, redis_backend: RedisBackend, client: Any
) -> None:
    """The ledger takes no order of that epoch any more."""
    round_ = await open_round(redis_gate, make_round(total=5))
    await rebuild(
        redis_gate, replace(round_, epoch=2), {"ann": [Holding(OrderNumber(1000, 3, 1), 1, 1, "", live=True)]}
    )
    _, (pulse,) = await redis_gate.pulses([round_.ref])
    assert pulse is not None
    assert pulse.epoch == 2
    assert await outcomes(redis_gate, round_.ref, [Claim("bob", 1)]) == [Outcome.ADMITTED]
    await client.hset(keys.round_(round_.ref), "epoch", 1)
    assert await outcomes(redis_gate, round_.ref, [Claim("cid", 1), Claim("bob", 0)]) == [
        Outcome.NOT_READY,
        Outcome.INVALID,
    ]
    assert await outcomes(redis_backend.gate(), round_.ref, [Claim("cid", 1)]) == [Outcome.ADMITTED], "who cannot know"
