"""The promises of admission, on every backend."""

import asyncio
from dataclasses import replace

import pytest

from seckill.domain.admission import Claim, Holding
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import Outcome
from seckill.domain.sale import RoundStatus
from seckill.ports.gate import Gate, Release, Released
from tests.backends.gate.conftest import OpenedRound, open_round, outcomes, rebuild
from tests.fixtures.backends import Backend
from tests.making import HOUR_MS, make_round
from tests.patience import PATIENCE_S


async def test_a_round_that_is_not_there_is_not_ready_and_nothing_is_written(gate: Gate, backend: Backend) -> None:
    """A missing round is never "sold out" (F2, F3)."""
    before = await backend.contents()
    reply = await gate.admit(make_round().ref, [Claim("ann", 1)])
    assert [answer.outcome for answer in reply.answers] == [Outcome.NOT_READY]
    assert reply.available is None
    assert await backend.contents() == before


async def test_a_round_that_was_only_created_admits_nobody(gate: Gate) -> None:
    round_ = make_round()
    await gate.open_round(round_)
    assert await outcomes(gate, round_.ref, [Claim("ann", 1)]) == [Outcome.NOT_READY]


async def test_winners_get_numbers_and_an_entry_each(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=3))
    reply = await gate.admit(round_.ref, [Claim("ann", 1, "k1"), Claim("bob", 1), Claim("eve", 2)])
    assert [answer.outcome for answer in reply.answers] == [
        Outcome.ADMITTED,
        Outcome.ADMITTED,
        Outcome.LIMIT_REACHED,
    ]
    assert [answer.holdings[0].number.counter for answer in reply.answers[:2]] == [1, 2]
    assert {answer.holdings[0].number.lane for answer in reply.answers[:2]} == {3}
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert (view.available, view.admitted, view.released, view.buyers, view.backlog) == (1, 2, 0, 2, 2)


@pytest.mark.parametrize("user", ["张三", "+8613812345678", "Ann Lee", "{x}", 'a"b\\c:1', "~0:0:0", "1:1:1:1::1"])
async def test_any_text_is_one_buyer(gate: Gate, backend: Backend, opened: OpenedRound, user: str) -> None:
    """Whatever the gate writes its records with."""
    round_ = await opened(make_round(total=3))
    won = (await gate.admit(round_.ref, [Claim(user, 1, "k1")])).answers[0]
    assert await outcomes(gate, round_.ref, [Claim(user, 1)]) == [Outcome.LIMIT_REACHED]
    transport = backend.transport()
    await transport.prepare([round_.lane])
    [delivery] = await transport.read(10, PATIENCE_S)
    assert delivery.admission is not None
    assert delivery.admission.user == user
    assert [users async for users in gate.buyers(round_.ref)] == [[user]]
    order = won.holdings[0]
    for expected in (Released.RELEASED, Released.ALREADY):
        released = await gate.release(round_.ref, [Release(order.number, user, round_.epoch, "k1")])
        assert released.results == [expected]
    found = [orders async for orders in gate.orders(round_.ref)]
    assert any(user in orders for orders in found)
    assert await outcomes(gate, round_.ref, [Claim(user, 1, "k1"), Claim(user, 1)]) == [
        Outcome.REPEATED,
        Outcome.ADMITTED,
    ]


@pytest.mark.parametrize("total", [1, 2, 5])
async def test_the_last_unit_is_sold_and_not_one_more(gate: Gate, opened: OpenedRound, total: int) -> None:
    round_ = await opened(make_round(total=total))
    answers = await outcomes(gate, round_.ref, [Claim(f"u{i}", 1) for i in range(20)])
    assert answers == [Outcome.ADMITTED] * total + [Outcome.SOLD_OUT] * (20 - total)
    view = await gate.inspect(round_.ref)
    assert view is not None
    assert view.available == 0


async def test_a_repeat_gets_its_order_also_when_sold_out(gate: Gate, opened: OpenedRound) -> None:
    """Asked before stock, window and status are (F8, F9)."""
    round_ = await opened(make_round(total=1))
    first = (await gate.admit(round_.ref, [Claim("ann", 1, "k1")])).answers[0]
    for change in (
        {},
        {"status": RoundStatus.PAUSED},
        {"status": RoundStatus.CLOSED},
        {"ends_ms": round_.begins_ms + 1},
    ):
        round_ = replace(round_, revision=round_.revision + 1, **change)
        await gate.update_round(round_)
        again = (await gate.admit(round_.ref, [Claim("ann", 1, "k1")])).answers[0]
        assert (again.outcome, again.holdings) == (Outcome.REPEATED, first.holdings)
        without_key = (await gate.admit(round_.ref, [Claim("ann", 1)])).answers[0]
        assert (without_key.outcome, without_key.holdings) == (Outcome.LIMIT_REACHED, first.holdings)


async def test_a_repeat_within_one_batch_gets_the_same_order(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    first, second, other = (
        await gate.admit(round_.ref, [Claim("ann", 1, "k"), Claim("ann", 1, "k"), Claim("ann", 1, "other")])
    ).answers
    assert (first.outcome, second.outcome, other.outcome) == (
        Outcome.ADMITTED,
        Outcome.REPEATED,
        Outcome.LIMIT_REACHED,
    )
    assert first.holdings == second.holdings == other.holdings


async def test_the_same_key_for_another_quantity_is_refused(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round(limit_per_buyer=5))
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "k")]) == [Outcome.ADMITTED]
    assert await outcomes(gate, round_.ref, [Claim("ann", 2, "k")]) == [Outcome.KEY_REUSED]


async def test_a_key_is_the_buyers_own(gate: Gate, opened: OpenedRound) -> None:
    round_ = await opened(make_round())
    assert await outcomes(gate, round_.ref, [Claim("ann", 1, "k"), Claim("bob", 1, "k")]) == [Outcome.ADMITTED] * 2


async def test_refusals_come_in_the_order_of_precedence(backend: Backend, gate: Gate, opened: OpenedRound) -> None:
    """Everything stands against the claim at once; taking away one reason after the other shows the next."""
    tight = backend.gate(backlog_max=0)
    now = make_round()
    worst = await opened(
        replace(
            now,
            total=1,
            limit_per_buyer=1,
            status=RoundStatus.PAUSED,
            begins_ms=now.ends_ms,
            ends_ms=now.ends_ms + 1,
            cool_down_s=3600,
        )
    )
    lapsed = Holding(OrderNumber(1000, 3, 1), 1, 1, "k", live=False, lapsed_ms=now.begins_ms + HOUR_MS)
    worst = await rebuild(gate, replace(worst, epoch=2), {"ann": [lapsed]})
    assert await outcomes(tight, worst.ref, [Claim("ann", 0, "k")]) == [Outcome.INVALID]
    assert await outcomes(tight, worst.ref, [Claim("ann", 1, "k")]) == [Outcome.REPEATED]
    assert await outcomes(tight, worst.ref, [Claim("ann", 2, "k")]) == [Outcome.KEY_REUSED]
    assert await outcomes(tight, worst.ref, [Claim("ann", 2)]) == [Outcome.COOLING_DOWN]
    worst = replace(worst, revision=2, cool_down_s=0)
    await gate.update_round(worst)
    assert await outcomes(tight, worst.ref, [Claim("ann", 2)]) == [Outcome.LIMIT_REACHED]
    assert await outcomes(tight, worst.ref, [Claim("ann", 1)]) == [Outcome.NOT_STARTED]
    ended = replace(worst, revision=3, begins_ms=now.begins_ms, ends_ms=now.begins_ms + 1)
    await gate.update_round(ended)
    assert await outcomes(tight, worst.ref, [Claim("ann", 1)]) == [Outcome.ENDED]
    await gate.update_round(replace(ended, revision=4, ends_ms=now.ends_ms))
    assert await outcomes(tight, worst.ref, [Claim("ann", 1)]) == [Outcome.PAUSED]
    await gate.update_round(replace(ended, revision=5, ends_ms=now.ends_ms, status=RoundStatus.OPEN))
    assert await outcomes(tight, worst.ref, [Claim("ann", 1)]) == [Outcome.OVERLOADED]
    assert await outcomes(gate, worst.ref, [Claim("ann", 1)]) == [Outcome.ADMITTED]
    assert await outcomes(gate, worst.ref, [Claim("bob", 1)]) == [Outcome.SOLD_OUT]
    assert await outcomes(tight, worst.ref, [Claim("bob", 1)]) == [Outcome.OVERLOADED]


async def test_the_window_is_the_servers(gate: Gate, opened: OpenedRound) -> None:
    """The server's clock decides, to the millisecond (F5)."""
    now_ms = (await gate.pulses([]))[0]
    future = await opened(make_round(id=1, begins_ms=now_ms + HOUR_MS, ends_ms=now_ms + 2 * HOUR_MS))
    past = await opened(make_round(id=2, begins_ms=now_ms - HOUR_MS, ends_ms=now_ms))
    soon = await opened(make_round(id=3, begins_ms=now_ms + 300, ends_ms=now_ms + HOUR_MS))
    assert await outcomes(gate, future.ref, [Claim("ann", 1)]) == [Outcome.NOT_STARTED]
    assert await outcomes(gate, past.ref, [Claim("ann", 1)]) == [Outcome.ENDED]
    while True:
        reply = await gate.admit(soon.ref, [Claim("ann", 1)])
        if reply.answers[0].outcome is not Outcome.NOT_STARTED:
            break
        assert reply.now_ms < soon.begins_ms
    assert reply.answers[0].outcome is Outcome.ADMITTED
    assert reply.now_ms >= soon.begins_ms


async def test_the_backlog_cap_refuses_before_anything_is_deducted(backend: Backend, opened: OpenedRound) -> None:
    round_ = await opened(make_round(total=10))
    tight = backend.gate(backlog_max=2)
    answers = await outcomes(tight, round_.ref, [Claim(f"u{i}", 1) for i in range(4)])
    assert answers == [Outcome.ADMITTED] * 2 + [Outcome.OVERLOADED] * 2
    before = await backend.contents()
    assert await outcomes(tight, round_.ref, [Claim("late", 1)]) == [Outcome.OVERLOADED]
    assert await backend.contents() == before


async def test_twenty_thousand_winners_have_as_many_numbers(backend: Backend, gate: Gate) -> None:
    """The numbers are the same in the answers and in the queue, and all different (F74)."""
    round_ = await open_round(gate, make_round(total=20_000))
    numbers = []
    for batch in range(40):
        reply = await gate.admit(round_.ref, [Claim(f"u{batch}-{i}", 1) for i in range(500)])
        numbers += [int(answer.holdings[0].number) for answer in reply.answers]
    assert len(set(numbers)) == 20_000
    assert numbers == sorted(numbers)
    assert max(numbers) < 2**63
    transport = backend.transport()
    await transport.prepare([round_.lane])
    queued = []
    while deliveries := await transport.read(10_000, 0):
        queued += [int(delivery.admission.number) for delivery in deliveries if delivery.admission]
    assert queued == numbers


@pytest.mark.parametrize("quantity", [0, -1, 1001, 2**53])
async def test_a_bad_quantity_is_refused_and_changes_nothing(
    backend: Backend, gate: Gate, opened: OpenedRound, quantity: int
) -> None:
    """The gate itself refuses it, past every check of the API (F60)."""
    round_ = await opened(make_round(limit_per_buyer=1000, total=10_000))
    before = await backend.contents()
    assert await outcomes(gate, round_.ref, [Claim("ann", quantity)]) == [Outcome.INVALID]
    assert await backend.contents() == before


@pytest.mark.parametrize(("limit", "quantity", "repeats"), [(1, 1, 50), (3, 2, 50), (3, 1, 50)])
async def test_many_at_once_sell_exactly_the_stock(
    gate: Gate, opened: OpenedRound, limit: int, quantity: int, repeats: int
) -> None:
    """Strangers and one buyer fifty times over, many at once. Its control is in `test_lua.py` (F47, F49)."""
    round_ = await opened(make_round(total=60, limit_per_buyer=limit))
    claims = [Claim("ann", quantity)] * repeats + [Claim(f"u{i}", quantity) for i in range(200)]
    replies = await asyncio.gather(*(gate.admit(round_.ref, [claim]) for claim in claims))
    admitted = [
        claim for claim, reply in zip(claims, replies, strict=True) if reply.answers[0].outcome is Outcome.ADMITTED
    ]
    assert sum(claim.quantity for claim in admitted) == 60
    assert sum(claim.quantity for claim in admitted if claim.user == "ann") <= limit
