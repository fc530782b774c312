"""The tracer itself: what it sends, and what it does when no collector takes it."""

import asyncio
import io
import json
import threading

import pytest
from prometheus_client import REGISTRY

from seckill import logs
from seckill.backends.otel import tracer as tracer_module
from seckill.backends.otel.tracer import OtelTracer
from seckill.ports.tracer import TraceSpanKind
from tests.collector import collecting
from tests.patience import PATIENCE_S


def spans(fate: str) -> int:
    return int(REGISTRY.get_sample_value("seckill_spans_total", {"fate": fate}) or 0)


async def test_what_was_begun_before_the_end_is_sent_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(monkeypatch, OTEL_BSP_SCHEDULE_DELAY="3600000", OTEL_RESOURCE_ATTRIBUTES="a=b") as collector:
        exported = spans("exported")
        tracer = OtelTracer("api")
        one = tracer.begin("one", "", {"n": 1}, kind=TraceSpanKind.SERVER)
        two = tracer.begin("two", one.context, {}, began_ms=1_700_000_000_000)
        two.fail("why")
        two.end()
        one.end()
        assert not collector.spans
        await tracer.close()
    found = collector.of(one.trace_id)
    assert (found["one"].parent, found["two"].parent) == ("", found["one"].span_id)
    assert found["one"].facts == {"n": 1}
    assert (found["one"].failed, found["two"].failed) == (False, True)
    assert found["two"].began_ns == 1_700_000_000_000_000_000
    assert found["one"].service == "seckill-api"
    assert spans("exported") == exported + 2


async def test_a_parent_that_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(monkeypatch) as collector:
        tracer = OtelTracer("api")
        tracer.begin("one", "nonsense", {}).end()
        await tracer.close()
    assert [span.parent for span in collector.spans] == [""]


async def test_the_service_is_called_as_the_operator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(monkeypatch, OTEL_SERVICE_NAME="shop") as collector:
        tracer = OtelTracer("api")
        tracer.begin("one", "", {}).end()
        await tracer.close()
    assert [span.service for span in collector.spans] == ["shop"]


async def test_a_collector_that_is_silent_costs_spans_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans that wait are bounded, and the process does not wait for them at its end."""
    monkeypatch.setattr(tracer_module, "LAST_WORDS_S", 0.1)
    bounds = {"OTEL_BSP_MAX_QUEUE_SIZE": "16", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "16"}
    with collecting(monkeypatch, **bounds, OTEL_EXPORTER_OTLP_TIMEOUT=str(PATIENCE_S)) as collector:
        collector.answers.clear()
        before = set(threading.enumerate())
        tracer = OtelTracer("api")
        for _ in range(1000):
            tracer.begin("one", "", {}).end()
        closing = asyncio.create_task(tracer.close())
        await asyncio.wait({closing}, timeout=20)  # the SDK itself would wait for half a minute
        assert closing.done()
        [sending] = [each for each in set(threading.enumerate()) - before if "OtelBatch" in each.name]
        assert sending.is_alive()
        collector.answers.set()
        await asyncio.to_thread(sending.join, PATIENCE_S)
    # The batch that was on its way, and those that waited.
    assert 1 <= len(collector.spans) <= 32


async def test_an_outage_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    logs.setup("json", "debug", stream)
    monkeypatch.setattr(tracer_module, "LAST_WORDS_S", 0.1)
    with collecting(monkeypatch) as collector:
        collector.status = 400
        failed = spans("failed")
        tracer = OtelTracer("api")
        async with asyncio.timeout(PATIENCE_S):
            for tries in range(1, 4):
                tracer.begin("one", "", {}).end()
                while spans("failed") < failed + tries:
                    await asyncio.sleep(0.01)
            collector.status = 200
            tracer.begin("two", "", {}).end()
            await asyncio.to_thread(collector.wait_for, "two")
        await tracer.close()
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == [
        "the collector of traces does not take spans; they are dropped until it does",
        "the collector of traces takes spans again",
    ]
