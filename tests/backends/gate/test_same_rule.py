"""Every gate decides by the one rule: random histories through it and through the pure rule give the same answers."""

import asyncio
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from seckill.domain.admission import Answer, Claim, Holding, RoundState, admit
from seckill.domain.item import ItemUnits
from seckill.domain.sale import Round, RoundStatus
from seckill.ports.gate import Gate, GateView, Release, Released
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
    more_of: int  # which item they are added to, if there are any
    window: tuple[int, int]  # in hours from now
    cool_down_s: int
    lined: bool  # units go to those in the line


@dataclass(frozen=True)
class Over:
    """One of the orders so far ends and its units come back."""

    pick: int
    lapsed: bool


# Also one that is the end of another: fields of the gate's hash end in them.
ITEMS = (7, 17, 8)
# Units of each item; empty for a round without items.
of_items: st.SearchStrategy[list[int]] = st.just([]) | st.lists(st.integers(1, 5), min_size=1, max_size=len(ITEMS))

claims = st.builds(
    Claim,
    user=st.sampled_from(["ann", "bob", "cid", "dan", 'o"hara\\', "用户"]),
    quantity=st.integers(0, 4) | st.sampled_from([-1, 1000, 1001]),
    request_id=st.sampled_from(["", "", "k1", "k2", "k3", "late-1", "line-1"]),
    metadata=st.sampled_from(["", "", "", "{}"]),
    trace=st.sampled_from(["", "", "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]),
    early_ms=st.sampled_from([0, 0, 0, 1, HOUR_MS // 2, 2 * HOUR_MS]),
    item=st.sampled_from([*ITEMS, *ITEMS, ITEMS[0], 0, 99]),
)
changes = st.builds(
    Change,
    status=st.sampled_from(RoundStatus),
    limit=st.integers(1, 6),
    add_units=st.integers(0, 3),
    more_of=st.integers(0, 2),
    window=st.sampled_from([(-1, 1), (-1, 1), (-1, 1), (1, 2), (-2, -1)]),
    cool_down_s=st.sampled_from([0, 0, 600, 3600]),
    lined=st.sampled_from([False, False, True]),
)
steps = st.one_of(
    st.builds(Batch, st.lists(claims, min_size=1, max_size=12)),
    changes,
    st.builds(Over, st.integers(0, 1000), st.booleans()),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    total=st.integers(1, 12),
    items=of_items,
    limit=st.integers(1, 4),
    backlog_max=st.integers(0, 15) | st.just(1000),
    history=st.lists(steps, min_size=1, max_size=10),
    absent=st.sampled_from([False] * 9 + [True]),
)
def test_every_gate_decides_by_the_one_rule(
    backend_url: str | None,
    total: int,
    items: list[int],
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
            round_ = round_of(total, items, limit_per_buyer=limit)
            await _replay(backend, round_, backlog_max, history, absent)
        finally:
            await backend.close()

    asyncio.run(replay())


def round_of(total: int, items: list[int], **rules: int) -> Round:
    """`items`: the units of each item; without them, the round has `total` units."""
    units = tuple(ItemUnits(item, units) for item, units in zip(ITEMS, items, strict=False))
    return make_round(total=sum(items) or total, items=units, **rules)


def meant(round_: Round, claims: list[Claim]) -> list[Claim]:
    """Most claims of a round without items name no item."""
    if round_.items:
        return claims
    return [claim if claim.item == 99 else structs.replace(claim, item=0) for claim in claims]


async def _replay(
    backend: Backend, round_: Round, backlog_max: int, history: list[Batch | Change | Over], absent: bool
) -> None:
    gate = backend.gate(backlog_max=backlog_max)
    state: RoundState | None = None
    if not absent:
        round_ = await open_round(gate, round_)
        state = _state(round_)
    for step in history:
        if isinstance(step, Batch):
            state = await _compare(gate, round_, meant(round_, step.claims), state, backlog_max)
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
        items=dict(round_.items),
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
    items = list(round_.items)
    if items:
        place = step.more_of % len(items)
        items[place] = items[place]._replace(total=items[place].total + step.add_units)
    round_ = replace(
        round_,
        items=tuple(items),
        revision=round_.revision + 1,
        status=step.status,
        limit_per_buyer=step.limit,
        cool_down_s=step.cool_down_s,
        lined=step.lined,
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
        lined=round_.lined,
        total=round_.total,
        available=state.available + step.add_units,
        items={
            item: left + step.add_units * (place == step.more_of % len(items))
            for place, (item, left) in enumerate(state.items.items())
        },
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
        items={item: left + ended.quantity * (item == ended.item) for item, left in state.items.items()},
        buyers={**state.buyers, user: state.buyers[user].without(ended, now_ms, lapsed=lapsed)},
        past={**state.past, place: over},
    )


def check_items(view: GateView, state: RoundState) -> None:
    assert {item: stock.available for item, stock in view.items.items()} == state.items
    for stock in view.items.values():
        assert stock.available == stock.total - stock.admitted + stock.released
        assert 0 <= stock.available <= stock.total
    for count in ("total", "available", "admitted", "released") if view.items else ():
        assert sum(getattr(stock, count) for stock in view.items.values()) == getattr(view, count)


async def _compare_state(gate: Gate, round_: Round, state: RoundState | None) -> None:
    view = await gate.inspect(round_.ref)
    if state is None:
        assert view is None
        return
    assert view is not None
    assert (view.available, view.admitted, view.released) == (state.available, state.admitted, state.released)
    check_items(view, state)
    _, (pulse,) = await gate.pulses([round_.ref])
    assert pulse is not None
    assert (pulse.available, pulse.items) == (state.available, state.items)
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
