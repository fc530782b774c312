"""The promises of a gate for when the way to it fails."""

import asyncio
from dataclasses import replace

import pytest

from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.errors import GateUnavailable, GateUnclear
from seckill.lab.servers.proxy import Trouble
from seckill.ports.gate import Found, Gate, Release, Released, Update
from tests.backends.gate.conftest import OpenedRound, give_back, held_by, open_round, outcomes
from tests.fixtures.backends import Backend, MortalBackend
from tests.making import make_round


async def test_a_claim_whose_answer_is_lost_is_repeated_and_counts_once(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    """The same key finds the order that the lost answer told of (F9)."""
    round_ = await opened(make_round(total=5))
    async with backend.node() as node:
        await node.gate.admit(round_.ref, [Claim("first", 1)])  # now it is connected, with the script loaded
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(GateUnclear):
            await node.gate.admit(round_.ref, [Claim("ann", 1, "k")])
        (held,) = await held_by(gate, round_.ref, "ann")  # so the fault has hit its window
        (again,) = (await node.gate.admit(round_.ref, [Claim("ann", 1, "k")])).answers
    assert (again.outcome, again.holdings) == (Outcome.REPEATED, (held,))
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.admitted, view.backlog) == (2, 2)


async def test_a_release_whose_answer_is_lost_is_repeated_and_counts_once(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    round_ = await opened(make_round(total=5))
    answers = (await gate.admit(round_.ref, [Claim("ann", 1), Claim("bob", 1)])).answers
    ann, bob = [Release(a.holdings[0].number, user, 1) for a, user in zip(answers, ("ann", "bob"), strict=True)]
    async with backend.node() as node:
        await give_back(node.gate, round_.ref, [bob])
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(GateUnclear):
            await give_back(node.gate, round_.ref, [ann])
        view = await gate.inspect(round_.ref)
        assert view is not None
        assert view.released == 2, "the fault has hit its window"
        before = await backend.contents()
        assert await give_back(node.gate, round_.ref, [ann]) == [Released.ALREADY]
    assert await backend.contents() == before


async def test_an_opening_whose_answer_is_lost_is_found_again(backend: Backend, gate: Gate) -> None:
    round_ = make_round(total=5)
    async with backend.node() as node:
        await open_round(node.gate, make_round(id=2))
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(GateUnclear):
            await node.gate.open_round(round_)
        assert await gate.inspect(round_.ref) is not None, "the fault has hit its window"
        opening = await node.gate.open_round(round_)
        assert opening.found is Found.ROUND
        round_ = replace(round_, opened_ms=opening.opened_ms)
        with node.in_trouble(Trouble.REPLY_LOST), pytest.raises(GateUnclear):
            await node.gate.update_round(round_)
        assert await node.gate.update_round(round_) is Update.CURRENT
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]


async def test_who_cannot_reach_the_gate_knows_that_nothing_was_changed(
    backend: Backend, gate: Gate, opened: OpenedRound
) -> None:
    round_ = await opened(make_round(total=5))
    async with backend.node() as node:
        before = await backend.contents()
        with node.in_trouble(Trouble.REFUSED):
            for call in (
                lambda: node.gate.admit(round_.ref, [Claim("ann", 1)]),
                lambda: node.gate.open_round(make_round(id=2)),
                node.gate.ping,
            ):
                with pytest.raises(GateUnavailable):
                    await call()
        assert await backend.contents() == before
        assert await outcomes(node.gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED], "it connects again"


async def test_the_answer_to_a_call_that_was_given_up_reaches_nobody_else(gate: Gate, opened: OpenedRound) -> None:
    """Buyers hang up at any moment. The next one who asks gets the answer to their own claim."""
    round_ = await opened(make_round(total=10_000))
    given_up = 0
    for i in range(80):
        call = asyncio.ensure_future(gate.admit(round_.ref, [Claim(f"gone{i}", 1, "k")]))
        for _ in range(i % 8):
            await asyncio.sleep(0)
        given_up += call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        (answer,) = (await gate.admit(round_.ref, [Claim(f"stays{i}", 1, "k")])).answers
        (held,) = await held_by(gate, round_.ref, f"stays{i}")
        assert (answer.outcome, answer.holdings) == (Outcome.ADMITTED, (held,))
    assert given_up > 0
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.admitted == view.buyers == view.backlog


async def test_what_was_answered_is_there_after_the_server_was_killed(mortal: MortalBackend) -> None:
    """Admissions, keys, releases and the queue."""
    gate = mortal.gate()
    round_ = await open_round(gate, make_round(total=50))
    answers = (await gate.admit(round_.ref, [Claim(f"u{i}", 1, "k") for i in range(20)])).answers
    number = answers[0].holdings[0].number
    assert await give_back(gate, round_.ref, [Release(number, "u0", 1, "k")]) == [Released.RELEASED]
    before = await mortal.contents()
    await mortal.kill_and_start()
    assert await mortal.contents() == before
    gate = mortal.gate()
    (again, over) = (await gate.admit(round_.ref, [Claim("u1", 1, "k"), Claim("u0", 1, "k")])).answers
    assert (again.outcome, again.holdings) == (Outcome.REPEATED, answers[1].holdings)
    assert (over.outcome, over.holdings[0].live) == (Outcome.REPEATED, False)
    assert await give_back(gate, round_.ref, [Release(number, "u0", 1, "k")]) == [Released.ALREADY]
    transport = mortal.transport()
    await transport.prepare([round_.lane])
    assert len(await transport.read(100, 0)) == 20
