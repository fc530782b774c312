"""Opening a round once, and changing its rules."""

from dataclasses import replace

import pytest

from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundStatus
from seckill.errors import GateUnavailable, StartError
from seckill.ports.gate import Found, Gate, Opening, Release, Released, Update
from tests.backends.gate.conftest import OpenedRound, give_back
from tests.fixtures.backends import Backend
from tests.making import make_round


async def test_a_second_opening_changes_nothing(gate: Gate, backend: Backend, opened: OpenedRound) -> None:
    """A restart in the middle of a sale must not put sold units on sale again."""
    round_ = await opened(make_round(total=5))
    await gate.admit(round_.ref, [Claim("ann", 1)])
    before = await backend.contents()
    assert await gate.open_round(round_) == Opening(Found.ROUND, round_.opened_ms or 0)
    assert (await gate.open_round(replace(round_, total=99))).found is Found.ROUND
    assert (await gate.open_round(replace(round_, epoch=2))).found is Found.OTHER_EPOCH
    assert await backend.contents() == before


async def test_an_update_applies_once_and_never_backwards(gate: Gate, opened: OpenedRound) -> None:
    first = await opened(make_round(total=5))
    third = replace(first, revision=3, total=8, status=RoundStatus.PAUSED)
    second = replace(first, revision=2, total=7)
    assert await gate.update_round(third) is Update.APPLIED
    assert await gate.update_round(third) is Update.CURRENT
    assert await gate.update_round(second) is Update.CURRENT
    view = await gate.inspect(first.ref)
    assert view is not None
    assert (view.total, view.available, view.status, view.revision) == (8, 8, "paused", 3)


async def test_units_are_added_to_what_is_left(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1))
    assert (await gate.admit(round_.ref, [Claim("ann", 1), Claim("bob", 1)])).answers[1].outcome is Outcome.SOLD_OUT
    before = await gate.inspect(round_.ref)
    await gate.update_round(replace(round_, revision=2, total=2))
    after = await gate.inspect(round_.ref)
    assert before is not None
    assert after is not None
    assert (before.available, after.available) == (0, 1)
    assert after.version > before.version, "a node that saw 'sold out' must be able to tell that it is over"
    assert (await gate.admit(round_.ref, [Claim("bob", 1)])).answers[0].outcome is Outcome.ADMITTED


async def test_rounds_of_one_lane_share_nothing(gate: Gate, opened: OpenedRound) -> None:
    """Neither units nor who has bought (F67, F68)."""
    first, second = [await opened(make_round(id=number, total=1)) for number in (1, 2)]
    assert first.lane == second.lane
    for round_ in (first, second):
        answers = (await gate.admit(round_.ref, [Claim("ann", 1), Claim("ann", 1), Claim("bob", 1)])).answers
        assert [a.outcome for a in answers] == [Outcome.ADMITTED, Outcome.LIMIT_REACHED, Outcome.SOLD_OUT]


async def test_units_are_never_taken_away(gate: Gate, backend: Backend, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=5))
    before = await backend.contents()
    with pytest.raises(GateUnavailable):
        await gate.update_round(replace(round_, revision=2, total=4))
    assert await backend.contents() == before


async def test_an_update_of_what_is_not_there_creates_nothing(
    gate: Gate, backend: Backend, opened: OpenedRound
) -> None:
    before = await backend.contents()
    assert await gate.update_round(make_round(opened_ms=7)) is Update.MISSING
    assert await backend.contents() == before
    round_ = await opened(make_round())
    assert await gate.update_round(replace(round_, epoch=2, revision=9)) is Update.OTHER_EPOCH
    assert await gate.update_round(replace(round_, opened_ms=7, revision=9)) is Update.OTHER_OPENING


async def test_nothing_stays_of_a_round_that_is_forgotten(gate: Gate, opened: OpenedRound) -> None:
    round_, other = await opened(make_round(id=1)), await opened(make_round(id=2))
    held = (await gate.admit(round_.ref, [Claim("ann", 1)])).answers[0].holdings[0]
    await gate.admit(other.ref, [Claim("ann", 1)])
    await gate.forget(round_.ref)
    await gate.forget(round_.ref)
    assert await gate.inspect(round_.ref) is None
    assert [user async for portion in gate.buyers(round_.ref) for user in portion] == []
    assert await gate.holdings([round_.ref], "ann") == [None], "it cannot know"
    assert await give_back(gate, round_.ref, [Release(held.number, "ann", 1)]) == [Released.NOT_YET]
    view = await gate.inspect(other.ref)
    assert view is not None
    assert (view.admitted, view.backlog) == (1, 2), "the other round and the queue are as they were"


async def test_pulses_and_buyers(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(id=1, total=3000))
    created = make_round(id=2)
    await gate.open_round(created)
    for batch in range(5):
        await gate.admit(round_.ref, [Claim(f"u{batch}-{i}", 1) for i in range(500)])
    now_ms, (pulse, preparing, missing) = await gate.pulses([round_.ref, created.ref, make_round(id=9).ref])
    assert pulse is not None
    assert (pulse.available, preparing, missing) == (500, None, None)
    assert abs(now_ms - (await gate.pulses([]))[0]) < 5000
    users = [user async for portion in gate.buyers(round_.ref) for user in portion]
    assert len(set(users)) == 2500


async def test_a_gate_serves_one_ledger(gate: Gate, backend: Backend) -> None:
    """Round 1 of another database must not be taken for round 1 of this one."""
    await gate.bind("one")
    await gate.bind("one")
    with pytest.raises(StartError, match="holds the rounds of another database"):
        await gate.bind("another")
    await backend.lose_everything()
    await gate.bind("another")
