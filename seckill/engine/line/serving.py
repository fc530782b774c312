"""Serving lines: what a round has left goes to those who wait, by their places.

In each step, and for each line: those at the best places are called in the ledger, as many as there are units; the gate
is asked for all that are called; and they are served when their orders are in the ledger. Each may be repeated after a
crash: the gate knows an entry by its request id, and gives it one order however often it is asked.

A line is served by one keeper at a time, which has a lease on it. Should two serve it after all, because one of them
was stopped for longer than its lease, nobody gets two orders, and only those who were called get one.

Who is left over when no unit can come back any more is told so, and so is who may not buy any more when it is their
turn.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from seckill.domain.admission import Answer, Claim
from seckill.domain.item import NO_ITEM
from seckill.domain.line import OF_LINE, LineEntry
from seckill.domain.order import OrderState
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundStatus
from seckill.engine.line.end_of_line import LineHope
from seckill.errors import GateError, GateUnavailable, SeckillError
from seckill.ports.gate import AdmittingGate, CustodyGate, GateStatus, GateView
from seckill.ports.ledger import CustodyLedger
from seckill.ports.line import ServingLedger, WaitingLine
from seckill.telemetry import LINE_SERVED

log = structlog.get_logger()

# At a time, of one line: what the gate admits in one call.
BATCH_MAX = 500
LEASE_S = 15.0
# How long it is waited for the orders to be written, time after time, before the next step goes on with it.
WRITTEN_AFTER_S = (0.01, 0.02, 0.05, 0.1)
PASSED_OVER_AT_ONCE = 1_000

# Why people are passed over: the round is over, or all its units are paid for.
ENDED = Outcome.ENDED.value
SOLD_OUT = Outcome.SOLD_OUT.value
# Or their orders could not be written, time after time.
FAILED = OrderState.FAILED.value
ATTEMPTS_MAX = 5
# What the gate says for good.
_FOR_GOOD = {Outcome.LIMIT_REACHED, Outcome.ENDED, Outcome.INVALID}
# That there is an order, and that there was one before. Who has joined again may have asked for more units then.
_KNOWN = {Outcome.ADMITTED, Outcome.REPEATED}
_BEFORE = {Outcome.REPEATED, Outcome.KEY_REUSED}


class ServingGate(AdmittingGate, CustodyGate, Protocol):
    """For giving units to those who wait."""


@dataclass(slots=True)
class _Pace:
    """How many may be called now, at so many a second: at once as many as in one."""

    at_s: float
    room: float = 1.0

    def grow(self, per_s: int, now_s: float) -> int:
        self.room = min(self.room + per_s * (now_s - self.at_s), max(1.0, float(per_s)))
        self.at_s = now_s
        return int(self.room)


class Serving:
    def __init__(
        self,
        lines: ServingLedger,
        ledger: CustodyLedger,
        gate: ServingGate,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = lines
        self._gate = gate
        self._monotonic = monotonic
        self._token = secrets.token_hex(16)
        self.lines = 0  # in which somebody waited at the last step
        self._paces: dict[int, _Pace] = {}
        self._hope = LineHope(ledger, gate, monotonic)
        # What there was when nobody could be called: until something changes, nobody can.
        self._in_vain: dict[int, object] = {}

    async def step(self) -> int:
        """Returns how many lines are being served at their best: the next step may follow at once."""
        waiting = await self._lines.lines_waiting()
        self.lines = len(waiting)
        alive = {line.round.id for line in waiting}
        self._hope.forget_others(alive)
        for known in (self._paces, self._in_vain):
            for round_id in known.keys() - alive:
                del known[round_id]
        busy = 0
        for line in waiting:
            try:
                busy += await self._serve(line)
            except SeckillError as error:  # it may concern one round; the others go on
                log.warning("a line waits", round=line.round.id, reason=str(error))
        return busy

    async def _serve(self, waiting: WaitingLine) -> bool:
        round_ = waiting.round
        view = await self._gate.inspect(round_.ref)
        if view is None:
            return False  # it is being rebuilt
        if round_.status is RoundStatus.CLOSED or view.status is GateStatus.CLOSED or view.now_ms >= view.ends_ms:
            # An operator may have moved the end, and the gate has not heard of it yet: whoever is sent away does not
            # come back.
            if round_.status is RoundStatus.CLOSED or view.now_ms >= round_.ends_ms:
                await self._dissolve(round_)
            return False
        if view.status is not GateStatus.LINE or view.now_ms < view.begins_ms:
            return False
        units = _units(view)
        room = self._room(waiting)
        now = (units, waiting.line)
        if not waiting.called:
            if not any(units.values()):
                await self._give_up_hope(round_)
                return False
            if not room or self._in_vain.get(round_.id) == now:
                return False
        began_s = self._monotonic()
        called = await self._lines.call_next(
            round_.id, self._token, LEASE_S, units, min(BATCH_MAX, waiting.called + room)
        )
        if called is None:
            return False
        if round_.id in self._paces:
            self._paces[round_.id].room -= max(0, len(called) - waiting.called)
        if not called:
            self._in_vain[round_.id] = now
            return False
        self._in_vain.pop(round_.id, None)
        await self._ask_gate(round_, called, began_s)
        return True

    def _room(self, waiting: WaitingLine) -> int:
        """How many more may be called now."""
        per_s = waiting.line.serve_per_s
        if per_s is None:
            self._paces.pop(waiting.round.id, None)
            return BATCH_MAX
        now_s = self._monotonic()
        return self._paces.setdefault(waiting.round.id, _Pace(now_s)).grow(per_s, now_s)

    async def _ask_gate(self, round_: Round, called: Sequence[LineEntry], began_s: float) -> None:
        """Whatever gets no clear answer stays called, and is asked for again. `began_s`: when they were called."""
        refused = await self._turned_away(round_, [entry for entry in called if entry.reason is not None])
        admitted: set[int] = set()
        asked = [entry for entry in called if entry.id not in refused]
        trouble: GateError | None = None
        for attempt in range(ATTEMPTS_MAX):
            answers, trouble = await self._ask(round_, asked, attempt, began_s)
            refused |= {id_: answer.outcome.value for id_, answer in answers.items() if answer.outcome in _FOR_GOOD}
            sold_out = [id_ for id_, answer in answers.items() if answer.outcome is Outcome.SOLD_OUT]
            if sold_out and await self._hope.is_gone(round_):  # the unit that they were called for is somebody else's
                refused |= dict.fromkeys(sold_out, SOLD_OUT)
            failed = await self._failed(answers)
            admitted |= {id_ for id_, answer in answers.items() if answer.outcome in _KNOWN} - failed
            asked = [entry for entry in asked if entry.id in failed and not answers[entry.id].holdings[0].live]
            if not asked or trouble is not None:
                break
        else:
            refused |= {entry.id: FAILED for entry in asked}
        await self._settle(round_, called, refused, admitted)
        if trouble is not None:
            raise trouble

    async def _ask(
        self, round_: Round, asked: Sequence[LineEntry], attempt: int, began_s: float
    ) -> tuple[dict[int, Answer], GateError | None]:
        answers: dict[int, Answer] = {}
        trouble: GateError | None = None
        for entries in _by_lane(round_, asked):
            claims = [
                Claim(e.user, e.quantity, e.request_id(attempt), e.metadata, e.item, person=e.person) for e in entries
            ]
            if self._monotonic() - began_s > LEASE_S / 2:
                # This process was held up, and another may have passed over by now whom it would give a unit.
                trouble = GateUnavailable("The lease on this line may be over.")
                break
            try:
                reply = await self._gate.admit(round_.ref, claims)
            except GateError as error:
                trouble = error
                continue
            answers |= {entry.id: answer for entry, answer in zip(entries, reply.answers, strict=True)}
        return answers, trouble

    async def _failed(self, answers: Mapping[int, Answer]) -> set[int]:
        """Those whose order was admitted before, and could not be written: a gate may have forgotten it in between, or
        the ledger has refused it. While the gate still holds units for it, they are about to come back."""
        numbers = {id_: answer.holdings[0].number for id_, answer in answers.items() if answer.outcome in _BEFORE}
        buried = await self._lines.buried(set(numbers.values())) if numbers else set()
        return {id_ for id_, number in numbers.items() if number in buried}

    async def _turned_away(self, round_: Round, entries: Sequence[LineEntry]) -> dict[int, str]:
        """Those who may not buy any more, and for whom the gate has admitted nothing. What it has admitted holds a
        unit, so that counts. It was looked at before, and is again: what was under way to it has arrived by then, and
        what it has forgotten is no proof."""
        if not entries:
            return {}
        holdings = await self._gate.remembered(round_.ref, {entry.user: () for entry in entries})
        view = await self._gate.inspect(round_.ref)
        if view is None or not view.whole or view.epoch != round_.epoch:
            return {}
        return {
            entry.id: entry.reason or ""
            for entry in entries
            if not any(held.request_id.startswith(OF_LINE) for held in holdings[entry.user].values())
        }

    async def _settle(
        self, round_: Round, called: Sequence[LineEntry], refused: Mapping[int, str], admitted: set[int]
    ) -> None:
        open_ones = called
        for pause_s in (*WRITTEN_AFTER_S, None):
            before = len(open_ones)
            open_ones = await self._lines.settle_called(round_.id, self._token, open_ones, refused)
            LINE_SERVED.labels("served").inc(before - len(open_ones))
            if pause_s is None or not any(entry.id in admitted for entry in open_ones):
                return
            await asyncio.sleep(pause_s)

    async def _give_up_hope(self, round_: Round) -> None:
        if await self._hope.is_gone(round_):
            await self._pass_over(round_, SOLD_OUT)

    async def _dissolve(self, round_: Round) -> None:
        """The round is over. Who was called may have an order already: the gate knows."""
        began_s = self._monotonic()
        called = await self._lines.call_next(round_.id, self._token, LEASE_S, {}, 0)
        if called:
            await self._ask_gate(round_, called, began_s)
        if called is not None:
            await self._pass_over(round_, ENDED)

    async def _pass_over(self, round_: Round, reason: str) -> None:
        while passed := await self._lines.pass_over(round_.id, reason, PASSED_OVER_AT_ONCE):
            LINE_SERVED.labels("passed_over").inc(passed)


def _units(view: GateView) -> dict[int, int]:
    """What is left, by item."""
    return {item: stock.available for item, stock in view.items.items()} or {NO_ITEM: view.available}


def _by_lane(round_: Round, entries: Sequence[LineEntry]) -> list[list[LineEntry]]:
    """The gate decides about buyers of one lane at a time."""
    lanes: dict[int, list[LineEntry]] = {}
    for entry in entries:
        lanes.setdefault(round_.ref.lane_of(entry.user), []).append(entry)
    return list(lanes.values())
