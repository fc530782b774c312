"""Examines whether claims are traced, where traces are sent, and whether the receiver answers."""

import asyncio
import importlib.util
from urllib.parse import urlsplit

from seckill.operations.doctor.examination import Health
from seckill.settings import Settings
from seckill.settings.otel import Tracing
from seckill.settings.redaction import redact_url

WITHIN_S = 3.0
_PORTS = {"http": 80, "https": 443}


async def examine_tracing(settings: Settings, tracing: Tracing) -> Health:
    """Never finds anything to mend: a sale works without traces."""
    if not tracing.on:
        return Health("off; OTEL_EXPORTER_OTLP_ENDPOINT says which collector to send traces to")
    if importlib.util.find_spec("opentelemetry") is None or importlib.util.find_spec("opentelemetry.exporter") is None:
        return Health("off", advice=['Tracing needs more packages: run `pip install "seckill[otel]"`.'])
    where = redact_url(tracing.endpoint)
    at_most = f"{settings.traces_per_second} a second at most in each API process"
    health = Health(f"{tracing.ratio:.3%} of all claims, {at_most}, to {where}", advice=list(tracing.problems))
    if not await _answers(tracing.endpoint):
        health.advice.append(
            f"Nothing answers at {where}: until something does, spans are dropped, and nothing else happens."
        )
    return health


async def _answers(url: str) -> bool:
    try:
        parts = urlsplit(url)
        async with asyncio.timeout(WITHIN_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _PORTS.get(parts.scheme))
        writer.close()
    except (OSError, ValueError, TimeoutError):
        return False
    return True
