"""Traces a webhook about a traced order: how long its event waited, how long the shop took, and the `traceparent` with
which the shop can go on."""

from collections.abc import Sequence

import structlog

from seckill.domain.trace import HEADER
from seckill.domain.webhook_target import Target
from seckill.engine.webhooks.message import WebhookMessage
from seckill.ports.tracer import Tracer, TraceSpanKind
from seckill.ports.webhook import Sent, WebhookSender


async def send_traced(
    tracer: Tracer, sender: WebhookSender, target: Target, headers: Sequence[tuple[str, str]], message: WebhookMessage
) -> Sent:
    """Sends the webhook. Every try is a span of its own."""
    event = tracer.begin(f"event {message.type}", message.trace, {"seckill.event": message.id}, began_ms=message.at_ms)
    event.end()
    facts: dict[str, str | int] = {"http.request.method": "POST", "server.address": target.host}
    span = tracer.begin("webhook", event.context, facts, kind=TraceSpanKind.CLIENT)
    try:
        with structlog.contextvars.bound_contextvars(trace_id=span.trace_id):
            sent = await sender.send(target, (*headers, (HEADER, span.context)), message.body)
    except BaseException as error:
        span.fail(type(error).__name__)
        raise
    else:
        if sent.status is not None:
            span.note({"http.response.status_code": sent.status})
        if not sent.is_ok:
            span.fail(f"status {sent.status}" if sent.trouble is None else sent.trouble.value)
        return sent
    finally:
        span.end()
