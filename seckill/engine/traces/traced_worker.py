"""The worker where traces are on. It records how long an order waited in its stream, how long the worker had it, and
how long writing took. The ledger stores the span, so that later steps can be attached to it. Otherwise it works like
any worker."""

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from msgspec import structs

from seckill.domain.admission import Admission
from seckill.engine.orders.worker import RecordResult, Worker
from seckill.loops import Stop
from seckill.ports.broker import Courier
from seckill.ports.ledger import Recorded, WorkerLedger
from seckill.ports.tracer import Tracer, TraceSpan, TraceSpanKind
from seckill.ports.transport import Delivery, WorkerTransport

T = TypeVar("T")


class TracedWorker(Worker):
    def __init__(
        self, tracer: Tracer, transport: WorkerTransport, ledger: WorkerLedger, stop: Stop, **settings: Any
    ) -> None:
        super().__init__(transport, TracedRecording(tracer, ledger), stop, **settings)
        self._tracer = tracer

    async def record(self, deliveries: Sequence[Delivery]) -> RecordResult:
        spans: list[TraceSpan] = []
        batch = [self._begun(each, spans, len(deliveries)) for each in deliveries]
        return await _told(spans, super().record(batch))

    def _begun(self, delivery: Delivery, spans: list[TraceSpan], orders: int) -> Delivery:
        admission = delivery.admission
        if admission is None or not admission.trace:
            return delivery
        lane = {"seckill.lane": delivery.lane}
        # The wait began at the gate, so its start is by the gate's clock.
        waited = self._tracer.begin("stream", admission.trace, lane, began_ms=admission.admitted_ms)
        waited.end()
        facts = lane | {"seckill.batch_orders": orders}
        spans.append(self._tracer.begin("worker", waited.context, facts, kind=TraceSpanKind.CONSUMER))
        return structs.replace(delivery, admission=structs.replace(admission, trace=spans[-1].context))


class TracedRecording:
    """The worker's ledger. An order is written with the span of its writing, which events and webhooks then follow."""

    def __init__(self, tracer: Tracer, ledger: WorkerLedger) -> None:
        self._tracer = tracer
        self._record = ledger.record
        self.set_aside = ledger.set_aside
        self.lanes_in_use = ledger.lanes_in_use
        self.order = ledger.order
        self.sale = ledger.sale

    async def record(self, admissions: Sequence[Admission]) -> Recorded:
        spans: list[TraceSpan] = []
        batch = [self._begun(each, spans, len(admissions)) for each in admissions]
        return await _told(spans, self._record(batch))

    def _begun(self, admission: Admission, spans: list[TraceSpan], orders: int) -> Admission:
        if not admission.trace:
            return admission
        facts = {"seckill.batch_orders": orders}
        spans.append(self._tracer.begin("ledger", admission.trace, facts, kind=TraceSpanKind.CLIENT))
        return structs.replace(admission, trace=spans[-1].context)


class TracedCourier:
    """The relay's broker."""

    def __init__(self, tracer: Tracer, courier: Courier) -> None:
        self._tracer = tracer
        self._post = courier.post
        self.waiting = courier.waiting

    async def post(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """The posting is not a link in the order's own trace: a broker that loses its messages gets them again from the
        stream."""
        traced = [each for each in deliveries if each.admission is not None and each.admission.trace]
        spans = [self._begun(each) for each in traced]
        return await _told(spans, self._post(deliveries))

    def _begun(self, delivery: Delivery) -> TraceSpan:
        assert delivery.admission is not None
        facts: dict[str, str | int] = {"messaging.system": "rabbitmq", "seckill.lane": delivery.lane}
        return self._tracer.begin("relay", delivery.admission.trace, facts, kind=TraceSpanKind.PRODUCER)


async def _told(spans: Sequence[TraceSpan], step: Awaitable[T]) -> T:
    try:
        return await step
    except BaseException as error:
        for span in spans:
            span.fail(type(error).__name__)
        raise
    finally:
        for span in spans:
            span.end()
