"""Every gate decides by the one rule: random histories through it and through the pure rule give the same answers."""

import asyncio
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from seckill.domain.admission import Answer, Claim, Holding, RoundState, admit
from seckill.domain.sale import Round, RoundStatus
from seckill.ports.gate import Gate, Release, Released
from tests.backends.gate.conftest import give_back, open_round
from tests.fixtures.backends import Backend, new_backend
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
    cool_down_s: int


@dataclass(frozen=True)
class Over:
    """One of the orders so far ends and its units come back."""

    pick: int
    lapsed: bool


claims = st.builds(
    Claim,
    user=st.sampled_from(["ann", "bob", "cid", "dan", 'o"hara\\', "用户"]),
    quantity=st.integers(0, 4) | st.sampled_from([-1, 1000, 1001]),
    request_id=st.sampled_from(["", "", "k1", "k2", "k3", "late-1"]),
)
changes = st.builds(
    Change,
    status=st.sampled_from(RoundStatus),
    limit=st.integers(1, 6),
    add_units=st.integers(0, 3),
    window=st.sampled_from([(-1, 1), (-1, 1), (-1, 1), (1, 2), (-2, -1)]),
    cool_down_s=st.sampled_from([0, 0, 600, 3600]),
)
steps = st.one_of(
    st.builds(Batch, st.lists(claims, min_size=1, max_size=12)),
    changes,
    st.builds(Over, st.integers(0, 1000), st.booleans()),
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
                state = await _end_an_order(gate, round_, state, step)
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
    for answer, wanted in zip(reply.answers, expected, strict=True):
        check_again(answer, wanted)
    assert [structs.replace(answer, again_ms=0) for answer in reply.answers] == [
        structs.replace(wanted, again_ms=0) for wanted in expected
    ]
    return state


def check_again(answer: Answer, wanted: Answer) -> None:
    """When an order came back is not known to the millisecond. But the waits that there are differ by ten minutes."""
    assert abs(answer.again_ms - wanted.again_ms) < HOUR_MS / 12


async def _change(gate: Gate, round_: Round, state: RoundState, step: Change) -> tuple[Round, RoundState]:
    now_ms, _ = await gate.pulses([])
    round_ = replace(
        round_,
        revision=round_.revision + 1,
        status=step.status,
        limit_per_buyer=step.limit,
        cool_down_s=step.cool_down_s,
        total=round_.total + step.add_units,
        begins_ms=now_ms + step.window[0] * HOUR_MS,
        ends_ms=now_ms + step.window[1] * HOUR_MS,
    )
    await gate.update_round(round_)
    return round_, replace(
        state,
        status=round_.status,
        limit_per_buyer=round_.limit_per_buyer,
        cool_down_s=round_.cool_down_s,
        total=round_.total,
        available=state.available + step.add_units,
        begins_ms=round_.begins_ms,
        ends_ms=round_.ends_ms,
    )


async def _end_an_order(gate: Gate, round_: Round, state: RoundState, step: Over) -> RoundState:
    live = [(user, h) for user, record in sorted(state.buyers.items()) for h in record.live]
    if not live:
        return state
    user, ended = live[step.pick % len(live)]
    release = Release(ended.number, user, round_.epoch, ended.request_id, step.lapsed)
    assert await give_back(gate, round_.ref, [release]) == [Released.RELEASED]
    now_ms, _ = await gate.pulses([])
    return end(state, user, ended, now_ms, lapsed=step.lapsed)


def end(state: RoundState, user: str, ended: Holding, now_ms: int, *, lapsed: bool) -> RoundState:
    place = user, ended.request_id or str(int(ended.number))
    over = (*state.past.get(place, ()), structs.replace(ended, live=False))
    return replace(
        state,
        available=state.available + ended.quantity,
        released=state.released + ended.quantity,
        buyers={**state.buyers, user: state.buyers[user].without(ended, now_ms, lapsed=lapsed)},
        past={**state.past, place: over},
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
    over: dict[str, list[Holding]] = {user: [] for user in state.buyers}
    for (user, _), orders in state.past.items():
        over[user] += orders
    remembered = await gate.remembered(round_.ref, over)
    for user, record in state.buyers.items():
        assert (await gate.holdings([round_.ref], user)) == [record.live]
        assert remembered[user] == {h.number: h for h in (*record.live, *over[user])}
        slots = [h.slot for h in record.live]
        assert len(slots) == len(set(slots))
        live += sum(h.quantity for h in record.live)
    assert live == view.admitted - view.released
    assert view.buyers == len(state.buyers)
