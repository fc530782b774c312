"""The admission desk where traces are on. It records how long the gate took and passes the trace on to the order.
Claims that are not traced go straight through."""

import time
from contextvars import ContextVar
from typing import Any

from msgspec import structs

from seckill.domain.admission import Answer, Claim
from seckill.domain.sale import Sale
from seckill.engine.claims.admission_desk import AdmissionDesk
from seckill.ports.tracer import Tracer, TraceSpan, TraceSpanKind

# The press that the current task answers, if it is traced.
PRESS: ContextVar[TraceSpan | None] = ContextVar("press", default=None)


class TracedDesk(AdmissionDesk):
    def __init__(self, tracer: Tracer, *parts: Any) -> None:
        super().__init__(*parts)
        self._tracer = tracer

    async def claim(self, sale: Sale, claim: Claim) -> tuple[Sale, Answer]:
        press = PRESS.get()
        if press is None:
            return await super().claim(sale, claim)
        facts = {"seckill.round": sale.round.id, "seckill.quantity": claim.quantity}
        span = self._tracer.begin("gate", press.context, facts, kind=TraceSpanKind.CLIENT)
        began_s = time.monotonic()
        try:
            decided, answer = await super().claim(sale, structs.replace(claim, trace=span.context))
        except BaseException as error:  # a client that hangs up cancels it
            span.fail(type(error).__name__)
            raise
        else:
            span.note({"seckill.outcome": answer.outcome.value})
            self.figures.exemplify(answer.outcome, time.monotonic() - began_s, press.trace_id)
            return decided, answer
        finally:
            span.end()
