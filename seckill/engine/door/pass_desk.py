"""Issues passes. A buyer first gets a challenge, unless the risk hook decides otherwise, and gets the pass after
meeting it.

The first request returns a challenge; a request that brings the right answer returns the pass. Nothing is stored in
between: the challenge is signed and comes back with the answer. So each step can go to any API node, and the hook is
asked once for each challenge.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import structlog

from seckill.domain.door import PassKind
from seckill.domain.pass_seal import PassSeal
from seckill.domain.proof_of_work import WorkChallenge, Works, WorkSolution, WorkVerdict
from seckill.domain.sale import Sale
from seckill.engine.door.work_difficulty import WorkDifficulty
from seckill.ports.door import Applicant, HumanCheck, RiskDecision, RiskHook, ServiceAway
from seckill.telemetry import PASSES

log = structlog.get_logger()

# How long a challenge may be answered. A phone needs seconds, and a distracted person a minute.
ANSWER_WITHIN_S = 600


@dataclass(frozen=True, slots=True)
class Issued:
    text: str
    ends_s: int


@dataclass(frozen=True, slots=True)
class CheckChallenge:
    """`ticket` comes back with the answer and proves that we gave this buyer the challenge."""

    ticket: str


class NoPass(Enum):
    """Why no pass is issued."""

    NOT_NEEDED = auto()
    TOO_EARLY = auto()
    OVER = auto()
    DENIED = auto()
    WRONG = auto()
    EXPIRED = auto()
    OTHERS = auto()
    AWAY = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResponse:
    response: str
    ticket: str


Answer = WorkSolution | CheckResponse
Given = Issued | WorkChallenge | CheckChallenge | NoPass

_REFUSED = {WorkVerdict.WRONG: NoPass.WRONG, WorkVerdict.EXPIRED: NoPass.EXPIRED, WorkVerdict.OTHERS: NoPass.OTHERS}


class PassDesk:
    def __init__(
        self,
        key: bytes,
        now_ms: Callable[[], int],
        *,
        lasts_s: int,
        check: HumanCheck | None,
        check_fallback: PassKind | None,
        risk: RiskHook | None,
        risk_fallback: RiskDecision,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`check_fallback` is demanded instead while the checking service is away; with None, no pass is issued then.
        `now_ms` is the gate's clock, which all nodes share."""
        self.seal = PassSeal(_derived(key, b"pass"))
        self._tickets = PassSeal(_derived(key, b"ticket"))
        self._works = Works(_derived(key, b"work"))
        self._now_ms = now_ms
        self._lasts_s = lasts_s
        self._check = check
        self._check_fallback = check_fallback
        self._risk = risk
        self._risk_fallback = risk_fallback
        self._monotonic = monotonic
        self._difficulty = WorkDifficulty()

    def opens_ms(self, sale: Sale, early_ms: int) -> int:
        """Returns the time from which on this round's passes are issued to a buyer who may buy that much earlier than
        others."""
        if sale.door.line.draws:
            return 0  # its line can be joined from the first moment on
        return sale.round.begins_ms - early_ms - 1000 * self._lasts_s

    async def ask(
        self, sale: Sale, early_ms: int, applicant: Applicant, counted_address: str, answer: Answer | None
    ) -> Given:
        given = await self._ask(sale, early_ms, applicant, counted_address, answer)
        PASSES.labels(given.name.lower() if isinstance(given, NoPass) else _NAMES[type(given)]).inc()
        return given

    async def _ask(
        self, sale: Sale, early_ms: int, applicant: Applicant, counted_address: str, answer: Answer | None
    ) -> Given:
        if sale.door.pass_kind is PassKind.NONE:
            return NoPass.NOT_NEEDED
        if self._now_ms() < self.opens_ms(sale, early_ms):
            return NoPass.TOO_EARLY
        if self._now_ms() >= sale.round.ends_ms:
            return NoPass.OVER
        if answer is None:
            return await self._first(sale, applicant, counted_address)
        now_s, user, round_id = self._now_ms() / 1000, applicant.buyer, sale.round.id
        if isinstance(answer, WorkSolution):
            verdict = self._works.judge(answer, round_id, user, now_s)
            return self._issue(sale, user) if verdict is WorkVerdict.RIGHT else _REFUSED[verdict]
        if not self._tickets.holds(answer.ticket.encode(), round_id, user, now_s):
            return NoPass.OTHERS
        return await self._checked(sale, applicant, counted_address, answer.response)

    async def _first(self, sale: Sale, applicant: Applicant, counted_address: str) -> Given:
        judgement = await self.judge(applicant)
        if judgement is RiskDecision.DENY:
            return NoPass.DENIED
        if judgement is RiskDecision.ALLOW:
            return self._issue(sale, applicant.buyer)
        if sale.door.pass_kind is PassKind.WORK or self._check is None:
            return self._pose(sale, applicant.buyer, counted_address)
        ends_s = self._now_ms() // 1000 + ANSWER_WITHIN_S
        return CheckChallenge(self._tickets.seal(sale.round.id, applicant.buyer, ends_s))

    @property
    def judges(self) -> bool:
        """Whether there is a risk hook to ask."""
        return self._risk is not None

    async def judge(self, applicant: Applicant) -> RiskDecision:
        """Returns the decision of the risk hook or, without one, what the sale demands."""
        if self._risk is None:
            return RiskDecision.CHALLENGE
        try:
            return await self._risk.judge(applicant)
        except ServiceAway as error:
            log.warning("the risk hook is away", instead=self._risk_fallback.value, reason=str(error))
            return self._risk_fallback

    async def _checked(self, sale: Sale, applicant: Applicant, counted_address: str, response: str) -> Given:
        try:
            passed = self._check is not None and await self._check.passed(response, applicant.address)
        except ServiceAway as error:
            log.warning("the captcha service is away", instead=self._check_fallback, reason=str(error))
            if self._check_fallback is None:
                return NoPass.AWAY
            if self._check_fallback is PassKind.WORK:
                return self._pose(sale, applicant.buyer, counted_address)
            passed = True
        return self._issue(sale, applicant.buyer) if passed else NoPass.WRONG

    def _pose(self, sale: Sale, user: str, counted_address: str) -> WorkChallenge:
        harder = self._difficulty.harder(counted_address, self._monotonic())
        ends_s = self._now_ms() // 1000 + ANSWER_WITHIN_S
        return self._works.pose(sale.round.id, user, int(sale.door.work * harder), ends_s)

    def _issue(self, sale: Sale, user: str) -> Issued:
        ends_s = self._now_ms() // 1000 + self._lasts_s
        return Issued(self.seal.seal(sale.round.id, user, ends_s), ends_s)


_NAMES = {Issued: "issued", WorkChallenge: "work", CheckChallenge: "check"}


def _derived(key: bytes, purpose: bytes) -> bytes:
    """A key of its own for each purpose, so that no signature is valid for another purpose."""
    return hashlib.blake2b(key=key, person=purpose, digest_size=32).digest()
