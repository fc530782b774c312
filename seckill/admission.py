"""The way of a claim through an API node: what is certain is answered here, everything else by the gate, in batches."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from seckill.batching import Batcher, Waiting
from seckill.catalogue import Catalogue
from seckill.domain import Answer, Claim, Round, RoundRef, Sale
from seckill.errors import GateError
from seckill.figures import ClaimFigures
from seckill.outcomes import Outcome
from seckill.ports import Gate, GateReply, Pulse, Transport
from seckill.telemetry import CLAIMS, LOCAL_REFUSALS, Tallies
from seckill.winners import WinnerFilter

log = structlog.get_logger()

# Found once: looking up a label costs more than counting.
_CLAIMS = {outcome: CLAIMS.labels(outcome.value) for outcome in Outcome}
_LOCAL_REFUSALS = {outcome: LOCAL_REFUSALS.labels(outcome.value) for outcome in Outcome}

# Around the edges of a window the gate is asked: only its clock is the clock.
EDGE_MS = 1_000
_LANE_BITS = 8
# What a round that is over says to a claim that it does not know: the claim is for the next.
_OVER_HERE = {Outcome.LIMIT_REACHED, Outcome.ENDED, Outcome.PAUSED, Outcome.SOLD_OUT}


@dataclass(frozen=True, slots=True)
class SoldOutFlag:
    """True for one version of the round: as long as nothing came back, nobody outside `winners` can have an order."""

    version: int
    winners: WinnerFilter


class AdmissionDesk:
    def __init__(self, gate: Gate, catalogue: Catalogue) -> None:
        self._gate = gate
        self._catalogue = catalogue
        self._batchers: dict[int, Batcher] = {}  # by round and lane, see `_key`
        self._flags: dict[int, SoldOutFlag] = {}
        self._flagging: dict[int, asyncio.Task[None]] = {}
        self._announced: dict[int, int] = {}  # round → the newest version that somebody has announced
        self._tallies = Tallies()
        self.figures = ClaimFigures()
        # Told what the gate answered to a batch, before each of those who wait gets the own answer.
        self.before_answers: Callable[[Sequence[Answer]], None] = lambda _: None

    async def claim(self, sale: Sale, claim: Claim) -> tuple[Sale, Answer]:
        """The answer, and the sale with the round that gave it.

        Where one round follows the other, the gate's clock decides which it is, and a key that the round before knows
        is a repeat: it must not become a second order."""
        refused = self.refuse_here(sale, claim)
        if refused is not None:
            return sale, refused
        began_s = time.monotonic()
        answering, answer = await self._ask_rounds(sale, claim)
        self.count(answering.round.id, answer.outcome, time.monotonic() - began_s)
        return answering, answer

    def count(self, round_id: int, outcome: Outcome, took_s: float) -> None:
        self._tallies.add(_CLAIMS[outcome])
        self.figures.note(round_id, outcome, took_s)

    async def _ask_rounds(self, sale: Sale, claim: Claim) -> tuple[Sale, Answer]:
        earlier = self._catalogue.before(sale)
        if earlier is not None and (claim.request_id or self._is_at(sale.round.begins_ms)):
            answer = await self._batcher(earlier.round, claim.user).submit(claim)
            if answer.outcome not in _OVER_HERE:
                return earlier, answer
        answer = await self._batcher(sale.round, claim.user).submit(claim)
        later = self._goes_on(sale, answer)
        if later is not None:
            its_answer = await self._batcher(later.round, claim.user).submit(claim)
            if its_answer.outcome is not Outcome.NOT_STARTED:
                return later, its_answer
        return sale, answer

    def _is_at(self, edge_ms: int) -> bool:
        return abs(self._catalogue.now_ms() - edge_ms) < EDGE_MS

    def _goes_on(self, sale: Sale, answer: Answer) -> Sale | None:
        """The same sale with the next round, if the claim may have come a moment too late for this one. Who is at the
        limit here is told so even when it is over, and may buy there."""
        over = answer.outcome in (Outcome.ENDED, Outcome.LIMIT_REACHED)
        later = self._catalogue.following(sale) if over else None
        return later if later and self._catalogue.now_ms() >= later.round.begins_ms - EDGE_MS else None

    def refuse_here(self, sale: Sale, claim: Claim) -> Answer | None:
        """None: only the gate can tell."""
        refused = self._refuse_here(sale, claim)
        if refused is None:
            return None
        self._tallies.add(_LOCAL_REFUSALS[refused])
        self.count(sale.round.id, refused, 0.0)
        return Answer(refused)

    def one_round_decides(self, sale: Sale) -> bool:
        """Then `submit_for` is enough."""
        return self._catalogue.before(sale) is None

    def submit_for(self, waiting: Waiting, sale: Sale, claim: Claim) -> None:
        """It gets the gate's answer, with the next batch, and is to `count` it."""
        self._batcher(sale.round, claim.user).submit_for(waiting, claim)

    def is_final(self, sale: Sale, answer: Answer) -> bool:
        """Of what came from `submit_for`. Otherwise `claim` says more."""
        if answer.outcome is Outcome.ADMITTED:
            return True
        return answer.outcome is not Outcome.REPEATED and self._goes_on(sale, answer) is None

    def _refuse_here(self, sale: Sale, claim: Claim) -> Outcome | None:
        round_ = sale.round
        if round_.retired_ms is not None:
            return Outcome.ENDED  # the gate may have forgotten it, and that is no loss
        now_ms = self._catalogue.now_ms()
        begun = now_ms >= round_.begins_ms - EDGE_MS
        flag = self._flags.get(round_.id)
        if begun and flag is None:  # first of all, because it is so for most claims
            return None
        if not self._catalogue.is_fresh() or claim.quantity > round_.limit_per_buyer:
            return None
        if not begun and self._catalogue.knows_sales():
            return Outcome.NOT_STARTED  # nobody can have bought yet, so no repeat can be meant
        pulse = self._catalogue.pulse(round_.id)
        if flag is None or pulse is None or pulse.version != flag.version or claim.user in flag.winners:
            return None
        return Outcome.SOLD_OUT if now_ms < round_.ends_ms - EDGE_MS else None

    def _batcher(self, round_: Round, user: str) -> Batcher:
        """Lanes do not wait for each other."""
        key = _key(round_.id, round_.lane if round_.lanes == 1 else round_.ref.lane_of(user))
        batcher = self._batchers.get(key)
        if batcher is None:
            ref = round_.ref

            async def call(claims: Sequence[Claim]) -> GateReply:
                reply = await self._gate.admit(ref, claims)
                self._consider_flag(ref, reply)
                self.before_answers(reply.answers)
                return reply

            batcher = self._batchers[key] = Batcher(call)
        return batcher

    def _consider_flag(self, ref: RoundRef, reply: GateReply) -> None:
        if reply.available != 0 or ref.id in self._flagging:
            return
        flag = self._flags.get(ref.id)
        if self._is_over(ref.id, reply.version) or (flag is not None and flag.version == reply.version):
            return
        if any(answer.outcome is Outcome.SOLD_OUT for answer in reply.answers):
            self._flagging[ref.id] = asyncio.create_task(self._raise_flag(ref, reply.version))

    async def _raise_flag(self, ref: RoundRef, version: int) -> None:
        """While the version stands nobody new can win, so the winners found now are all there are."""
        try:
            view = await self._gate.inspect(ref)
            if view is None or view.version != version or view.available != 0:
                return
            winners = WinnerFilter(view.buyers)
            async for portion in self._gate.buyers(ref):
                for user in portion:
                    winners.add(user)
            if self._is_over(ref.id, version):  # while the winners were being read
                return
            self._flags[ref.id] = SoldOutFlag(version, winners)
            log.info("sold out: refusing here from now on", round=ref.id, version=version, winners=view.buyers)
        except GateError as error:
            log.warning("no sold-out flag, the gate keeps answering", round=ref.id, reason=str(error))
        finally:
            del self._flagging[ref.id]

    async def listen(self, transport: Transport) -> None:
        """Withdraws flags as soon as somebody announces that units came back."""
        async for round_id, version in transport.version_changes():
            self.hear(round_id, version)

    def hear(self, round_id: int, version: int) -> None:
        """An announcement that is late or repeated is of a version that is known to be over, and changes nothing."""
        self._announced[round_id] = max(version, self._announced.get(round_id, 0))
        flag = self._flags.get(round_id)
        if flag is not None and self._is_over(round_id, flag.version):
            self._withdraw(round_id, flag)

    def _is_over(self, round_id: int, version: int) -> bool:
        return version < self._announced.get(round_id, 0)

    def _withdraw(self, round_id: int, flag: SoldOutFlag) -> None:
        del self._flags[round_id]
        log.info("no longer sold out", round=round_id, version=flag.version)

    def forget(self, pulses: dict[int, Pulse]) -> None:
        """Withdraws flags whose version is over, also when nobody announced it, and lets go of rounds that are.

        While a version stands, units only go: if there are some again, the gate has gone back to an earlier time."""
        for round_id, flag in list(self._flags.items()):
            pulse = pulses.get(round_id)
            if pulse is None or pulse.version != flag.version or pulse.available > 0:
                self._withdraw(round_id, flag)
        for round_id in self._announced.keys() - pulses.keys() - self._flagging.keys():
            del self._announced[round_id]
        for key in [key for key, batcher in self._batchers.items() if _round_of(key) not in pulses and batcher.idle]:
            del self._batchers[key]

    def is_flagged(self, round_id: int) -> bool:
        return round_id in self._flags


def _key(round_id: int, lane: int) -> int:
    """One number: it is made for every claim, and looking it up costs a tenth of what a pair would."""
    return round_id << _LANE_BITS | lane


def _round_of(key: int) -> int:
    return key >> _LANE_BITS
