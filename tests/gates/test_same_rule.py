"""Every gate decides by the one rule: random histories through it and through the pure rule give the same answers."""

import asyncio
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from seckill.domain import Answer, Claim, Round, RoundState, RoundStatus, admit
from seckill.ports import Gate, Release, Released
from tests.fixtures.backends import Backend, new_backend
from tests.gates.conftest import give_back, open_round
from tests.making import HOUR_MS, make_round


@dataclass(frozen=True)
class Batch:
    claims: list[Claim]


@dataclass(frozen=True)
class Change:
    """An operator changes the rules."""

    status: RoundStatus
    limit: int
    add_units: int
    window: tuple[int, int]  # in hours from now


@dataclass(frozen=True)
class Over:
    """One of the orders so far ends and its units come back."""

    pick: int


claims = st.builds(
    Claim,
    user=st.sampled_from(["ann", "bob", "cid", "dan", 'o"hara\\', "用户"]),
    quantity=st.integers(0, 4) | st.sampled_from([-1, 1000, 1001]),
    request_id=st.sampled_from(["", "", "k1", "k2", "k3"]),
)
changes = st.builds(
    Change,
    status=st.sampled_from(RoundStatus),
    limit=st.integers(1, 6),
    add_units=st.integers(0, 3),
    window=st.sampled_from([(-1, 1), (-1, 1), (-1, 1), (1, 2), (-2, -1)]),
)
steps = st.one_of(
    st.builds(Batch, st.lists(claims, min_size=1, max_size=12)),
    changes,
    st.builds(Over, st.integers(0, 1000)),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    total=st.integers(1, 12),
    limit=st.integers(1, 4),
    backlog_max=st.integers(0, 15) | st.just(1000),
    history=st.lists(steps, min_size=1, max_size=10),
    absent=st.sampled_from([False] * 9 + [True]),
)
def test_every_gate_decides_by_the_one_rule(
    backend_url: str | None,
    total: int,
    limit: int,
    backlog_max: int,
    history: list[Batch | Change | Over],
    absent: bool,
) -> None:
    if backend_url is not None and "+cluster:" in backend_url:
        pytest.skip("a node of a cluster runs the same scripts as a server alone")

    async def replay() -> None:
        backend = new_backend(backend_url)
        try:
            await backend.lose_everything()
            await _replay(backend, total, limit, backlog_max, history, absent)
        finally:
            await backend.close()

    asyncio.run(replay())


async def _replay(
    backend: Backend, total: int, limit: int, backlog_max: int, history: list[Batch | Change | Over], absent: bool
) -> None:
    gate = backend.gate(backlog_max=backlog_max)
    round_ = make_round(total=total, limit_per_buyer=limit)
    state: RoundState | None = None
    if not absent:
        round_ = await open_round(gate, round_)
        state = _state(round_)
    for step in history:
        if isinstance(step, Batch):
            state = await _compare(gate, round_, step.claims, state, backlog_max)
        elif state is not None:
            if isinstance(step, Change):
                round_, state = await _change(gate, round_, state, step)
            else:
                state = await _end_an_order(gate, round_, state, step.pick)
    await _compare_state(gate, round_, state)


def _state(round_: Round) -> RoundState:
    return RoundState(
        lane=round_.lane,
        total=round_.total,
        available=round_.total,
        admitted=0,
        released=0,
        limit_per_buyer=round_.limit_per_buyer,
        begins_ms=round_.begins_ms,
        ends_ms=round_.ends_ms,
        status=round_.status,
    )


async def _compare(
    gate: Gate, round_: Round, batch: list[Claim], state: RoundState | None, backlog_max: int
) -> RoundState | None:
    reply = await gate.admit(round_.ref, batch)
    expected: list[Answer] = []
    for claim in batch:
        state, answer = admit(state, claim, reply.now_ms, backlog_max)
        expected.append(answer)
    assert list(reply.answers) == expected
    return state


async def _change(gate: Gate, round_: Round, state: RoundState, step: Change) -> tuple[Round, RoundState]:
    now_ms, _ = await gate.pulses([])
    round_ = replace(
        round_,
        revision=round_.revision + 1,
        status=step.status,
        limit_per_buyer=step.limit,
        total=round_.total + step.add_units,
        begins_ms=now_ms + step.window[0] * HOUR_MS,
        ends_ms=now_ms + step.window[1] * HOUR_MS,
    )
    await gate.update_round(round_)
    return round_, replace(
        state,
        status=round_.status,
        limit_per_buyer=round_.limit_per_buyer,
        total=round_.total,
        available=state.available + step.add_units,
        begins_ms=round_.begins_ms,
        ends_ms=round_.ends_ms,
    )


async def _end_an_order(gate: Gate, round_: Round, state: RoundState, pick: int) -> RoundState:
    live = [(user, h) for user, held in sorted(state.buyers.items()) for h in held if h.live]
    if not live:
        return state
    user, ended = live[pick % len(live)]
    release = Release(ended.number, user, round_.epoch)
    assert await give_back(gate, round_.ref, [release]) == [Released.RELEASED]
    held = tuple(structs.replace(h, live=False) if h == ended else h for h in state.buyers[user])
    return replace(
        state,
        available=state.available + ended.quantity,
        released=state.released + ended.quantity,
        buyers={**state.buyers, user: held},
    )


async def _compare_state(gate: Gate, round_: Round, state: RoundState | None) -> None:
    view = await gate.inspect(round_.ref)
    if state is None:
        assert view is None
        return
    assert view is not None
    assert (view.available, view.admitted, view.released) == (state.available, state.admitted, state.released)
    assert view.available == view.total - view.admitted + view.released
    assert 0 <= view.available <= view.total
    assert view.backlog == state.backlog
    live = 0
    for user, held in state.buyers.items():
        assert (await gate.holdings([round_.ref], user)) == [held]
        slots = [h.slot for h in held if h.live]
        assert len(slots) == len(set(slots))
        live += sum(h.quantity for h in held if h.live)
    assert live == view.admitted - view.released
    assert view.buyers == len(state.buyers)
