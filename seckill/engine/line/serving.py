"""Serves lines: the units that a round has left go to the waiting buyers, in the order of their places.

Each step does three things for each line. In the ledger it calls the entries at the best places, as many as there are
units. It asks the gate for an order for each called entry. It marks them as served when their orders are in the ledger.
All of this may be repeated after a crash: the gate knows an entry by its request id and gives it one order, however
often it is asked.

One keeper at a time serves a line and holds a lease on it. Two may serve it after all if one of them was stopped for
longer than its lease. Even then no buyer gets two orders, and only called entries get one.

Buyers who are left when no unit can come back any more are told so, and so are those who may no longer buy when their
turn comes.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
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

# How many entries of one line are served at a time: as many as the gate admits in one call.
BATCH_MAX = 500
LEASE_S = 15.0
# How long to wait for the orders to be written, try after try, before leaving them to the next step.
WRITTEN_AFTER_S = (0.01, 0.02, 0.05, 0.1)
PASSED_OVER_AT_ONCE = 1_000

# Why entries are passed over: the round is over, or all its units are paid for,
ENDED = Outcome.ENDED.value
SOLD_OUT = Outcome.SOLD_OUT.value
# or their orders could not be written in any of several tries.
FAILED = OrderState.FAILED.value
ATTEMPTS_MAX = 5
# Refusals of the gate that are final.
_FOR_GOOD = {Outcome.LIMIT_REACHED, Outcome.ENDED, Outcome.INVALID}
# There is an order, or there was one before. A buyer who joined again may have asked for more units then.
_KNOWN = {Outcome.ADMITTED, Outcome.REPEATED}
_BEFORE = {Outcome.REPEATED, Outcome.KEY_REUSED}


class ServingGate(AdmittingGate, CustodyGate, Protocol):
    """The parts of the gate that are needed to give units to waiting buyers."""


@dataclass(slots=True)
class _Pace:
    """How many entries may be called now, at a given rate a second. One second's worth may be called at once."""

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
        self.lines = 0  # lines with waiting buyers at the last step
        self._paces: dict[int, _Pace] = {}
        self._hope = LineHope(ledger, gate, monotonic)
        # The state of each line when no entry could be called. Until it changes, none can be.
        self._in_vain: dict[int, object] = {}

    async def step(self) -> int:
        """Returns how many lines are being served at full speed, so that the next step may follow at once."""
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
            except SeckillError as error:  # perhaps only this round is concerned; the others go on
                log.warning("a line waits", round=line.round.id, reason=str(error))
        return busy

    async def _serve(self, waiting: WaitingLine) -> bool:
        round_ = waiting.round
        view = await self._gate.inspect(round_.ref)
        if view is None:
            return False  # it is being rebuilt
        if round_.status is RoundStatus.CLOSED or view.status is GateStatus.CLOSED or view.now_ms >= view.ends_ms:
            # An operator may have moved the end without the gate having heard of it yet, and a buyer who is sent away
            # does not come back.
            if round_.status is RoundStatus.CLOSED or view.now_ms >= round_.ends_ms:
                await self._dissolve(round_)
            return False
        if view.status is not GateStatus.LINE or view.now_ms < view.begins_ms:
            return False
        units = _units(view)
        room = self._room(waiting)
        now = (units, waiting.line)
        gone = frozenset[int]() if all(units.values()) else await self._hope.gone(round_)
        if gone:
            await self._pass_over(round_, SOLD_OUT, gone)
        if not waiting.called:
            if not any(units.values()):
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
        await self._ask_gate(round_, called, began_s, gone)
        return True

    def _room(self, waiting: WaitingLine) -> int:
        """Returns how many more entries may be called now."""
        per_s = waiting.line.serve_per_s
        if per_s is None:
            self._paces.pop(waiting.round.id, None)
            return BATCH_MAX
        now_s = self._monotonic()
        return self._paces.setdefault(waiting.round.id, _Pace(now_s)).grow(per_s, now_s)

    async def _ask_gate(
        self, round_: Round, called: Sequence[LineEntry], began_s: float, gone: Collection[int] = ()
    ) -> None:
        """Entries without a clear answer stay called and are asked for again. `began_s`: when they were called. `gone`:
        the items of which no unit can come back."""
        refused = await self._turned_away(round_, [entry for entry in called if entry.reason is not None])
        admitted: set[int] = set()
        asked = [entry for entry in called if entry.id not in refused]
        trouble: GateError | None = None
        for attempt in range(ATTEMPTS_MAX):
            answers, trouble = await self._ask(round_, asked, attempt, began_s)
            refused |= {id_: answer.outcome.value for id_, answer in answers.items() if answer.outcome in _FOR_GOOD}
            # If no unit is left for somebody who was called, another buyer has got it.
            in_vain = [entry.id for entry in asked if entry.item in gone and _is_sold_out(answers.get(entry.id))]
            refused |= dict.fromkeys(in_vain, SOLD_OUT)
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
                # This process was held up. It might give units to entries that another process has passed over
                # meanwhile.
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
        """Returns the entries whose order was admitted before but could not be written: the gate has forgotten it
        meanwhile, or the ledger has refused it. While the gate still holds units for such an order, they are about to
        come back."""
        numbers = {id_: answer.holdings[0].number for id_, answer in answers.items() if answer.outcome in _BEFORE}
        buried = await self._lines.buried(set(numbers.values())) if numbers else set()
        return {id_ for id_, number in numbers.items() if number in buried}

    async def _turned_away(self, round_: Round, entries: Sequence[LineEntry]) -> dict[int, str]:
        """Returns the entries whose buyers may no longer buy and for which the gate has admitted nothing, with the
        reason. An order that the gate has admitted holds a unit and therefore counts. The gate was asked before and is
        asked again here, because a claim that was under way to it has arrived by now. A gate that has forgotten
        something proves nothing."""
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

    async def _dissolve(self, round_: Round) -> None:
        """Ends the line of a round that is over. Called entries may have an order already, which the gate knows."""
        began_s = self._monotonic()
        called = await self._lines.call_next(round_.id, self._token, LEASE_S, {}, 0)
        if called:
            await self._ask_gate(round_, called, began_s)
        if called is not None:
            await self._pass_over(round_, ENDED)

    async def _pass_over(self, round_: Round, reason: str, items: Collection[int] | None = None) -> None:
        while passed := await self._lines.pass_over(round_.id, reason, PASSED_OVER_AT_ONCE, items):
            LINE_SERVED.labels("passed_over").inc(passed)


def _units(view: GateView) -> dict[int, int]:
    """Returns the units left, by item."""
    return {item: stock.available for item, stock in view.items.items()} or {NO_ITEM: view.available}


def _is_sold_out(answer: Answer | None) -> bool:
    return answer is not None and answer.outcome is Outcome.SOLD_OUT


def _by_lane(round_: Round, entries: Sequence[LineEntry]) -> list[list[LineEntry]]:
    """The gate decides about buyers of one lane at a time."""
    lanes: dict[int, list[LineEntry]] = {}
    for entry in entries:
        lanes.setdefault(round_.ref.lane_of(entry.user), []).append(entry)
    return list(lanes.values())
