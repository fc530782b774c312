"""A collector of traces, on loopback: it takes what OpenTelemetry sends, and decodes it."""

import gzip
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Collected:
    name: str
    trace_id: str
    span_id: str
    parent: str  # empty if it has none
    service: str
    facts: Mapping[str, str | int]
    failed: bool
    began_ns: int
    ended_ns: int


class Collector:
    def __init__(self) -> None:
        self.spans: list[Collected] = []
        self._changed = threading.Condition()
        self.status = 200
        self.answers = threading.Event()  # no request is answered until it is set
        self.answers.set()
        self.url = ""

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            for of_resource in request.resource_spans:
                service = str(_facts(of_resource.resource.attributes)["service.name"])
                for of_scope in of_resource.scope_spans:
                    for span in of_scope.spans:
                        self.spans.append(
                            Collected(
                                span.name,
                                span.trace_id.hex(),
                                span.span_id.hex(),
                                span.parent_span_id.hex(),
                                service,
                                _facts(span.attributes),
                                span.status.code == 2,
                                span.start_time_unix_nano,
                                span.end_time_unix_nano,
                            )
                        )
            self._changed.notify_all()

    def of(self, trace_id: str) -> dict[str, Collected]:
        return {span.name: span for span in self.spans if span.trace_id == trace_id}

    def wait_for(self, *names: str, trace_id: str | None = None) -> dict[str, Collected]:
        """All spans of the trace that has these, or of this one, as soon as they are there. For a thread."""
        with self._changed:
            found: dict[str, Collected] = {}

            def there() -> bool:
                for each in {span.trace_id for span in self.spans} if trace_id is None else {trace_id}:
                    if set(names) <= set(self.of(each)):
                        found.update(self.of(each))
                        return True
                return False

            assert self._changed.wait_for(there, PATIENCE_S), f"only {[span.name for span in self.spans]}"
            return found


def _facts(attributes: Sequence[KeyValue]) -> dict[str, str | int]:
    def value(of: AnyValue) -> str | int:
        return of.int_value if of.HasField("int_value") else of.string_value

    return {each.key: value(each.value) for each in attributes}


@contextmanager
def collecting(patch: pytest.MonkeyPatch, **variables: str) -> Iterator[Collector]:
    """Every process that is begun inside the block sends its spans here, at once."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.answers.wait(PATIENCE_S)
            if collector.status == 200:
                assert self.path == "/v1/traces"
                collector.take(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    said = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "20"}
    for name, value in (said | variables).items():
        patch.setenv(name, value)
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
