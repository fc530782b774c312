"""A round whose units belong to those in its line: buyers who press get none, and nothing else has changed."""

from dataclasses import replace

from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.ports.gate import Gate, GateStatus, Release
from tests.backends.gate.conftest import OpenedRound, give_back, outcomes
from tests.making import HOUR_MS, make_round

JOIN, ADMITTED = Outcome.JOIN_THE_LINE, Outcome.ADMITTED


async def test_only_those_in_the_line_get_a_unit(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=2, limit_per_buyer=2, lined=True))
    claims = [Claim("ann", 1), Claim("bob", 1, "k1"), Claim("cid", 1, "late-1"), Claim("dan", 1, "line-1")]
    assert await outcomes(gate, round_.ref, claims) == [JOIN, JOIN, JOIN, ADMITTED]
    again = [Claim("dan", 1, "line-1"), Claim("dan", 2, "line-2"), Claim("eve", 1, "line-3"), Claim("fay", 1, "line-4")]
    wanted = [Outcome.REPEATED, Outcome.LIMIT_REACHED, ADMITTED, Outcome.SOLD_OUT]
    assert await outcomes(gate, round_.ref, again) == wanted
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.status, view.available) == (GateStatus.LINE, 0)


async def test_a_round_is_given_to_its_line_and_those_who_had_orders_find_them(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=2))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "k1")]) == [ADMITTED]
    lined = replace(round_, revision=round_.revision + 1, lined=True)
    await gate.update_round(lined)
    claims = [Claim("ann", 1, "k1"), Claim("ann", 1), Claim("bob", 1), Claim("cid", 1, "line-7")]
    wanted = [Outcome.REPEATED, Outcome.LIMIT_REACHED, JOIN, ADMITTED]
    assert await outcomes(gate, round_.ref, claims) == wanted
    paused = replace(lined, revision=lined.revision + 1, status=lined.status.PAUSED)
    await gate.update_round(paused)
    assert await outcomes(gate, round_.ref, [Claim("dan", 1, "line-8")]) == [Outcome.PAUSED]


async def test_when_it_is_over_it_says_so(gate: Gate, opened: OpenedRound) -> None:
    now_ms, _ = await gate.pulses([])
    over = await opened(make_round(begins_ms=now_ms - 2 * HOUR_MS, ends_ms=now_ms - HOUR_MS, lined=True))
    assert await outcomes(gate, over.ref, [Claim("ann", 1), Claim("bob", 1, "line-1")]) == [Outcome.ENDED] * 2


async def test_who_has_waited_in_line_need_not_cool_down(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1, cool_down_s=600))
    (answer,) = (await gate.admit(round_.ref, [Claim("ann", 1, "k1")])).answers
    release = Release(answer.holdings[0].number, "ann", round_.epoch, "k1", lapsed=True)
    await give_back(gate, round_.ref, [release])
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "k2")]) == [Outcome.COOLING_DOWN]
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "line-1")]) == [ADMITTED]
