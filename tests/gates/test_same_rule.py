"""The rule in Lua and the rule in Python are one rule: random histories through both give the same answers."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seckill.domain import Answer, Claim, Holding, Round, RoundState, RoundStatus, admit
from seckill.gates import keys
from seckill.gates.redis import RedisGate, connect
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


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    total=st.integers(1, 12),
    limit=st.integers(1, 4),
    backlog_max=st.integers(0, 15) | st.just(1000),
    history=st.lists(steps, min_size=1, max_size=10),
    absent=st.sampled_from([False] * 9 + [True]),
)
def test_lua_and_python_agree(
    redis_url: str,
    total: int,
    limit: int,
    backlog_max: int,
    history: list[Batch | Change | Over],
    absent: bool,
) -> None:
    asyncio.run(_replay(redis_url, total, limit, backlog_max, history, absent))


async def _replay(
    url: str, total: int, limit: int, backlog_max: int, history: list[Batch | Change | Over], absent: bool
) -> None:
    client = connect(url)
    gate = RedisGate(url, timeout_s=5, backlog_max=backlog_max)
    await client.flushall()
    round_ = make_round(total=total, limit_per_buyer=limit)
    state: RoundState | None = None
    if not absent:
        opening = await gate.open_round(round_)
        round_ = replace(round_, opened_ms=opening.opened_ms)
        await gate.update_round(round_)
        state = _state(round_)
    try:
        for step in history:
            if isinstance(step, Batch):
                state = await _compare(gate, round_, step.claims, state, backlog_max)
            elif state is not None:
                if isinstance(step, Change):
                    round_, state = await _change(gate, round_, state, step)
                else:
                    state = await _end_an_order(client, round_, state, step.pick)
        await _compare_state(gate, client, round_, state)
    finally:
        await gate.close()
        await client.aclose()


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
    gate: RedisGate, round_: Round, batch: list[Claim], state: RoundState | None, backlog_max: int
) -> RoundState | None:
    reply = await gate.admit(round_.ref, batch)
    expected: list[Answer] = []
    for claim in batch:
        state, answer = admit(state, claim, reply.now_ms, backlog_max)
        expected.append(answer)
    assert list(reply.answers) == expected
    return state


async def _change(gate: RedisGate, round_: Round, state: RoundState, step: Change) -> tuple[Round, RoundState]:
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


async def _end_an_order(client: Any, round_: Round, state: RoundState, pick: int) -> RoundState:
    """By hand in both: what matters here is how admission sees orders that are over."""
    live = [(user, h) for user, held in sorted(state.buyers.items()) for h in held if h.live]
    if not live:
        return state
    user, ended = live[pick % len(live)]
    held = tuple(replace(h, live=False) if h == ended else h for h in state.buyers[user])
    await client.hset(keys.buyers(round_.ref), user, " ".join(map(_written, held)))
    await client.hincrby(keys.round_(round_.ref), "available", ended.quantity)
    await client.hincrby(keys.round_(round_.ref), "released", ended.quantity)
    return replace(
        state,
        available=state.available + ended.quantity,
        released=state.released + ended.quantity,
        buyers={**state.buyers, user: held},
    )


def _written(h: Holding) -> str:
    return f"{h.number.seconds}:{h.number.counter}:{h.quantity}:{h.slot}:{h.request_id}:{int(h.live)}"


async def _compare_state(gate: RedisGate, client: Any, round_: Round, state: RoundState | None) -> None:
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
