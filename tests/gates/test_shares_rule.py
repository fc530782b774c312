"""A round over several lanes decides as one of one lane would, whatever happens to it."""

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from seckill.domain import Answer, Claim, Holding, Round, RoundState, RoundStatus, admit
from seckill.ports import Release, Released
from seckill.share_ports import ShareGate
from seckill.sharing import SharedGate
from tests.fixtures.backends import new_backend
from tests.gates.conftest import open_round
from tests.gates.test_same_rule import Batch, Change, Over, _change, _state, steps
from tests.gates.test_shares import check_units
from tests.making import make_round


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(total=st.integers(1, 12), limit=st.integers(1, 4), history=st.lists(steps, min_size=1, max_size=10))
def test_a_round_of_several_lanes_decides_as_one_of_one_lane(
    backend_url: str | None, total: int, limit: int, history: list[Batch | Change | Over]
) -> None:
    """One claim after the other: the same outcome, units and slot as by the pure rule for the whole round."""

    async def replay() -> None:
        backend = new_backend(backend_url)
        try:
            await backend.lose_everything()
            await _replay(backend.gate(), total, limit, history)
        finally:
            await backend.close()

    asyncio.run(replay())


async def _replay(shares: ShareGate, total: int, limit: int, history: list[Batch | Change | Over]) -> None:
    gate = SharedGate(shares)
    round_ = await open_round(gate, make_round(total=total, limit_per_buyer=limit, lanes=3))
    state = _state(round_)
    for step in history:
        if isinstance(step, Batch):
            for claim in step.claims:
                state = await _claim(gate, round_, claim, state)
        elif isinstance(step, Change):
            round_, state = await _change(gate, round_, state, step)
        else:
            state = await _end_an_order(gate, round_, state, step.pick)
        await check_units(shares, round_)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.total, view.available, view.admitted) == (state.total, state.available, state.admitted)
    assert (view.released, view.buyers, view.backlog) == (state.released, len(state.buyers), state.backlog)
    assert RoundStatus(view.status) is state.status


async def _claim(gate: SharedGate, round_: Round, claim: Claim, state: RoundState) -> RoundState:
    reply = await gate.admit(round_.ref, [claim])
    after, expected = admit(state, claim, reply.now_ms, 1_000_000)
    assert after is not None
    assert _told(reply.answers[0]) == _told(expected)
    return after


def _told(answer: Answer) -> Any:
    """Without the numbers: every lane counts its own."""
    return answer.outcome, [(held.quantity, held.slot, held.request_id, held.live) for held in answer.holdings]


async def _end_an_order(gate: SharedGate, round_: Round, state: RoundState, pick: int) -> RoundState:
    live = [(user, place) for user, held in sorted(state.buyers.items()) for place, h in enumerate(held) if h.live]
    if not live:
        return state
    user, place = live[pick % len(live)]
    (real,) = await gate.holdings([round_.ref], user)
    reply = await gate.release(round_.ref, [Release(real[place].number, user, round_.epoch)])
    assert list(reply.results) == [Released.RELEASED]
    ended: Holding = state.buyers[user][place]
    held = tuple(structs.replace(h, live=False) if h is ended else h for h in state.buyers[user])
    return replace(
        state,
        available=state.available + ended.quantity,
        released=state.released + ended.quantity,
        buyers={**state.buyers, user: held},
    )
