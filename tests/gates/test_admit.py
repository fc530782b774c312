"""What the admission script promises, on a real server."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.exceptions import ResponseError

from seckill.domain import Claim, RoundStatus
from seckill.errors import GateUnavailable
from seckill.gates import keys
from seckill.gates.redis import RedisGate
from seckill.outcomes import Outcome
from seckill.transports.streams import parse
from tests.gates.conftest import OpenedRound
from tests.making import HOUR_MS, make_round


async def outcomes(gate: RedisGate, ref: Any, *claims: Claim) -> list[Outcome]:
    return [answer.outcome for answer in (await gate.admit(ref, claims)).answers]


async def dump(client: Any) -> dict[bytes, bytes]:
    """Everything the server holds, byte by byte."""
    return {key: await client.dump(key) for key in await client.keys("*")}


async def test_a_round_that_is_not_there_is_not_ready_and_nothing_is_written(gate: RedisGate, client: Any) -> None:
    """F2, F3: a missing key is never "sold out"."""
    reply = await gate.admit(make_round().ref, [Claim("ann", 1)])
    assert [answer.outcome for answer in reply.answers] == [Outcome.NOT_READY]
    assert reply.available is None
    assert await client.keys("*") == []


async def test_a_round_that_was_only_created_admits_nobody(gate: RedisGate) -> None:
    round_ = make_round()
    await gate.open_round(round_)
    assert await outcomes(gate, round_.ref, Claim("ann", 1)) == [Outcome.NOT_READY]


async def test_winners_get_numbers_and_an_entry_each(gate: RedisGate, client: Any, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=3))
    reply = await gate.admit(round_.ref, [Claim("ann", 1, "k1"), Claim("bob", 1), Claim("eve", 2)])
    assert [answer.outcome for answer in reply.answers] == [
        Outcome.ADMITTED,
        Outcome.ADMITTED,
        Outcome.LIMIT_REACHED,
    ]
    assert [answer.holdings[0].number.counter for answer in reply.answers[:2]] == [1, 2]
    assert {answer.holdings[0].number.lane for answer in reply.answers[:2]} == {3}
    assert await client.xlen(keys.orders(3)) == 2
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.admitted, view.released, view.buyers, view.backlog) == (1, 2, 0, 2, 2)
    assert await client.hvals(keys.days(3)) == [b"2"]


@pytest.mark.parametrize("total", [1, 2, 5])
async def test_the_last_unit_is_sold_and_not_one_more(gate: RedisGate, opened: OpenedRound, total: int) -> None:
    """F47, F48."""
    round_ = await opened(make_round(total=total))
    answers = await outcomes(gate, round_.ref, *(Claim(f"u{i}", 1) for i in range(20)))
    assert answers == [Outcome.ADMITTED] * total + [Outcome.SOLD_OUT] * (20 - total)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.available == 0


async def test_a_repeat_gets_the_own_order_also_when_sold_out(gate: RedisGate, opened: OpenedRound) -> None:
    """F8, F9: asked before stock, window and status are."""
    round_ = await opened(make_round(total=1))
    first = (await gate.admit(round_.ref, [Claim("ann", 1, "k1")])).answers[0]
    for change in (
        {},
        {"status": RoundStatus.PAUSED},
        {"status": RoundStatus.CLOSED},
        {"ends_ms": round_.begins_ms + 1},
    ):
        round_ = replace(round_, revision=round_.revision + 1, **change)
        await gate.update_round(round_)
        again = (await gate.admit(round_.ref, [Claim("ann", 1, "k1")])).answers[0]
        assert (again.outcome, again.holdings) == (Outcome.REPEATED, first.holdings)
        without_key = (await gate.admit(round_.ref, [Claim("ann", 1)])).answers[0]
        assert (without_key.outcome, without_key.holdings) == (Outcome.LIMIT_REACHED, first.holdings)


async def test_a_repeat_within_one_batch_gets_the_same_order(gate: RedisGate, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    first, second, other = (
        await gate.admit(round_.ref, [Claim("ann", 1, "k"), Claim("ann", 1, "k"), Claim("ann", 1, "other")])
    ).answers
    assert (first.outcome, second.outcome, other.outcome) == (
        Outcome.ADMITTED,
        Outcome.REPEATED,
        Outcome.LIMIT_REACHED,
    )
    assert first.holdings == second.holdings == other.holdings


async def test_the_same_key_for_another_quantity_is_refused(gate: RedisGate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(limit_per_buyer=5))
    assert await outcomes(gate, round_.ref, Claim("ann", 1, "k")) == [Outcome.ADMITTED]
    assert await outcomes(gate, round_.ref, Claim("ann", 2, "k")) == [Outcome.KEY_REUSED]


async def test_a_key_is_the_buyers_own(gate: RedisGate, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    assert await outcomes(gate, round_.ref, Claim("ann", 1, "k"), Claim("bob", 1, "k")) == [Outcome.ADMITTED] * 2


async def test_refusals_come_in_the_order_of_precedence(gate: RedisGate, opened: OpenedRound) -> None:
    """Everything stands against the claim at once; taking away one reason after the other shows the next."""
    tight = with_backlog(gate, 0)
    now = make_round()
    worst = await opened(
        replace(
            now,
            total=1,
            limit_per_buyer=1,
            status=RoundStatus.PAUSED,
            begins_ms=now.ends_ms,
            ends_ms=now.ends_ms + 1,
        )
    )
    assert await outcomes(tight, worst.ref, Claim("ann", 2)) == [Outcome.LIMIT_REACHED]
    assert await outcomes(tight, worst.ref, Claim("ann", 1)) == [Outcome.NOT_STARTED]
    ended = replace(worst, revision=2, begins_ms=now.begins_ms, ends_ms=now.begins_ms + 1)
    await gate.update_round(ended)
    assert await outcomes(tight, worst.ref, Claim("ann", 1)) == [Outcome.ENDED]
    await gate.update_round(replace(ended, revision=3, ends_ms=now.ends_ms))
    assert await outcomes(tight, worst.ref, Claim("ann", 1)) == [Outcome.PAUSED]
    await gate.update_round(replace(ended, revision=4, ends_ms=now.ends_ms, status=RoundStatus.OPEN))
    assert await outcomes(tight, worst.ref, Claim("ann", 1)) == [Outcome.OVERLOADED]
    assert await outcomes(gate, worst.ref, Claim("ann", 1)) == [Outcome.ADMITTED]
    assert await outcomes(gate, worst.ref, Claim("bob", 1)) == [Outcome.SOLD_OUT]
    assert await outcomes(tight, worst.ref, Claim("bob", 1)) == [Outcome.OVERLOADED]


def with_backlog(gate: RedisGate, backlog_max: int) -> RedisGate:
    other = object.__new__(RedisGate)
    other.__dict__.update(gate.__dict__, _backlog_max=backlog_max)
    return other


async def test_the_window_is_the_servers(gate: RedisGate, opened: OpenedRound) -> None:
    """F5: to the millisecond, by the server's clock."""
    now_ms = (await gate.pulses([]))[0]
    future = await opened(make_round(id=1, begins_ms=now_ms + HOUR_MS, ends_ms=now_ms + 2 * HOUR_MS))
    past = await opened(make_round(id=2, begins_ms=now_ms - HOUR_MS, ends_ms=now_ms))
    soon = await opened(make_round(id=3, begins_ms=now_ms + 300, ends_ms=now_ms + HOUR_MS))
    assert await outcomes(gate, future.ref, Claim("ann", 1)) == [Outcome.NOT_STARTED]
    assert await outcomes(gate, past.ref, Claim("ann", 1)) == [Outcome.ENDED]
    while True:
        reply = await gate.admit(soon.ref, [Claim("ann", 1)])
        if reply.answers[0].outcome is not Outcome.NOT_STARTED:
            break
        assert reply.now_ms < soon.begins_ms
    assert reply.answers[0].outcome is Outcome.ADMITTED
    assert reply.now_ms >= soon.begins_ms


@pytest.mark.parametrize(
    "quantity", ["0", "-1", "1.5", "1e3", "0x10", " 1", "1 ", "", "9007199254740992", "1001", "nan"]
)
async def test_the_script_itself_refuses_a_bad_quantity(
    gate: RedisGate, client: Any, opened: OpenedRound, quantity: str
) -> None:
    """F60, S23: called directly, past every check of the API."""
    round_ = await opened(make_round(limit_per_buyer=1000, total=10_000))
    before = await dump(client)
    assert await outcomes(gate, round_.ref, Claim("ann", quantity)) == [Outcome.INVALID]  # type: ignore[arg-type]
    assert await dump(client) == before


@pytest.mark.parametrize("key", ["orders", "buyers", "days", "round"])
async def test_a_key_of_the_wrong_type_leaves_everything_as_it_was(
    gate: RedisGate, client: Any, opened: OpenedRound, key: str
) -> None:
    """F7: Lua does not roll back, so nothing may be written before the last thing that can fail."""
    round_ = await opened(make_round(total=5))
    await gate.admit(round_.ref, [Claim("ann", 1)])
    name = {
        "orders": keys.orders(3),
        "buyers": keys.buyers(round_.ref),
        "days": keys.days(3),
        "round": keys.round_(round_.ref),
    }[key]
    await client.delete(name)
    await client.set(name, "not what it should be")
    before = await dump(client)
    with pytest.raises(GateUnavailable):
        await gate.admit(round_.ref, [Claim("bob", 1), Claim("cid", 1)])
    assert await dump(client) == before


async def test_a_counter_that_is_no_number_leaves_everything_as_it_was(
    gate: RedisGate, client: Any, opened: OpenedRound
) -> None:
    round_ = await opened(make_round())
    await gate.admit(round_.ref, [Claim("ann", 1)])
    (day,) = await client.hkeys(keys.days(3))
    await client.hset(keys.days(3), day, "many")
    before = await dump(client)
    with pytest.raises(GateUnavailable):
        await gate.admit(round_.ref, [Claim("bob", 1)])
    assert await dump(client) == before


async def test_full_memory_refuses_whole_batches_and_changes_nothing(
    gate: RedisGate, client: Any, opened: OpenedRound
) -> None:
    """F7: grows until the server is full; every batch is either there completely or not at all."""
    round_ = await opened(make_round(total=1_000_000))
    big = with_backlog(gate, 1_000_000)
    used = (await client.info("memory"))["used_memory"]
    await client.config_set("maxmemory", used + 1_000_000)
    try:
        admitted = 0
        for batch in range(1000):
            before = await dump(client)
            try:
                reply = await big.admit(round_.ref, [Claim(f"u{batch}-{i}", 1) for i in range(200)])
            except GateUnavailable as error:
                assert "maxmemory" in str(error)  # noqa: PT017
                assert await dump(client) == before
                break
            admitted += sum(answer.outcome is Outcome.ADMITTED for answer in reply.answers)
        else:
            pytest.fail("memory never ran out, so nothing was shown")
    finally:
        await client.config_set("maxmemory", 0)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.admitted == admitted == view.total - view.available == view.buyers
    assert await client.xlen(keys.orders(3)) == admitted
    assert admitted > 0


async def test_the_backlog_cap_refuses_before_anything_is_deducted(
    gate: RedisGate, client: Any, opened: OpenedRound
) -> None:
    """F12."""
    round_ = await opened(make_round(total=10))
    tight = with_backlog(gate, 2)
    answers = await outcomes(tight, round_.ref, *(Claim(f"u{i}", 1) for i in range(4)))
    assert answers == [Outcome.ADMITTED] * 2 + [Outcome.OVERLOADED] * 2
    before = await dump(client)
    assert await outcomes(tight, round_.ref, Claim("late", 1)) == [Outcome.OVERLOADED]
    assert await dump(client) == before


async def test_the_days_counter_stops_at_its_24_bits(gate: RedisGate, client: Any, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    await gate.admit(round_.ref, [Claim("ann", 1)])
    (day,) = await client.hkeys(keys.days(3))
    await client.hset(keys.days(3), day, 2**24 - 2)
    assert await outcomes(gate, round_.ref, Claim("bob", 1), Claim("cid", 1)) == [
        Outcome.ADMITTED,
        Outcome.OVERLOADED,
    ]


async def test_days_are_kept_for_forty_days_and_named_by_the_utc_date(
    gate: RedisGate, client: Any, opened: OpenedRound
) -> None:
    """F23: a new day throws the old ones away."""
    await client.hset(keys.days(3), mapping={"20200101": 5, "20991231": 7})
    round_ = await opened(make_round())
    await gate.admit(round_.ref, [Claim("ann", 1)])
    seconds, _ = await client.time()
    days = await client.hgetall(keys.days(3))
    assert b"20200101" not in days
    assert days[b"20991231"] == b"7"
    today = datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d").encode()
    assert days[today] == b"1"


async def test_a_hundred_thousand_winners_have_as_many_numbers(client: Any, redis_url: str) -> None:
    """F74: in the answers and in the stream the same, and all different."""
    gate = RedisGate(redis_url, timeout_s=5, backlog_max=10**6)
    round_ = make_round(total=100_000)
    opening = await gate.open_round(round_)
    round_ = replace(round_, opened_ms=opening.opened_ms)
    await gate.update_round(round_)
    numbers = []
    for batch in range(200):
        reply = await gate.admit(round_.ref, [Claim(f"u{batch}-{i}", 1) for i in range(500)])
        numbers += [int(answer.holdings[0].number) for answer in reply.answers]
    assert len(set(numbers)) == 100_000
    assert numbers == sorted(numbers)
    assert max(numbers) < 2**63
    entries = await client.xrange(keys.orders(3))
    in_stream = [parse(3, entry_id, fields).admission for entry_id, fields in entries]
    assert [int(admission.number) for admission in in_stream if admission] == numbers
    await gate.close()


@pytest.mark.parametrize(("limit", "quantity", "repeats"), [(1, 1, 50), (3, 2, 50), (3, 1, 50)])
async def test_many_at_once_sell_exactly_the_stock(
    gate: RedisGate, opened: OpenedRound, limit: int, quantity: int, repeats: int
) -> None:
    """F47, F49: strangers and one buyer fifty times over, on many connections at once."""
    round_ = await opened(make_round(total=60, limit_per_buyer=limit))
    claims = [Claim(f"u{i}", quantity) for i in range(200)] + [Claim("ann", quantity)] * repeats
    replies = await asyncio.gather(*(gate.admit(round_.ref, [claim]) for claim in claims))
    admitted = [
        claim for claim, reply in zip(claims, replies, strict=True) if reply.answers[0].outcome is Outcome.ADMITTED
    ]
    assert sum(claim.quantity for claim in admitted) == 60
    assert sum(claim.quantity for claim in admitted if claim.user == "ann") <= limit


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
    gate: RedisGate, client: Any, opened: OpenedRound
) -> None:
    round_ = await opened(make_round())
    assert await outcomes(gate, round_.ref, Claim("ann", 1)) == [Outcome.ADMITTED]
    await client.script_flush()
    assert await outcomes(gate, round_.ref, Claim("bob", 1)) == [Outcome.ADMITTED]


async def test_scripts_touch_only_the_keys_they_are_given(gate: RedisGate, client: Any, opened: OpenedRound) -> None:
    """F6: a user who may touch one lane only can run them; a key built inside a script would be denied."""
    await client.acl_setuser("lane3", enabled=True, passwords=["+pw"], commands=["+@all"], keys=["seckill:{3}:*"])
    try:
        round_ = await opened(make_round())
        connection = await client.connection_pool.get_connection()
        try:
            await connection.send_command("AUTH", "lane3", "pw")
            await connection.read_response()
            await connection.send_command("GET", "anything else")
            with pytest.raises(ResponseError):
                await connection.read_response()
            source = gate._admit.source
            names = [keys.round_(round_.ref), keys.buyers(round_.ref), keys.orders(3), keys.days(3)]
            await connection.send_command("EVAL", source, 4, *names, 10, "ann", 1, "")
            assert (await connection.read_response())[3] == b"admitted"
        finally:
            await connection.disconnect()
            await client.connection_pool.release(connection)
    finally:
        await client.acl_deluser("lane3")
