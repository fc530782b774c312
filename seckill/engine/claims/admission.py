"""How a claim passes through an API node: the node answers what is certain, the gate everything else, in batches.

The caller that brings a claim, from the bytes of a connection or from a task, makes a `ClaimInProgress` of it. That is
the only place where the order of the steps is written: `AdmissionDesk.begin`, one round after the other, `decided`.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from seckill.domain.admission import Answer, Claim
from seckill.domain.outcome import Outcome
from seckill.domain.sale import Round, RoundRef, Sale
from seckill.engine.claims.batching import Batcher
from seckill.engine.claims.claim_figures import ClaimFigures
from seckill.engine.claims.lasting_states import LastingStates
from seckill.engine.claims.winner_filter import WinnerFilter
from seckill.engine.sale_cache import SaleCache
from seckill.errors import GateError
from seckill.ports.gate import ClaimGate, GateReply, Pulse
from seckill.ports.transport import NewsTransport
from seckill.telemetry import CLAIMS, LOCAL_REFUSALS, Tallies

log = structlog.get_logger()

# Found once: looking up a label costs more than counting.
_CLAIMS = {outcome: CLAIMS.labels(outcome.value) for outcome in Outcome}
_LOCAL_REFUSALS = {outcome: LOCAL_REFUSALS.labels(outcome.value) for outcome in Outcome}

# Around the edges of a window the gate is asked: only its clock is the clock.
EDGE_MS = 1_000
_LANE_BITS = 8
# What a round that is over says to a claim that it does not know: the claim is for the next.
_OVER_HERE = {Outcome.COOLING_DOWN, Outcome.LIMIT_REACHED, Outcome.ENDED, Outcome.PAUSED, Outcome.SOLD_OUT}


@dataclass(frozen=True, slots=True)
class SoldOutFlag:
    """True for one version of the round: as long as nothing came back, no buyer outside `winners` can have an order."""

    version: int
    winners: WinnerFilter


class ClaimInProgress(ABC):
    """A claim on its way from round to round. Each answer of the gate takes it a step further, in the turn in which its
    batch was answered, so it needs no task; the caller that brought it is told the decision in that same turn.

    Where one round follows another, the gate's clock decides which it is, and a key that the round before knows is a
    repeat: it must not become a second order."""

    __slots__ = ("_answer", "_asked", "_began_s", "_desk", "_sale", "claim")
    claim: Claim
    _answer: Answer

    @abstractmethod
    def done(self) -> bool:
        """True if the buyer has given up: a claim that was not sent to the gate yet then never is."""

    @abstractmethod
    def decided(self, sale: Sale, answer: Answer) -> None:
        """`sale` has the round that gave the answer. Never raises."""

    def ask_rounds(self, desk: "AdmissionDesk", sale: Sale, claim: Claim) -> None:
        self._desk = desk
        self._sale = sale
        self.claim = claim
        self._began_s = time.monotonic()
        self._ask(desk.round_before(sale, claim) or sale)

    def _ask(self, sale: Sale) -> None:
        self._asked = sale
        self._desk.batcher(sale.round, self.claim.user).submit(self.claim, self)

    def set_result(self, answer: Answer) -> None:
        """What the round that was asked last said."""
        sale, asked = self._sale, self._asked
        if asked is sale:
            later = None if answer.outcome is Outcome.ADMITTED else self._desk.round_after(sale, answer)
            if later is not None:
                self._answer = answer
                self._ask(later)
                return
        elif asked.round.ordinal < sale.round.ordinal:
            if answer.outcome in _OVER_HERE:
                self._ask(sale)
                return
        elif answer.outcome is Outcome.NOT_STARTED:  # so what the round before that one has said counts
            asked, answer = sale, self._answer
        self._desk.count(asked.round.id, answer.outcome, time.monotonic() - self._began_s)
        self.decided(asked, answer)


class _AwaitedClaim(ClaimInProgress):
    __slots__ = ("decision",)

    def __init__(self) -> None:
        self.decision: asyncio.Future[tuple[Sale, Answer]] = asyncio.get_running_loop().create_future()

    def done(self) -> bool:
        return self.decision.done()

    def decided(self, sale: Sale, answer: Answer) -> None:
        self.decision.set_result((sale, answer))


def tell_nobody(_: Sequence[Answer]) -> None:
    pass


class AdmissionDesk:
    def __init__(
        self, gate: ClaimGate, sale_cache: SaleCache, before_answers: Callable[[Sequence[Answer]], None] = tell_nobody
    ) -> None:
        """`before_answers` is told what the gate answered to a batch before each waiting caller gets its own answer:
        what costs less for all at once can be done there."""
        self._gate = gate
        self._sale_cache = sale_cache
        self._before_answers = before_answers
        self._batchers: dict[int, Batcher] = {}  # by round and lane, see `_key`
        self._flags: dict[int, SoldOutFlag] = {}
        self._flagging: dict[int, asyncio.Task[None]] = {}
        self._announced: dict[int, int] = {}  # round → the newest version that was announced
        self._lasting = LastingStates(_tell)
        self._tallies = Tallies()
        self.figures = ClaimFigures()

    def begin(self, sale: Sale, claim: Claim, progress: ClaimInProgress) -> Answer | None:
        """The answer, if it is certain here. None: only the gate can tell, and `progress` will be told."""
        refused = self._refuse_here(sale, claim)
        if refused is None:
            progress.ask_rounds(self, sale, claim)
            return None
        self._tallies.add(_LOCAL_REFUSALS[refused])
        self.count(sale.round.id, refused, 0.0)
        return Answer(refused)

    async def claim(self, sale: Sale, claim: Claim) -> tuple[Sale, Answer]:
        """The same for a task: the answer, and the sale with the round that gave it. A task that is cancelled has given
        up."""
        awaited = _AwaitedClaim()
        answer = self.begin(sale, claim, awaited)
        return await awaited.decision if answer is None else (sale, answer)

    # What a claim in progress needs

    def round_before(self, sale: Sale, claim: Claim) -> Sale | None:
        """The same sale with the round before, if that has to be asked first."""
        earlier = self._sale_cache.before(sale)
        if earlier is not None and (claim.request_id or self._is_at(sale.round.begins_ms)):
            return earlier
        return None

    def round_after(self, sale: Sale, answer: Answer) -> Sale | None:
        """The same sale with the next round, if the claim may have come a moment too late for this one. A buyer who is
        at the limit here, or has to wait, is told so even when it is over, and may buy there."""
        over = answer.outcome in (Outcome.ENDED, Outcome.LIMIT_REACHED, Outcome.COOLING_DOWN)
        later = self._sale_cache.following(sale) if over else None
        return later if later and self._sale_cache.now_ms() >= later.round.begins_ms - EDGE_MS else None

    def batcher(self, round_: Round, user: str) -> Batcher:
        """Lanes do not wait for each other."""
        key = _key(round_.id, round_.lane if round_.lanes == 1 else round_.ref.lane_of(user))
        batcher = self._batchers.get(key)
        if batcher is None:
            ref = round_.ref

            async def call(claims: Sequence[Claim]) -> GateReply:
                reply = await self._gate.admit(ref, claims)
                self._consider_flag(ref, reply)
                self._before_answers(reply.answers)
                return reply

            batcher = self._batchers[key] = Batcher(call)
        return batcher

    def count(self, round_id: int, outcome: Outcome, took_s: float) -> None:
        self._tallies.add(_CLAIMS[outcome])
        self.figures.note(round_id, outcome, took_s)

    def _is_at(self, edge_ms: int) -> bool:
        return abs(self._sale_cache.now_ms() - edge_ms) < EDGE_MS

    def _refuse_here(self, sale: Sale, claim: Claim) -> Outcome | None:
        round_ = sale.round
        if round_.retired_ms is not None:
            return Outcome.ENDED  # the gate may have forgotten it, and that is no loss
        now_ms = self._sale_cache.now_ms()
        begun = now_ms >= round_.begins_ms - EDGE_MS
        flag = self._flags.get(round_.id)
        if begun and flag is None:  # checked first, because it is true for most claims
            return None
        if not self._sale_cache.is_fresh() or claim.quantity > round_.limit_per_buyer:
            return None
        if not begun and self._sale_cache.knows_sales():
            return Outcome.NOT_STARTED  # no buyer can have bought yet, so it cannot be a repeat
        pulse = self._sale_cache.pulse(round_.id)
        if flag is None or pulse is None or pulse.version != flag.version or claim.user in flag.winners:
            return None
        return Outcome.SOLD_OUT if now_ms < round_.ends_ms - EDGE_MS else None

    def _consider_flag(self, ref: RoundRef, reply: GateReply) -> None:
        if reply.available != 0 or ref.id in self._flagging:
            return
        flag = self._flags.get(ref.id)
        if self._is_over(ref.id, reply.version) or (flag is not None and flag.version == reply.version):
            return
        if any(answer.outcome is Outcome.SOLD_OUT for answer in reply.answers):
            self._flagging[ref.id] = asyncio.create_task(self._raise_flag(ref, reply.version))

    async def _raise_flag(self, ref: RoundRef, version: int) -> None:
        """While the version stands no new buyer can win, so the winners found now are all there are."""
        try:
            view = await self._gate.inspect(ref)
            if view is None or not view.whole or view.version != version or view.available != 0:
                return
            winners = WinnerFilter(view.buyers)
            async for portion in self._gate.buyers(ref):
                for user in portion:
                    winners.add(user)
            if self._is_over(ref.id, version):  # while the winners were being read
                return
            self._flags[ref.id] = SoldOutFlag(version, winners)
            self._lasting.change(ref.id, on=True)
        except GateError as error:
            log.warning("no sold-out flag, the gate keeps answering", round=ref.id, reason=str(error))
        finally:
            del self._flagging[ref.id]

    async def listen(self, transport: NewsTransport) -> None:
        """Withdraws flags as soon as it is announced that units came back."""
        async for round_id, version in transport.version_changes():
            self.hear(round_id, version)

    def hear(self, round_id: int, version: int) -> None:
        """A late or repeated announcement is about a version that is known to be over, and changes nothing."""
        self._announced[round_id] = max(version, self._announced.get(round_id, 0))
        flag = self._flags.get(round_id)
        if flag is not None and self._is_over(round_id, flag.version):
            self._withdraw(round_id)

    def _is_over(self, round_id: int, version: int) -> bool:
        return version < self._announced.get(round_id, 0)

    def _withdraw(self, round_id: int) -> None:
        del self._flags[round_id]
        self._lasting.change(round_id, on=False)

    def forget(self, pulses: dict[int, Pulse]) -> None:
        """Withdraws flags whose version is over, even if that was not announced, and drops rounds that are over.

        While a version stands, units only go: if there are some again, the gate has gone back to an earlier time."""
        for round_id, flag in list(self._flags.items()):
            pulse = pulses.get(round_id)
            if pulse is None or pulse.version != flag.version or pulse.available > 0:
                self._withdraw(round_id)
        self._lasting.keep(pulses)
        for round_id in self._announced.keys() - pulses.keys() - self._flagging.keys():
            del self._announced[round_id]
        for key in [key for key, batcher in self._batchers.items() if _round_of(key) not in pulses and batcher.idle]:
            del self._batchers[key]

    def is_flagged(self, round_id: int) -> bool:
        return round_id in self._flags


def _tell(round_id: int, sold_out: bool) -> None:
    if sold_out:
        log.info("sold out: most claims are refused here, without the gate", round=round_id)
    else:
        log.info("no longer sold out", round=round_id)


def _key(round_id: int, lane: int) -> int:
    """One number: it is made for every claim, and looking it up costs a tenth of what a pair would."""
    return round_id << _LANE_BITS | lane


def _round_of(key: int) -> int:
    return key >> _LANE_BITS
