"""Claims that arrive while a call to the gate is under way share the next call.

There is no timer: a claim that finds the gate idle goes at once, alone. Under load the calls fill up by themselves, and
one script call (and one fsync behind it) serves hundreds of claims.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from seckill.domain import Answer, Claim
from seckill.errors import GateError, GateUnavailable
from seckill.outcomes import Outcome
from seckill.ports import GateReply
from seckill.telemetry import ADMIT_BATCH, ADMIT_SECONDS

log = structlog.get_logger()

# More in one call would hold up the gate, which does one thing at a time, for everybody else.
BATCH_MAX = 500
# More waiting than this means seconds of delay; it is kinder to refuse at once.
WAITING_MAX = 10_000

Call = Callable[[Sequence[Claim]], Awaitable[GateReply]]


class Waiting(Protocol):
    """Who waits for an answer: a future, or something lighter that acts on it at once and never raises."""

    def done(self) -> bool:
        """True for one who has given up."""

    def set_result(self, answer: Answer, /) -> None: ...


class Batcher:
    """The claims of one round on this node. Each caller gets the answer to its own claim, whoever else gives up."""

    def __init__(self, call: Call, *, batch_max: int = BATCH_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._call = call
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._waiting: deque[tuple[Claim, Waiting]] = deque()
        self._running: asyncio.Task[None] | None = None
        self._failing = False

    @property
    def idle(self) -> bool:
        return self._running is None

    def submit(self, claim: Claim) -> asyncio.Future[Answer]:
        """The answer to come. To cancel it is to give up: a claim that was not sent yet then never is."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.submit_for(answer, claim)
        return answer

    def submit_for(self, waiting: Waiting, claim: Claim) -> None:
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
            self._answer_all(Answer(Outcome.NOT_READY))  # nobody may be left waiting, whatever happened

    def _next_batch(self) -> list[tuple[Claim, Waiting]]:
        batch: list[tuple[Claim, Waiting]] = []
        while self._waiting and len(batch) < self._batch_max:
            claim, waiting = self._waiting.popleft()
            if not waiting.done():  # whoever gave up while waiting was never sent
                batch.append((claim, waiting))
        return batch

    async def _serve(self, batch: list[tuple[Claim, Waiting]]) -> None:
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
            # Those who wait have waited as long as those who were sent. Nothing of theirs was, so this is certain.
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
