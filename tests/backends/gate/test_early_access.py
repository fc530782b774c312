"""Some may buy before others: how much earlier comes with the claim, and the gate's own clock decides."""

from seckill.domain.admission import Claim
from seckill.domain.outcome import Outcome
from seckill.ports.gate import Gate
from tests.backends.gate.conftest import OpenedRound, outcomes
from tests.making import HOUR_MS, make_round

NOT_STARTED, ADMITTED = Outcome.NOT_STARTED, Outcome.ADMITTED


async def test_each_claim_of_a_batch_has_its_own_beginning(gate: Gate, opened: OpenedRound) -> None:
    now_ms, _ = await gate.pulses([])
    round_ = await opened(make_round(begins_ms=now_ms + HOUR_MS, ends_ms=now_ms + 2 * HOUR_MS, total=10))
    early = (0, 2 * HOUR_MS, HOUR_MS // 2, 2 * HOUR_MS, 0)
    claims = [Claim(f"user-{number}", 1, early_ms=early_ms) for number, early_ms in enumerate(early)]
    wanted = [NOT_STARTED, ADMITTED, NOT_STARTED, ADMITTED, NOT_STARTED]
    assert await outcomes(gate, round_.ref, claims) == wanted
    plain = [Claim("user-9", 1), Claim("user-8", 1)]
    assert await outcomes(gate, round_.ref, plain) == [NOT_STARTED] * 2, "a batch without any"


async def test_it_opens_no_earlier_than_that_and_ends_with_the_others(gate: Gate, opened: OpenedRound) -> None:
    now_ms, _ = await gate.pulses([])
    over = await opened(make_round(id=2, begins_ms=now_ms - 2 * HOUR_MS, ends_ms=now_ms - HOUR_MS, total=10))
    assert await outcomes(gate, over.ref, [Claim("ann", 1, early_ms=9 * HOUR_MS)]) == [Outcome.ENDED]
    on = await opened(make_round(id=3, total=10))
    assert await outcomes(gate, on.ref, [Claim("ann", 1, early_ms=HOUR_MS)]) == [ADMITTED], "and later as anybody"
