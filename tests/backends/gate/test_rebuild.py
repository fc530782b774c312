"""Fencing a round and building it anew, step by step, with others in between."""

import asyncio
from dataclasses import replace

from seckill.domain.admission import Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.ports.gate import Found, Gate, Release, Released, Update
from tests.backends.gate.conftest import OpenedRound, give_back, outcomes, rebuild
from tests.fixtures.backends import Backend
from tests.making import make_round
from tests.patience import PATIENCE_S


def holding(counter: int, *, live: bool = True, key: str = "") -> Holding:
    return Holding(OrderNumber(1000, 3, counter), 1, 1, key, live)


async def test_a_fenced_round_admits_nobody_and_no_update_opens_it(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    held = (await gate.admit(round_.ref, [Claim("ann", 1)])).answers[0].holdings[0]
    await gate.fence(replace(round_, epoch=0))
    assert await outcomes(gate, round_.ref, [Claim("bob", 1)]) == [Outcome.ADMITTED], "an earlier epoch's fence"
    await gate.fence(round_)
    assert await outcomes(gate, round_.ref, [Claim("cid", 1)]) == [Outcome.NOT_READY]
    assert await gate.update_round(replace(round_, revision=9)) is Update.OTHER_OPENING
    assert (await gate.open_round(round_)).found is Found.ROUND
    assert await give_back(gate, round_.ref, [Release(held.number, "ann", 1)]) == [Released.NOT_YET]
    assert (await gate.pulses([round_.ref]))[1] == [None]
    await gate.fence(make_round(id=99))
    assert await gate.inspect(make_round(id=99).ref) is None, "a fence creates nothing"


async def test_a_later_epochs_fence_closes_a_round_that_went_back_in_time(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    await gate.fence(replace(round_, epoch=2))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.NOT_READY]
    assert await gate.update_round(replace(round_, revision=9)) is Update.OTHER_OPENING
    await rebuild(gate, replace(round_, epoch=3), {"bob": [holding(1)]})
    await gate.fence(replace(round_, epoch=2))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED], "it comes too late"


async def test_a_rebuilt_round_has_the_ledgers_orders_and_nothing_else(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=5))
    await gate.admit(round_.ref, [Claim("lost", 1, "k")])
    before = await gate.inspect(round_.ref)
    await gate.fence(round_)
    held = {"ann": [holding(1, key="a")], "bob": [holding(2, live=False, key="b")]}
    await rebuild(gate, replace(round_, epoch=2), held)
    after = await gate.inspect(round_.ref)
    assert before is not None
    assert after is not None
    assert (after.total, after.available, after.admitted, after.released, after.buyers) == (5, 4, 2, 1, 2)
    assert (after.epoch, after.status) == (2, "open")
    assert after.version > before.version, "no node may take it for a version that it has seen"
    claims = [Claim("ann", 1, "a"), Claim("ann", 1), Claim("bob", 1, "b"), Claim("bob", 1), Claim("lost", 1, "k")]
    answers = (await gate.admit(round_.ref, claims)).answers
    assert [answer.outcome for answer in answers] == [
        Outcome.REPEATED,
        Outcome.LIMIT_REACHED,
        Outcome.REPEATED,
        Outcome.ADMITTED,
        Outcome.ADMITTED,
    ]
    assert answers[0].holdings == tuple(held["ann"])
    number = held["ann"][0].number
    assert await give_back(gate, round_.ref, [Release(number, "ann", 1)]) == [Released.RELEASED], "of an older epoch"


async def test_every_beginning_makes_the_earlier_ones_void(gate: Gate) -> None:
    """Two keepers at once cannot mix what they have read."""
    round_ = make_round(total=5, epoch=2)
    assert await gate.begin_rebuild(round_, "slow")
    assert await gate.fill(round_.ref, "slow", {"ann": [holding(1)]})
    assert await gate.begin_rebuild(round_, "quick")
    assert not await gate.fill(round_.ref, "slow", {"bob": [holding(2)]})
    assert await gate.finish_rebuild(round_.ref, "slow", 2, 0) is None
    assert await gate.fill(round_.ref, "quick", {"cid": [holding(3)]})
    opened_ms = await gate.finish_rebuild(round_.ref, "quick", 1, 0)
    assert opened_ms is not None
    assert await gate.finish_rebuild(round_.ref, "quick", 0, 0) is None, "finished is finished"
    assert await outcomes(gate, round_.ref, [Claim("dan", 1)]) == [Outcome.NOT_READY], "the ledger has not noted it yet"
    assert await gate.update_round(replace(round_, opened_ms=opened_ms)) is Update.APPLIED
    assert [user async for portion in gate.buyers(round_.ref) for user in portion] == ["cid"]
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.admitted) == (4, 1)


async def test_a_round_that_sells_is_not_rebuilt_under_its_own_epoch(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    round_ = await opened(make_round(epoch=3))
    before = await backend.contents()
    assert not await gate.begin_rebuild(round_, "token")
    assert not await gate.begin_rebuild(replace(round_, epoch=2), "token")
    assert not await gate.fill(round_.ref, "token", {"ann": [holding(1)]})
    assert await gate.finish_rebuild(round_.ref, "token", 0, 0) is None
    assert await backend.contents() == before
    assert await gate.begin_rebuild(replace(round_, epoch=4), "token")
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.NOT_READY]


async def test_numbers_of_the_second_of_the_loss_are_never_given_out_again(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    """The counter of the day is lost with everything else. So no second may see admissions before and after it."""
    round_ = await opened(make_round(total=100))
    before = {a.holdings[0].number for a in (await gate.admit(round_.ref, [Claim("ann", 1), Claim("bob", 1)])).answers}
    await backend.lose_everything()
    sold = {f"old{i}": [Holding(number, 1, 1, "", True)] for i, number in enumerate(before)}
    async with asyncio.timeout(PATIENCE_S):
        await rebuild(gate, replace(round_, epoch=2), sold)
    after = {a.holdings[0].number for a in (await gate.admit(round_.ref, [Claim("cid", 1), Claim("dan", 1)])).answers}
    assert {number.counter for number in after} == {number.counter for number in before}, "the window was hit"
    assert before.isdisjoint(after)


async def test_what_the_gate_has_lost_is_missing_and_not_sold_again(backend: Backend, gate: Gate) -> None:
    round_ = make_round(total=1)
    opening = await gate.open_round(round_)
    round_ = replace(round_, opened_ms=opening.opened_ms)
    await gate.update_round(round_)
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]
    await backend.lose_everything()
    assert await outcomes(gate, round_.ref, [Claim("bob", 1)]) == [Outcome.NOT_READY]
    assert await gate.update_round(replace(round_, revision=2)) is Update.MISSING
    # A slow keeper creates it once more, with its full stock: the ledger's opening is another one.
    while (again := await gate.open_round(round_)).opened_ms == opening.opened_ms:
        await backend.lose_everything()
    assert await gate.update_round(replace(round_, revision=2)) is Update.OTHER_OPENING
    assert again.found is Found.NOTHING
    assert await outcomes(gate, round_.ref, [Claim("bob", 1)]) == [Outcome.NOT_READY]
