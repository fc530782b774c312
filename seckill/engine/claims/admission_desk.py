"""Takes claims through an API node: the node answers those whose outcome is certain, and the gate all others, in
batches.

The caller that brings a claim, from the bytes of a connection or from a task, makes a `ClaimInProgress` of it. That is
the only place where the order of the steps is written: `AdmissionDesk.begin`, one round after the other, `decided`.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from seckill.domain.admission import Answer, Claim
from seckill.domain.outcome import REFUSALS, Outcome
from seckill.domain.sale import Round, Sale
from seckill.engine.claims.claim_batches import Batcher, do_nothing, tell_nobody
from seckill.engine.claims.claim_figures import ClaimFigures
from seckill.engine.claims.sold_out import SoldOutFlags
from seckill.engine.claims.writing_pace import WritingPace
from seckill.engine.sale_cache import SaleCache
from seckill.ports.gate import AdmittingGate, GateReply, Pulse
from seckill.telemetry import CLAIMS, LOCAL_REFUSALS, Tallies

# Looked up once: finding a label costs more than counting.
_CLAIMS = {outcome: CLAIMS.labels(outcome.value) for outcome in Outcome}
_LOCAL_REFUSALS = {outcome: LOCAL_REFUSALS.labels(outcome.value) for outcome in Outcome}

# Near the beginning and end of a window the gate decides, because only its clock counts.
EDGE_MS = 1_000
_LANE_BITS = 8
_LANES = (1 << _LANE_BITS) - 1
_ADMITTED = Outcome.ADMITTED  # looking up a member of an enum is slow
# The answers of a round that is over to a claim that it does not know: the claim is for the next round.
_OVER_HERE = {outcome for outcome, refusal in REFUSALS.items() if refusal.of_round}
# Those of them that are given before the check whether the round is over, and `ended` itself.
_MAYBE_OVER = {outcome for outcome in list(Outcome)[: list(Outcome).index(Outcome.ENDED) + 1] if outcome in _OVER_HERE}


class ClaimInProgress(ABC):
    """A claim on its way from round to round. Each answer of the gate takes it a step further in the turn in which its
    batch was answered, so it needs no task. Its caller is told the decision in that same turn.

    Where one round follows another, the gate's clock decides which round a claim is for. A key that the previous round
    knows is a repeat and must not become a second order."""

    __slots__ = ("_answer", "_asked", "_began_s", "_desk", "_sale", "claim")
    claim: Claim
    _answer: Answer

    @abstractmethod
    def done(self) -> bool:
        """True if the buyer has given up: a claim that was not sent to the gate yet then never is."""

    @abstractmethod
    def decided(self, sale: Sale, answer: Answer) -> None:
        """Called with the answer; `sale` has the round that gave it. Never raises."""

    def ask_rounds(self, desk: "AdmissionDesk", sale: Sale, claim: Claim) -> None:
        self._desk = desk
        self._sale = sale
        self.claim = claim
        self._began_s = time.monotonic()
        self._ask(desk.round_before(sale, claim) or sale)

    def _ask(self, sale: Sale) -> None:
        self._asked = sale
        self._desk.batcher(sale.round, self.claim.user).submit(self.claim, self)

    def ask_straight(self, desk: "AdmissionDesk", sale: Sale, batcher: Batcher, claim: Claim) -> None:
        """The same, with the batcher that `straight_way` has returned."""
        self._desk = desk
        self._sale = self._asked = sale
        self.claim = claim
        self._began_s = time.monotonic()
        batcher.submit(claim, self)

    def set_result(self, answer: Answer) -> None:
        """Takes the answer of the round that was asked last."""
        sale, asked = self._sale, self._asked
        if asked is sale:
            later = None if answer.outcome is _ADMITTED else self._desk.round_after(sale, answer)
            if later is not None:
                self._answer = answer
                self._ask(later)
                return
        elif asked.round.ordinal < sale.round.ordinal:
            if answer.outcome in _OVER_HERE:
                self._ask(sale)
                return
        elif answer.outcome is Outcome.NOT_STARTED:  # so the answer of the round before that one counts
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


class AdmissionDesk:
    def __init__(
        self,
        gate: AdmittingGate,
        sale_cache: SaleCache,
        sold_out: SoldOutFlags,
        pace: WritingPace,
        before_answers: Callable[[Sequence[Answer]], None] = tell_nobody,
        after_answers: Callable[[], None] = do_nothing,
    ) -> None:
        """`before_answers` and `after_answers`: see `Batcher`."""
        self._gate = gate
        self._sale_cache = sale_cache
        self._pace = pace
        self._around_answers = before_answers, after_answers
        # Round and lane are the key, as one number: every claim looks it up, which costs a tenth of looking up a pair.
        self._batchers: dict[int, Batcher] = {}
        self.sold_out = sold_out
        self._flags = sold_out.standing
        self._tallies = Tallies()
        self.figures = ClaimFigures()
        self._decided: dict[tuple[int, Outcome], list[float]] = {}  # in this turn of the event loop, see `count`

    def begin(self, sale: Sale, claim: Claim, progress: ClaimInProgress) -> Answer | None:
        """Returns the answer if it is certain here. None: only the gate can decide, and `progress` will be told."""
        refused = self._refuse_here(sale, claim)
        if refused is None:
            progress.ask_rounds(self, sale, claim)
            return None
        self._tallies.add(_LOCAL_REFUSALS[refused])
        self.count(sale.round.id, refused, 0.0)
        return Answer(refused, item=claim.item) if refused is Outcome.SOLD_OUT else Answer(refused)

    def straight_way(self, sale: Sale) -> Batcher | None:
        """Returns the batcher for claims of any buyer for no particular item, if this node itself can answer none of
        them and no other round has to be asked first. That holds until the node learns anything new (`SaleCache.news`)
        or a flag goes up. None: each claim has to be examined."""
        round_ = sale.round
        now_ms = self._sale_cache.now_ms()
        begun = now_ms >= round_.begins_ms - EDGE_MS
        if not begun or round_.retired_ms is not None or round_.lanes > 1 or round_.id in self._flags:
            return None
        return None if self._sale_cache.before(sale) else self.batcher(round_, "")

    async def claim(self, sale: Sale, claim: Claim) -> tuple[Sale, Answer]:
        """The same for a task: returns the answer, and the sale with the round that gave it. A cancelled task has given
        up."""
        awaited = _AwaitedClaim()
        answer = self.begin(sale, claim, awaited)
        return await awaited.decision if answer is None else (sale, answer)

    # What a claim in progress needs

    def round_before(self, sale: Sale, claim: Claim) -> Sale | None:
        """Returns the sale with its previous round, if that has to be asked first."""
        earlier = self._sale_cache.before(sale)
        if earlier is not None and (claim.request_id or self._is_at(sale.round.opens_ms)):
            return earlier
        return None

    def round_after(self, sale: Sale, answer: Answer) -> Sale | None:
        """Returns the sale with its next round, if the claim may have come a moment too late for this one. A round that
        is over still answers a buyer who is at the limit or has to wait; such a buyer may buy in the next round."""
        later = self._sale_cache.following(sale) if answer.outcome in _MAYBE_OVER else None
        return later if later and self._sale_cache.now_ms() >= later.round.opens_ms - EDGE_MS else None

    def batcher(self, round_: Round, user: str) -> Batcher:
        """Each lane has its own batcher, so that lanes do not wait for each other."""
        key = round_.id << _LANE_BITS | (round_.lane if round_.lanes == 1 else round_.ref.lane_of(user))
        batcher = self._batchers.get(key)
        if batcher is None:
            ref = round_.ref

            async def call(claims: Sequence[Claim]) -> GateReply:
                reply = await self._gate.admit(ref, claims)
                self.sold_out.consider(ref, reply)
                return reply

            batcher = self._batchers[key] = Batcher(call, self._pace.of(key & _LANES), *self._around_answers)
        return batcher

    def count(self, round_id: int, outcome: Outcome, took_s: float) -> None:
        """Counts at the end of the turn: a batch is answered in one turn, and counting all its claims costs little more
        than counting one."""
        took = self._decided.get((round_id, outcome))
        if took is None:
            if not self._decided:
                asyncio.get_running_loop().call_soon(self._count_decided)
            took = self._decided[round_id, outcome] = []
        took.append(took_s)

    def _count_decided(self) -> None:
        decided, self._decided = self._decided, {}
        for (round_id, outcome), took in decided.items():
            took.sort()
            _CLAIMS[outcome].inc(len(took))
            self.figures.note(round_id, outcome, took)

    def _is_at(self, edge_ms: int) -> bool:
        return abs(self._sale_cache.now_ms() - edge_ms) < EDGE_MS

    def _refuse_here(self, sale: Sale, claim: Claim) -> Outcome | None:
        round_ = sale.round
        if round_.retired_ms is not None:
            return Outcome.ENDED  # the gate may have forgotten the round, which does no harm
        now_ms = self._sale_cache.now_ms()
        begun = now_ms >= round_.begins_ms - EDGE_MS or now_ms >= round_.begins_ms - claim.early_ms - EDGE_MS
        flag = self._flags.get((round_.id, claim.item) if claim.item else round_.id)
        if begun and flag is None:  # checked first, because it is true for most claims
            return None
        if not self._sale_cache.is_fresh() or claim.quantity > round_.limit_per_buyer:
            return None
        if not begun and self._sale_cache.knows_sales():
            return Outcome.NOT_STARTED  # no buyer can have bought yet, so it cannot be a repeat
        pulse = self._sale_cache.pulse(round_.id)
        if flag is None or pulse is None or pulse.version != flag.version or claim.user in flag.winners:
            return None
        sold_out = Outcome.JOIN_THE_LINE if round_.lined else Outcome.SOLD_OUT
        return sold_out if now_ms < round_.ends_ms - EDGE_MS else None

    async def keep_pace(self) -> None:
        """Measures how fast the ledger is in the lanes to which this node sends claims."""
        on_sale: dict[int, int] = {}
        for key in self._batchers:
            pulse = self._sale_cache.pulse(_round_of(key))
            lane = key & _LANES
            on_sale[lane] = on_sale.get(lane, 0) + (pulse.available if pulse else 0)
        await self._pace.look(on_sale)

    def forget(self, pulses: dict[int, Pulse]) -> None:
        """Drops the batchers of rounds that are over."""
        self.sold_out.keep(pulses)
        for key in [key for key, batcher in self._batchers.items() if _round_of(key) not in pulses and batcher.idle]:
            del self._batchers[key]


def _round_of(key: int) -> int:
    return key >> _LANE_BITS
