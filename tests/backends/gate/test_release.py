"""Giving units back: once for each order, whatever is repeated, and never what was not taken."""

import random
from dataclasses import replace
from typing import Any

from msgspec import structs

from seckill.domain.admission import Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round
from seckill.ports.gate import Gate, Release, Released
from tests.backends.gate.conftest import OpenedRound, give_back, rebuild
from tests.fixtures.backends import Backend
from tests.making import make_round


async def buy(gate: Gate, round_: Round, user: str, quantity: int = 1, key: str = "") -> Holding:
    (answer,) = (await gate.admit(round_.ref, [Claim(user, quantity, key)])).answers
    assert answer.outcome is Outcome.ADMITTED
    return answer.holdings[0]


async def test_a_released_unit_is_on_sale_again(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=2, limit_per_buyer=2))
    held = await buy(gate, round_, "ann", 2)
    before = await gate.inspect(round_.ref)
    assert await give_back(gate, round_.ref, [Release(held.number, "ann", 1)]) == [Released.RELEASED]
    after = await gate.inspect(round_.ref)
    assert before is not None
    assert after is not None
    assert (after.available, after.admitted, after.released) == (2, 2, 2)
    assert after.version > before.version, "nodes that say 'sold out' must be able to tell"
    again = await gate.release(round_.ref, [Release(held.number, "ann", 1)])
    assert again.version == after.version, "the keeper that gave it back may have died before telling"
    assert (await gate.release(make_round(id=99).ref, [Release(held.number, "ann", 1)])).version == 0
    assert (await buy(gate, round_, "ann")).slot == 1, "the buyer may buy again"


async def test_a_hundred_calls_give_back_once(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    release = Release(held.number, "ann", 1)
    results = await give_back(gate, round_.ref, [release] * 50)
    results += [(await give_back(gate, round_.ref, [release]))[0] for _ in range(50)]
    assert results == [Released.RELEASED] + [Released.ALREADY] * 99
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.released) == (5, 1)


async def test_what_was_never_taken_is_not_given_back(gate: Gate, backend: Backend, opened: OpenedRound) -> None:
    """Unknown buyer, unknown order, another buyer's order, a round that is not there (F63)."""
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    before = await backend.contents()
    strange = structs.replace(held.number, counter=held.number.counter + 1)
    wrong = [Release(strange, "ann", 1), Release(held.number, "bob", 1), Release(strange, "nobody", 1)]
    assert await give_back(gate, round_.ref, wrong) == [Released.UNKNOWN] * 3
    nowhere = make_round(id=99)
    assert await give_back(gate, nowhere.ref, [Release(held.number, "ann", 1)]) == [Released.NOT_YET]
    assert await backend.contents() == before


async def test_a_release_of_a_newer_epoch_waits(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=5))
    held = await buy(gate, round_, "ann")
    decided = Release(held.number, "ann", 2)
    assert await give_back(gate, round_.ref, [decided]) == [Released.NOT_YET]
    await rebuild(gate, replace(round_, epoch=3), {"ann": [held]})
    assert await give_back(gate, round_.ref, [decided]) == [Released.RELEASED]
    assert await give_back(gate, round_.ref, [Release(held.number, "ann", 1)]) == [Released.ALREADY]


async def test_a_key_is_remembered_after_its_order_is_over(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1))
    held = await buy(gate, round_, "ann", key="k")
    release = Release(held.number, "ann", 1, "k")
    await give_back(gate, round_.ref, [release])
    over = structs.replace(held, live=False)
    for _ in range(2):  # also when the buyer has another order by then
        same, other, whose = (
            await gate.admit(round_.ref, [Claim("ann", 1, "k"), Claim("ann", 2, "k"), Claim("bob", 0, "k")])
        ).answers
        assert (same.outcome, same.holdings) == (Outcome.REPEATED, (over,))
        assert (other.outcome, other.holdings) == (Outcome.KEY_REUSED, (over,))
        assert whose.outcome is Outcome.INVALID
        assert await give_back(gate, round_.ref, [release]) == [Released.ALREADY]
        if not (await gate.holdings([round_.ref], "ann"))[0]:
            await buy(gate, round_, "ann", key="another")


async def test_random_histories_conserve_every_unit(gate: Gate, opened: OpenedRound) -> None:
    """The histories are compared with the obvious model (F50)."""
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
                results = await give_back(gate, round_.ref, [Release(h.number, u, 1) for u, h in batch])
                assert [r is Released.RELEASED for r in results] == [item in ending for item in batch]
            over += ending
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.available == 20 - sum(h.quantity for _, h in live.values())
    assert view.available == view.total - view.admitted + view.released


async def test_what_is_over_is_remembered_and_not_held(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=9, limit_per_buyer=3))
    live, keyed, plain = [await buy(gate, round_, "ann", key=key) for key in ("a", "b", "")]
    bobs = await buy(gate, round_, "bob", key="b")
    ended = [Release(held.number, "ann", 1, held.request_id) for held in (keyed, plain)]
    assert await give_back(gate, round_.ref, ended) == [Released.RELEASED] * 2
    assert await gate.holdings([round_.ref], "ann") == [(live,)]
    never = structs.replace(bobs, number=structs.replace(bobs.number, counter=999), request_id="never")
    found = await gate.remembered(round_.ref, {"ann": [live, keyed, plain], "bob": [never, bobs], "nobody": [never]})
    over = [structs.replace(held, live=False) for held in (keyed, plain)]
    assert found == {
        "ann": {held.number: held for held in (live, *over)},
        "bob": {bobs.number: bobs},
        "nobody": {},
    }
    assert await gate.remembered(round_.ref, {}) == {}


async def test_two_orders_that_had_one_key_are_both_remembered(gate: Gate, opened: OpenedRound) -> None:
    """A gate that went back in time may have given a key a second order, and the ledger then has both."""
    round_ = await opened(make_round(total=5))
    first, second = (Holding(OrderNumber(1000, 3, counter), 1, 1, "k", live=False) for counter in (1, 2))
    round_ = await rebuild(gate, replace(round_, epoch=2), {"ann": [first, second]})
    found = await gate.remembered(round_.ref, {"ann": [first, second]})
    assert found == {"ann": {first.number: first, second.number: second}}
    (repeat,) = (await gate.admit(round_.ref, [Claim("ann", 1, "k")])).answers
    assert (repeat.outcome, repeat.holdings) == (Outcome.REPEATED, (first,))
    releases = [Release(held.number, "ann", 1, "k") for held in (first, second)]
    assert await give_back(gate, round_.ref, releases) == [Released.ALREADY] * 2
