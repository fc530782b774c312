"""A round over several lanes decides as one of one lane would, whatever happens to it."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seckill.domain.admission import Answer, Claim, RoundState, admit
from seckill.domain.sale import Round, RoundStatus
from seckill.engine.rounds.shared_gate import SharedGate
from seckill.ports.gate import GateStatus, Release, Released
from seckill.ports.share_gate import ShareGate
from tests.backends.gate.conftest import held_by, open_round
from tests.backends.gate.test_same_rule import (
    Batch,
    Change,
    Over,
    _change,
    _state,
    check_again,
    check_items,
    end,
    meant,
    of_items,
    round_of,
    steps,
)
from tests.backends.gate.test_shares import check_units
from tests.fixtures.backends import new_backend


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    total=st.integers(1, 12),
    items=of_items,
    limit=st.integers(1, 4),
    history=st.lists(steps, min_size=1, max_size=10),
)
def test_a_round_of_several_lanes_decides_as_one_of_one_lane(
    backend_url: str | None, total: int, items: list[int], limit: int, history: list[Batch | Change | Over]
) -> None:
    """One claim after the other: the same outcome, units and slot as by the pure rule for the whole round."""

    async def replay() -> None:
        backend = new_backend(backend_url)
        try:
            await backend.lose_everything()
            await _replay(backend.gate(), round_of(total, items, limit_per_buyer=limit, lanes=3), history)
        finally:
            await backend.close()

    asyncio.run(replay())


async def _replay(shares: ShareGate, round_: Round, history: list[Batch | Change | Over]) -> None:
    gate = SharedGate(shares)
    round_ = await open_round(gate, round_)
    state = _state(round_)
    for step in history:
        if isinstance(step, Batch):
            for claim in meant(round_, step.claims):
                state = await _claim(gate, round_, claim, state)
        elif isinstance(step, Change):
            round_, state = await _change(gate, round_, state, step)
        else:
            state = await _end_an_order(gate, round_, state, step)
        await check_units(shares, round_)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.total, view.available, view.admitted) == (state.total, state.available, state.admitted)
    assert (view.released, view.buyers, view.backlog) == (state.released, len(state.buyers), state.backlog)
    to_line = state.lined and state.status is RoundStatus.OPEN
    assert view.status == (GateStatus.LINE if to_line else state.status)
    check_items(view, state)


async def _claim(gate: SharedGate, round_: Round, claim: Claim, state: RoundState) -> RoundState:
    reply = await gate.admit(round_.ref, [claim])
    after, expected = admit(state, claim, reply.now_ms, 1_000_000)
    assert after is not None
    assert _told(reply.answers[0]) == _told(expected)
    check_again(reply.answers[0], expected)
    return after


def _told(answer: Answer) -> Any:
    """Leaves out the numbers, because every lane counts its own."""
    return answer.outcome, [
        (held.quantity, held.slot, held.request_id, held.live, held.item) for held in answer.holdings
    ]


async def _end_an_order(gate: SharedGate, round_: Round, state: RoundState, step: Over) -> RoundState:
    live = [(user, place) for user, record in sorted(state.buyers.items()) for place, _ in enumerate(record.live)]
    if not live:
        return state
    user, place = live[step.pick % len(live)]
    real = await held_by(gate, round_.ref, user)
    release = Release(real[place].number, user, round_.epoch, real[place].request_id, step.lapsed)
    assert list((await gate.release(round_.ref, [release])).results) == [Released.RELEASED]
    now_ms, _ = await gate.pulses([])
    return end(state, user, state.buyers[user].live[place], now_ms, lapsed=step.lapsed)
