"""Decides whether this role is traced: OpenTelemetry's variables must ask for it and the extra must be installed."""

from contextlib import AsyncExitStack

import structlog

from seckill.errors import StartError
from seckill.extras import explained
from seckill.ports.tracer import Tracer
from seckill.settings.otel import Tracing
from seckill.settings.redaction import redact_url

log = structlog.get_logger()


def open_tracer(role: str | None, stack: AsyncExitStack) -> Tracer | None:
    """None: nothing is traced."""
    tracing = Tracing.from_environment()
    if role is None or not tracing.on:
        return None
    for problem in tracing.problems:
        log.warning("not all about tracing is as it was asked for", reason=problem)
    try:
        with explained():
            from seckill.backends.otel.tracer import OtelTracer  # noqa: PLC0415 (most do without)
    except StartError as error:
        # The variables may be meant for other programs, and no sale should fail to begin because of them.
        log.warning("nothing is traced", reason=str(error))
        return None
    tracer = OtelTracer(role)
    stack.push_async_callback(tracer.close)
    log.info("claims are traced", to=redact_url(tracing.endpoint), share=tracing.ratio)
    return tracer
