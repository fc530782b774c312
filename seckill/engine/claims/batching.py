"""Claims that arrive while a call to the gate is under way share the next call.

There is no timer: a claim that finds the gate idle goes at once, alone. Under load the calls fill up on their own, and
one script call (and one fsync behind it) serves hundreds of claims.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from seckill.domain.admission import Answer, Claim
from seckill.domain.outcome import Outcome
from seckill.errors import GateError, GateUnavailable
from seckill.ports.gate import GateReply
from seckill.telemetry import ADMIT_BATCH, ADMIT_SECONDS

log = structlog.get_logger()

# More in one call would hold up the gate, which does one thing at a time, for all others.
BATCH_MAX = 500
# More waiting than this means seconds of delay; it is kinder to refuse at once.
WAITING_MAX = 10_000

Call = Callable[[Sequence[Claim]], Awaitable[GateReply]]


class Waiter(Protocol):
    """What waits for an answer: a future, or something lighter that acts on it at once and never raises."""

    def done(self) -> bool:
        """True if the caller has given up: a claim that was not sent yet then never is."""

    def set_result(self, answer: Answer, /) -> None: ...


class Batcher:
    """The claims of one round on this node. Each caller gets the answer to its own claim, even if others give up."""

    def __init__(self, call: Call, *, batch_max: int = BATCH_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._call = call
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._waiting: deque[tuple[Claim, Waiter]] = deque()
        self._running: asyncio.Task[None] | None = None
        self._failing = False

    @property
    def idle(self) -> bool:
        return self._running is None

    def submit(self, claim: Claim, waiting: Waiter) -> None:
        """Each of a batch is answered in the same turn of the event loop."""
        if len(self._waiting) >= self._waiting_max:
            waiting.set_result(Answer(Outcome.OVERLOADED))
            return
        self._waiting.append((claim, waiting))
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while batch := self._next_batch():
                await self._serve(batch)
        finally:
            self._running = None
            self._answer_all(Answer(Outcome.NOT_READY))  # no caller may be left waiting, whatever happened

    def _next_batch(self) -> list[tuple[Claim, Waiter]]:
        batch: list[tuple[Claim, Waiter]] = []
        while self._waiting and len(batch) < self._batch_max:
            claim, waiting = self._waiting.popleft()
            if not waiting.done():  # the claim of a caller who gave up while waiting was never sent
                batch.append((claim, waiting))
        return batch

    async def _serve(self, batch: list[tuple[Claim, Waiter]]) -> None:
        ADMIT_BATCH.observe(len(batch))
        try:
            with ADMIT_SECONDS.time():
                answers = (await self._call([claim for claim, _ in batch])).answers
        except GateError as error:
            outcome = Outcome.NOT_READY if isinstance(error, GateUnavailable) else Outcome.UNKNOWN
            answers = [Answer(outcome)] * len(batch)
            if not self._failing:  # once for each outage, not once for each call
                log.warning("claims get no decision", claims=len(batch), outcome=outcome, reason=str(error))
            self._failing = True
            # Claims that still wait have waited as long as those that were sent. They were not sent, so this is
            # certain.
            self._answer_all(Answer(Outcome.NOT_READY))
        except Exception:
            answers = [Answer(Outcome.UNKNOWN)] * len(batch)
            log.exception("the gate's reply was not understood", claims=len(batch))
        else:
            self._failing = False
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)

    def _answer_all(self, answer: Answer) -> None:
        while self._waiting:
            _, waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(answer)
