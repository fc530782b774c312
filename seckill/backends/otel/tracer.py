"""Spans, which OpenTelemetry's SDK makes and sends to a collector over HTTP in a separate thread.

The queue of spans is bounded (`OTEL_BSP_MAX_QUEUE_SIZE`), so a collector that is away or slow costs nothing but spans.
The SDK's global state is left alone, because the application around us may have an SDK of its own.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from seckill import __version__
from seckill.domain.trace import Trace, read_trace
from seckill.ports.tracer import Facts, TraceSpanKind
from seckill.telemetry import SPANS

log = structlog.get_logger()

# At the end of the process, spans that were not sent yet get this long.
LAST_WORDS_S = 3.0
_KINDS = {kind: trace.SpanKind[kind.name] for kind in TraceSpanKind}
_MADE, _EXPORTED, _FAILED = (SPANS.labels(fate) for fate in ("made", "exported", "failed"))


class OtelSpan:
    """Implements `seckill.ports.tracer.TraceSpan`."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        context = span.get_span_context()
        self.trace_id = trace.format_trace_id(context.trace_id)
        self.context = str(Trace(self.trace_id, trace.format_span_id(context.span_id)))

    def note(self, facts: Facts) -> None:
        self._span.set_attributes(facts)

    def fail(self, reason: str) -> None:
        self._span.set_status(trace.StatusCode.ERROR, reason)

    def end(self) -> None:
        self._span.end()
        _MADE.inc()


class OtelTracer:
    """Implements `seckill.ports.tracer.Tracer`."""

    def __init__(self, role: str) -> None:
        ours = {"service.name": f"seckill-{role}", "service.version": __version__, "seckill.role": role}
        said = OTELResourceDetector().detect().attributes  # from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
        resource = Resource.create({name: value for name, value in ours.items() if name not in said})
        # The decision what to trace was made before.
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(_Outgoing(OTLPSpanExporter())))
        self._tracer = self._provider.get_tracer("seckill", __version__)

    def begin(
        self,
        name: str,
        parent: str,
        facts: Facts,
        *,
        kind: TraceSpanKind = TraceSpanKind.INTERNAL,
        began_ms: int | None = None,
    ) -> OtelSpan:
        began_ns = None if began_ms is None else began_ms * 1_000_000
        span = self._tracer.start_span(name, _context(parent), _KINDS[kind], attributes=facts, start_time=began_ns)
        return OtelSpan(span)

    async def close(self) -> None:
        """Sends the spans that wait. A collector that is away does not hold up the process: spans that it has not
        received in time are lost."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the caller no longer waits
                loop.call_soon_threadsafe(done.set)

        # Not a thread of the event loop's, because the loop would wait for it.
        threading.Thread(target=shut_down, name="last spans", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await done.wait()


class _Outgoing(SpanExporter):
    """Counts the spans that are sent, and logs each outage once."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        (_FAILED if failed else _EXPORTED).inc(len(spans))
        if failed and not self._failing:
            log.warning("the collector of traces does not take spans; they are dropped until it does")
        elif self._failing and not failed:
            log.info("the collector of traces takes spans again")
        self._failing = failed
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _context(parent: str) -> Context:
    known = read_trace(parent.encode()) if parent else None
    if known is None:
        return Context()  # empty, so that the caller's context does not count
    remote = trace.SpanContext(
        trace_id=int(known.trace_id, 16),
        span_id=int(known.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(remote), Context())
