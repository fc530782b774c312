"""Claims that arrive while a call to the gate is under way share the next call: see `engine/batches.py`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from seckill.domain.admission import Answer, Claim
from seckill.domain.outcome import Outcome
from seckill.engine.batches import Batches, Waiter
from seckill.engine.claims.writing_pace import LanePace, call_max, waiting_max
from seckill.errors import GateError, GateUnavailable
from seckill.ports.gate import GateReply
from seckill.telemetry import ADMIT_BATCH, ADMIT_SECONDS

log = structlog.get_logger()

# A larger call would hold up the gate for all others, because it does one thing at a time.
BATCH_MAX = 500
# If more claims wait, the delay is seconds; it is kinder to refuse at once.
WAITING_MAX = 10_000

Call = Callable[[Sequence[Claim]], Awaitable[GateReply]]
_Batch = list[tuple[Claim, Waiter[Answer]]]


def tell_nobody(_: Sequence[Answer]) -> None:
    pass


def do_nothing() -> None:
    pass


class Batcher(Batches[Claim, Answer]):
    """Batches the claims of one round on this node. `pace`: the pace of its lane, which other rounds may share.
    `before_answers` is called with the answers to a batch before each waiting caller gets its own, and `after_answers`
    when all have got theirs. They can do work that costs less for all of them at once."""

    def __init__(
        self,
        call: Call,
        pace: LanePace,
        before_answers: Callable[[Sequence[Answer]], None] = tell_nobody,
        after_answers: Callable[[], None] = do_nothing,
        *,
        batch_max: int = BATCH_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        super().__init__(batch_max=batch_max, waiting_max=waiting_max)
        self._call = call
        self._pace = pace
        self._before_answers = before_answers
        self._after_answers = after_answers
        self._most = batch_max, waiting_max
        self._failing = False

    def _too_many(self) -> Answer:
        return Answer(Outcome.OVERLOADED)

    def _not_asked(self) -> Answer:
        return Answer(Outcome.NOT_READY)

    async def _serve(self, batch: _Batch) -> None:
        """Lets the gate work on the next batch while the callers of this one are told."""
        answers = await self._ask(batch)
        while following := self._next_at_once():
            call = asyncio.create_task(self._ask(following))
            # The event loop starts the call in its next turn, and sends what was written at the end of that turn.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self._tell(batch, answers)
            self._pace.passed += len(batch)
            batch, answers = following, await call
        self._tell(batch, answers)
        rate = self._pace.rate
        if rate is None:
            self._pace.passed += len(batch)
        else:
            await self._keep_pace(rate, answers)

    def _next_at_once(self) -> _Batch:
        """Returns nothing if no claim waits, or if there is a pace to keep."""
        if self._pace.rate is not None:
            return []
        self._batch_max, self._waiting_max = self._most
        return self._next_batch()

    async def _ask(self, batch: _Batch) -> list[Answer]:
        ADMIT_BATCH.observe(len(batch))
        try:
            with ADMIT_SECONDS.time():
                answers = list((await self._call([claim for claim, _ in batch])).answers)
        except GateError as error:
            outcome = Outcome.NOT_READY if isinstance(error, GateUnavailable) else Outcome.UNKNOWN
            answers = [Answer(outcome)] * len(batch)
            if not self._failing:  # logged once for each outage, not for each call
                log.warning("claims get no decision", claims=len(batch), outcome=outcome, reason=str(error))
            self._failing = True
            # Claims that still wait have waited as long as those that were sent. They were not sent, so this is
            # certain.
            self._answer_all(self._not_asked())
        except Exception:
            answers = [Answer(Outcome.UNKNOWN)] * len(batch)
            log.exception("the gate's reply was not understood", claims=len(batch))
        else:
            self._failing = False
        return answers

    def _tell(self, batch: _Batch, answers: list[Answer]) -> None:
        try:
            self._before_answers(answers)
        except Exception:  # all of them, and those of the call under way, still wait for their answers
            log.exception("answers could not be prepared", claims=len(batch))
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)
        try:
            self._after_answers()
        except Exception:  # those of the call under way still wait for their answers
            log.exception("answers could not be sent together", claims=len(batch))

    async def _keep_pace(self, rate: float, answers: Sequence[Answer]) -> None:
        batch_most, waiting_most = self._most
        self._batch_max, self._waiting_max = call_max(rate, batch_most), waiting_max(rate, waiting_most)
        await asyncio.sleep(self._pace.after(sum(answer.outcome is Outcome.ADMITTED for answer in answers)))
