"""One limit for several users who are one person, and for several rounds."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.gate import RedisGate
from seckill.domain.admission import Claim, Holding
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundStatus
from seckill.ports.gate import Gate, Release
from tests.backends.gate.conftest import OpenedRound, give_back, held_by, outcomes, rebuild
from tests.making import HOUR_MS, make_round

ADMITTED, LIMIT, NOT_READY = Outcome.ADMITTED, Outcome.LIMIT_REACHED, Outcome.NOT_READY


async def pair(opened: OpenedRound, **facts: Any) -> tuple[Round, Round]:
    """Two rounds of one group, as the ledger tells of them: the later knows of the earlier."""
    first = await opened(make_round(id=11, total=100, limit_per_buyer=2, **facts))
    second = await opened(make_round(id=12, total=100, limit_per_buyer=2, siblings=(11,), **facts))
    return first, second


async def test_users_of_one_person_share_the_limit(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=100, limit_per_buyer=2))
    family = [Claim(user, 1, person="house 7") for user in ("ann", "bob", "carl")]
    assert await outcomes(gate, round_.ref, family) == [ADMITTED, ADMITTED, LIMIT], "within one batch"
    assert await outcomes(gate, round_.ref, [Claim("dora", 1, person="house 7")]) == [LIMIT], "and later"
    assert await outcomes(gate, round_.ref, [Claim("dora", 2, person="house 8")]) == [ADMITTED]
    ann = (await held_by(gate, round_.ref, "ann"))[0]
    await give_back(gate, round_.ref, [Release(ann.number, "ann", 1)])
    assert await outcomes(gate, round_.ref, [Claim("carl", 1, person="house 7")]) == [ADMITTED], "what came back counts"


async def test_nobody_is_told_of_orders_that_are_not_theirs(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=100, limit_per_buyer=1))
    await gate.admit(round_.ref, [Claim("ann", 1, person="house 7")])
    (answer,) = (await gate.admit(round_.ref, [Claim("bob", 1, person="house 7")])).answers
    assert (answer.outcome, answer.holdings) == (LIMIT, ())
    assert [portion async for portion in gate.buyers(round_.ref)] == [["ann"]], "a person is no buyer"


async def test_a_repeat_is_found_whoever_else_has_bought(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=100, limit_per_buyer=1))
    claim = Claim("ann", 1, "key", person="house 7")
    assert await outcomes(gate, round_.ref, [claim, claim, Claim("bob", 1, "key", person="house 7")]) == [
        ADMITTED,
        Outcome.REPEATED,
        LIMIT,
    ]


async def test_rounds_share_the_limit_both_ways(gate: Gate, opened: OpenedRound) -> None:
    first, second = await pair(opened)
    assert await outcomes(gate, second.ref, [Claim("ann", 1)]) == [ADMITTED]
    assert await outcomes(gate, first.ref, [Claim("ann", 2)]) == [LIMIT], "the earlier was told of the later"
    assert await outcomes(gate, first.ref, [Claim("ann", 1), Claim("bob", 2)]) == [ADMITTED, ADMITTED]
    assert await outcomes(gate, second.ref, [Claim("ann", 1), Claim("bob", 1), Claim("carl", 2)]) == [
        LIMIT,
        LIMIT,
        ADMITTED,
    ]


async def test_persons_and_rounds_together(gate: Gate, opened: OpenedRound) -> None:
    first, second = await pair(opened)
    assert await outcomes(gate, first.ref, [Claim("ann", 1, person="h")]) == [ADMITTED]
    assert await outcomes(gate, second.ref, [Claim("bob", 1, person="h"), Claim("carl", 1, person="h")]) == [
        ADMITTED,
        LIMIT,
    ]
    assert await outcomes(gate, first.ref, [Claim("dora", 1, person="h")]) == [LIMIT]


async def test_items_count_all_the_same(gate: Gate, opened: OpenedRound) -> None:
    from seckill.domain.item import ItemUnits  # noqa: PLC0415

    first = await opened(make_round(id=11, total=10, limit_per_buyer=2, items=(ItemUnits(1, 4), ItemUnits(2, 6))))
    second = await opened(make_round(id=12, total=10, limit_per_buyer=2, siblings=(11,)))
    assert await outcomes(gate, first.ref, [Claim("ann", 1, item=1), Claim("ann", 1, item=2)]) == [ADMITTED] * 2
    assert await outcomes(gate, second.ref, [Claim("ann", 1)]) == [LIMIT]


@pytest.mark.parametrize("what", ["forgotten", "fenced"])
async def test_while_a_sibling_is_lost_nothing_is_decided(gate: Gate, opened: OpenedRound, what: str) -> None:
    """The gate cannot know who has bought in the sibling."""
    first, second = await pair(opened)
    await gate.admit(first.ref, [Claim("ann", 2)])
    held = {"ann": await held_by(gate, first.ref, "ann")}
    await (gate.forget(first.ref) if what == "forgotten" else gate.fence(first))
    assert await outcomes(gate, second.ref, [Claim("ann", 1), Claim("bob", 1)]) == [NOT_READY] * 2
    await rebuild(gate, replace(first, epoch=2, siblings=(12,)), held)
    assert await outcomes(gate, second.ref, [Claim("ann", 1), Claim("bob", 1)]) == [LIMIT, ADMITTED]


async def test_a_round_that_is_over_asks_nobody(gate: Gate, opened: OpenedRound) -> None:
    first, second = await pair(opened)
    await gate.forget(first.ref)
    closed = replace(second, status=RoundStatus.CLOSED, revision=second.revision + 1)
    await gate.update_round(closed)
    assert await outcomes(gate, second.ref, [Claim("ann", 1)]) == [Outcome.ENDED]


async def test_a_rebuilt_round_knows_persons_and_siblings(gate: Gate, opened: OpenedRound) -> None:
    first, second = await pair(opened)
    await gate.admit(first.ref, [Claim("ann", 1, person="h"), Claim("zoe", 1)])
    await gate.admit(second.ref, [Claim("bob", 1, person="h")])
    held: dict[str, tuple[Holding, ...]] = {}
    async for portion in gate.orders(first.ref):
        held |= {user: tuple(orders) for user, orders in portion.items()}
    assert {user: [order.person for order in orders] for user, orders in held.items()} == {"ann": ["h"], "zoe": [""]}
    await gate.fence(first)
    await rebuild(gate, replace(first, epoch=2, siblings=(12,)), held)
    assert await outcomes(gate, first.ref, [Claim("carl", 1, person="h")]) == [LIMIT]
    assert await outcomes(gate, first.ref, [Claim("zoe", 2)]) == [LIMIT]
    assert await outcomes(gate, first.ref, [Claim("yan", 2, person="other")]) == [ADMITTED]


async def race(gate: Gate, rounds: list[Round], buyers: int) -> list[int]:
    """Lets all buyers press in all rounds at once. Returns how many units each has got."""
    got = [0] * buyers

    async def press(round_: Round, buyer: int) -> None:
        (answer,) = (await gate.admit(round_.ref, [Claim(f"buyer-{buyer}", 1)])).answers
        got[buyer] += answer.outcome is ADMITTED

    await asyncio.gather(*[press(round_, buyer) for buyer in range(buyers) for round_ in rounds for _ in range(2)])
    return got


async def test_nobody_gets_more_by_pressing_everywhere_at_once(gate: Gate, opened: OpenedRound) -> None:
    first, second = await pair(opened)
    third = await opened(make_round(id=13, total=100, limit_per_buyer=2, siblings=(11, 12)))
    assert await race(gate, [first, second, third], 20) == [2] * 20
    alone = [await opened(make_round(id=number, total=100, limit_per_buyer=2)) for number in (21, 22, 23)]
    assert max(await race(gate, alone, 20)) > 2, "the control: without a shared limit they do"


async def test_lanes_share_it_as_well(gate: Gate, opened: OpenedRound) -> None:
    first, second = await pair(opened, lanes=2)
    for user in ("ann", "bob", "carl", "dora", "emil"):
        assert await outcomes(gate, first.ref, [Claim(user, 1)]) == [ADMITTED]
        assert await outcomes(gate, second.ref, [Claim(user, 1)]) == [ADMITTED]
        assert await outcomes(gate, second.ref, [Claim(user, 1)]) == [LIMIT]
        assert await outcomes(gate, first.ref, [Claim(user, 1)]) == [LIMIT]


async def test_a_lost_part_of_it_stops_the_rounds(redis_gate: RedisGate, client: Any) -> None:
    """The users of a person are counted as records are: with one missing, nothing is decided."""

    async def opened(round_: Round) -> Round:
        opening = await redis_gate.open_round(round_)
        round_ = replace(round_, opened_ms=opening.opened_ms)
        await redis_gate.update_round(round_)
        return round_

    first, second = await pair(opened)
    await redis_gate.admit(first.ref, [Claim("ann", 1, person="h"), Claim("bob", 1, person="i")])
    await client.hdel(keys.buyers(first.ref), "\nh")
    assert await outcomes(redis_gate, first.ref, [Claim("carl", 1, person="h")]) == [NOT_READY]
    assert await outcomes(redis_gate, second.ref, [Claim("carl", 1, person="h")]) == [NOT_READY]
    _, pulses = await redis_gate.pulses([first.ref, second.ref])
    assert (pulses[0], pulses[1] is None) == (None, False), "the keeper notices the one that is lost"


async def test_before_it_begins_too(gate: Gate, opened: OpenedRound) -> None:
    """The order of refusals is the same as ever: the limit comes first."""
    now_ms, _ = await gate.pulses([])
    first = await opened(make_round(id=11, total=100, limit_per_buyer=1))
    later = {"begins_ms": now_ms + HOUR_MS, "ends_ms": now_ms + 2 * HOUR_MS}
    second = await opened(make_round(id=12, total=100, limit_per_buyer=1, siblings=(11,), **later))
    await gate.admit(first.ref, [Claim("ann", 1)])
    assert await outcomes(gate, second.ref, [Claim("ann", 1), Claim("bob", 1)]) == [LIMIT, Outcome.NOT_STARTED]
