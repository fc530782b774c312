"""Giving units back: once for each order, whatever is repeated, and never what was not taken."""

import random
from dataclasses import replace
from typing import Any

import pytest

from seckill.domain import Claim, Holding, Round
from seckill.errors import GateUnavailable
from seckill.gates import keys
from seckill.gates.redis import RedisGate
from seckill.outcomes import Outcome
from seckill.ports import Release, Released
from tests.gates.conftest import OpenedRound
from tests.gates.test_admit import dump
from tests.making import make_round


async def buy(gate: RedisGate, round_: Round, user: str, quantity: int = 1, key: str = "") -> Holding:
    (answer,) = (await gate.admit(round_.ref, [Claim(user, quantity, key)])).answers
    assert answer.outcome is Outcome.ADMITTED
    return answer.holdings[0]


async def test_a_released_unit_is_on_sale_again(gate: RedisGate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=2, limit_per_buyer=2))
    held = await buy(gate, round_, "ann", 2)
    before = await gate.inspect(round_.ref)
    assert (await gate.release(round_.ref, [Release(held.number, "ann", 1)])).results == [Released.RELEASED]
    after = await gate.inspect(round_.ref)
    assert before is not None
    assert after is not None
    assert (after.available, after.admitted, after.released) == (2, 2, 2)
    assert after.version > before.version, "nodes that say 'sold out' must be able to tell"
    assert (await buy(gate, round_, "ann")).slot == 1, "the buyer may buy again"


async def test_a_hundred_calls_give_back_once(gate: RedisGate, opened: OpenedRound) -> None:
    """F62."""
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    release = Release(held.number, "ann", 1)
    results = [*(await gate.release(round_.ref, [release] * 50)).results]
    results += [(await gate.release(round_.ref, [release])).results[0] for _ in range(50)]
    assert results == [Released.RELEASED] + [Released.ALREADY] * 99
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.released) == (5, 1)


async def test_what_was_never_taken_is_not_given_back(gate: RedisGate, client: Any, opened: OpenedRound) -> None:
    """F63: unknown buyer, unknown order, somebody else's order, a round that is not there."""
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    before = await dump(client)
    strange = replace(held.number, counter=held.number.counter + 1)
    wrong = [Release(strange, "ann", 1), Release(held.number, "bob", 1), Release(strange, "nobody", 1)]
    assert (await gate.release(round_.ref, wrong)).results == [Released.UNKNOWN] * 3
    nowhere = make_round(id=99)
    assert (await gate.release(nowhere.ref, [Release(held.number, "ann", 1)])).results == [Released.NOT_YET]
    assert await dump(client) == before


async def test_a_release_of_a_newer_epoch_waits(gate: RedisGate, client: Any, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    assert (await gate.release(round_.ref, [Release(held.number, "ann", 2)])).results == [Released.NOT_YET]
    await client.hset(keys.round_(round_.ref), "epoch", 3)
    assert (await gate.release(round_.ref, [Release(held.number, "ann", 2)])).results == [Released.RELEASED]


async def test_a_key_is_remembered_after_its_order_is_over(gate: RedisGate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1))
    held = await buy(gate, round_, "ann", key="k")
    await gate.release(round_.ref, [Release(held.number, "ann", 1)])
    (repeat,) = (await gate.admit(round_.ref, [Claim("ann", 1, "k")])).answers
    assert (repeat.outcome, repeat.holdings) == (Outcome.REPEATED, (replace(held, live=False),))
    await buy(gate, round_, "ann", key="another")


async def test_random_histories_conserve_every_unit(gate: RedisGate, opened: OpenedRound) -> None:
    """F50: against the obvious model."""
    chance = random.Random(3)
    round_ = await opened(make_round(total=20, limit_per_buyer=3))
    live: dict[Any, tuple[str, Holding]] = {}
    over: list[tuple[str, Holding]] = []
    for _ in range(600):
        if chance.random() < 0.6:
            user, quantity = f"u{chance.randrange(12)}", chance.randrange(1, 3)
            (answer,) = (await gate.admit(round_.ref, [Claim(user, quantity)])).answers
            mine = sum(h.quantity for u, h in live.values() if u == user)
            free = 20 - sum(h.quantity for _, h in live.values())
            expected = (
                Outcome.LIMIT_REACHED
                if mine + quantity > 3
                else Outcome.SOLD_OUT
                if free < quantity
                else Outcome.ADMITTED
            )
            assert answer.outcome is expected
            if expected is Outcome.ADMITTED:
                live[answer.holdings[0].number] = (user, answer.holdings[0])
        else:
            again = chance.sample(over, min(2, len(over)))
            ending = [live.pop(n) for n in chance.sample(sorted(live), min(2, len(live)))]
            batch = again + ending
            chance.shuffle(batch)
            if batch:
                results = [*(await gate.release(round_.ref, [Release(h.number, u, 1) for u, h in batch])).results]
                assert [r is Released.RELEASED for r in results] == [item in ending for item in batch]
            over += ending
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.available == 20 - sum(h.quantity for _, h in live.values())
    assert view.available == view.total - view.admitted + view.released


@pytest.mark.parametrize("key", ["buyers", "round"])
async def test_a_key_of_the_wrong_type_leaves_everything_as_it_was(
    gate: RedisGate, client: Any, opened: OpenedRound, key: str
) -> None:
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    name = keys.buyers(round_.ref) if key == "buyers" else keys.round_(round_.ref)
    await client.delete(name)
    await client.set(name, "x")
    before = await dump(client)
    with pytest.raises(GateUnavailable):
        await gate.release(round_.ref, [Release(held.number, "ann", 1)])
    assert await dump(client) == before
