"""A buyer who lets orders lapse waits before buying again, twice as long with each, and all others go first."""

from dataclasses import replace

import pytest

from seckill.backends.redis import keys
from seckill.domain.admission import Answer, Claim, Holding
from seckill.domain.cool_down import COOL_DOWN_S_MAX, cools_until_ms
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round
from seckill.ports.gate import Gate, Release, Released
from tests.backends.gate.conftest import OpenedRound, give_back, open_round, outcomes, rebuild
from tests.backends.gate.test_release import buy
from tests.fixtures.backends import Backend, RedisBackend
from tests.making import make_round

# No test waits for its end, however slow the machine is.
LONG_S = 600


async def lapse(gate: Gate, round_: Round, user: str, held: Holding, *, lapsed: bool = True) -> None:
    release = Release(held.number, user, round_.epoch, held.request_id, lapsed)
    assert await give_back(gate, round_.ref, [release]) == [Released.RELEASED]


async def ask(gate: Gate, round_: Round, claim: Claim) -> tuple[int, Answer]:
    reply = await gate.admit(round_.ref, [claim])
    return reply.now_ms, reply.answers[0]


async def test_who_lets_an_order_lapse_waits_and_nobody_else(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1, cool_down_s=LONG_S))
    held = await buy(gate, round_, "ann", key="first")
    before_ms, _ = await gate.pulses([])
    await lapse(gate, round_, "ann", held)
    now_ms, refused = await ask(gate, round_, Claim("ann", 1, "second"))
    assert (refused.outcome, refused.holdings) == (Outcome.COOLING_DOWN, ())
    assert before_ms + LONG_S * 1000 <= refused.again_ms <= now_ms + LONG_S * 1000
    assert (await ask(gate, round_, Claim("ann", 1)))[1] == refused, "the wait does not begin again"
    (repeat,) = (await gate.admit(round_.ref, [Claim("ann", 1, "first")])).answers
    assert repeat.outcome is Outcome.REPEATED, "her order is still her order"
    assert await outcomes(gate, round_.ref, [Claim("ann", 2, "first")]) == [Outcome.KEY_REUSED]
    assert await outcomes(gate, round_.ref, [Claim("ann", 2)]) == [Outcome.COOLING_DOWN], "before the limit"
    assert await outcomes(gate, round_.ref, [Claim("bob", 1)]) == [Outcome.ADMITTED]
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.COOLING_DOWN], "before the stock"


async def test_control_without_a_cool_down_the_same_buyer_takes_it_again(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1, cool_down_s=0))
    for _ in range(3):
        await lapse(gate, round_, "ann", await buy(gate, round_, "ann"))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]


async def test_a_failure_of_ours_makes_nobody_wait(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1, cool_down_s=LONG_S))
    await lapse(gate, round_, "ann", await buy(gate, round_, "ann"), lapsed=False)
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]


async def test_a_repeated_release_counts_once(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1, cool_down_s=LONG_S))
    held = await buy(gate, round_, "ann", key="k")
    release = Release(held.number, "ann", 1, "k", lapsed=True)
    assert await give_back(gate, round_.ref, [release] * 3) == [Released.RELEASED, Released.ALREADY, Released.ALREADY]
    assert await give_back(gate, round_.ref, [release]) == [Released.ALREADY]
    now_ms, refused = await ask(gate, round_, Claim("ann", 1))
    assert refused.again_ms <= now_ms + LONG_S * 1000


async def test_money_that_came_late_does_not_wait(gate: Gate, opened: OpenedRound) -> None:
    """A buyer who has paid is no hoarder."""
    round_ = await opened(make_round(total=1, cool_down_s=LONG_S))
    await lapse(gate, round_, "ann", await buy(gate, round_, "ann"))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "late")]) == [Outcome.COOLING_DOWN]
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "late-1f")]) == [Outcome.ADMITTED]


async def test_the_rule_can_change_while_a_buyer_waits(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=1, cool_down_s=LONG_S))
    await lapse(gate, round_, "ann", await buy(gate, round_, "ann"))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.COOLING_DOWN]
    await gate.update_round(replace(round_, revision=2, cool_down_s=0))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]


async def test_a_wait_ends_by_the_gates_clock(redis_backend: RedisBackend) -> None:
    """The note is moved back in time instead of waiting for the clock."""
    gate, client = redis_backend.gate(), redis_backend.client
    round_ = await open_round(gate, make_round(total=1, cool_down_s=LONG_S))
    await lapse(gate, round_, "ann", await buy(gate, round_, "ann"))
    now_ms, refused = await ask(gate, round_, Claim("ann", 1))
    earlier_ms = now_ms - LONG_S * 1000

    async def claim_after(lapsed_ms: int) -> list[Outcome]:
        await client.hset(keys.buyers(round_.ref), "ann", f"~1:1:{lapsed_ms}")
        return await outcomes(gate, round_.ref, [Claim("ann", 1)])

    assert refused.outcome is Outcome.COOLING_DOWN
    assert await claim_after(earlier_ms + 60_000) == [Outcome.COOLING_DOWN]
    assert await claim_after(earlier_ms - 1) == [Outcome.ADMITTED]


@pytest.mark.parametrize(
    ("cool_down_s", "lapses", "waits_s"),
    [(5, 1, 5), (5, 2, 10), (5, 3, 20), (5, 10, 2560), (5, 11, 3600), (5, 5000, 3600), (3600, 1, 3600), (1, 12, 2048)],
)
async def test_each_lapse_doubles_the_wait_up_to_an_hour(
    redis_backend: RedisBackend, cool_down_s: int, lapses: int, waits_s: int
) -> None:
    """The script doubles it as the pure rule does."""
    assert cools_until_ms(cool_down_s, lapses, lapsed_ms=1) == 1 + waits_s * 1000
    assert waits_s <= COOL_DOWN_S_MAX
    gate, client = redis_backend.gate(), redis_backend.client
    round_ = await open_round(gate, make_round(cool_down_s=cool_down_s))
    now_ms, _ = await gate.pulses([])
    later_ms = now_ms + 3_600_000  # so that it does not end while we look
    await client.hset(keys.buyers(round_.ref), "ann", f"~{lapses}:{lapses}:{later_ms}")
    _, refused = await ask(gate, round_, Claim("ann", 1))
    assert (refused.outcome, refused.again_ms) == (Outcome.COOLING_DOWN, later_ms + waits_s * 1000)


async def test_a_rebuilt_gate_makes_the_same_buyers_wait(gate: Gate, backend: Backend, opened: OpenedRound) -> None:
    """The ledger says of each order whether and when it lapsed."""
    round_ = await opened(make_round(total=9, cool_down_s=LONG_S))
    now_ms, _ = await gate.pulses([])

    def over(counter: int, lapsed_ms: int) -> Holding:
        return Holding(OrderNumber(1000, 3, counter), 1, 1, f"k{counter}", live=False, lapsed_ms=lapsed_ms)

    held = {
        "once": [over(1, now_ms - 1000)],
        "thrice": [over(2, now_ms - 1000), over(3, now_ms - 3000), over(4, now_ms - 2000)],
        "long ago": [over(5, now_ms - LONG_S * 1000 - 1)],
        "failed": [over(6, 0)],
        "by a clock that is ahead": [over(7, now_ms + 86_400_000)],
    }
    await backend.lose_everything()
    round_ = await rebuild(gate, replace(round_, epoch=2), held)
    reply = await gate.admit(round_.ref, [Claim(user, 1) for user in held])
    found = dict(zip(held, reply.answers, strict=True))
    assert {user: answer.again_ms for user, answer in found.items() if answer.outcome is not Outcome.ADMITTED} == {
        "once": now_ms - 1000 + LONG_S * 1000,
        "thrice": now_ms - 1000 + 4 * LONG_S * 1000,
        "by a clock that is ahead": found["by a clock that is ahead"].again_ms,
    }
    assert {answer.outcome for answer in found.values()} == {Outcome.COOLING_DOWN, Outcome.ADMITTED}
    assert found["by a clock that is ahead"].again_ms <= reply.now_ms + LONG_S * 1000, "by the gate's clock"
