"""Metrics and health on a port of their own, for Prometheus and for probes that have no key. Every role can have one,
even those without an API.

It is a separate port, so that a firewall can tell it from the API. It answers one request after another in a thread of
its own, so a client that asks all day takes nothing from a sale.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Protocol

from seckill.errors import StartError
from seckill.settings import Settings
from seckill.telemetry import Exposition, media_type

READ_WITHIN_S = 2.0


class HealthAnswer(Protocol):
    @property
    def good(self) -> bool: ...
    def body(self) -> bytes: ...


class Asked(Protocol):
    """Knows whether a role is well: either the role's own process, or the one that has started several roles."""

    def health(self) -> HealthAnswer: ...
    def readiness(self) -> HealthAnswer: ...


class _Server(HTTPServer):
    allow_reuse_address = True

    def __init__(self, host: str, port: int, exposition: Exposition, vitals: Asked) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.exposition = exposition
        self.vitals = vitals
        super().__init__((host, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = READ_WITHIN_S

    def do_GET(self) -> None:
        status, kind, body = self._answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        vitals = self.server.vitals
        if path == "/metrics":
            kind = media_type(self.headers.get("Accept", ""))
            return 200, kind, self.server.exposition.now(kind)
        if path in ("/healthz", "/readyz"):
            report = vitals.health() if path == "/healthz" else vitals.readiness()
            return 200 if report.good else 503, "application/json", report.body()
        return 404, "text/plain; charset=utf-8", b"Figures are at /metrics, a role's health at /healthz and /readyz.\n"

    def version_string(self) -> str:
        return "seckill"

    def log_message(self, *_: object) -> None:
        """Does not log scrapes."""


@contextlib.contextmanager
def metrics_port(settings: Settings, vitals: Asked) -> Iterator[None]:
    """Serves metrics as long as the block lasts, if a port is set. `vitals`: those of this process's role, or of the
    roles that it has started."""
    if settings.metrics_port is None:
        yield
        return
    where = f"{settings.metrics_host}:{settings.metrics_port}"
    try:
        server = _Server(settings.metrics_host, settings.metrics_port, Exposition(), vitals)
    except OSError as error:
        remedy = "choose another SECKILL_METRICS_PORT, each role on a machine needs its own"
        raise StartError(f"Cannot serve metrics on {where} ({error.strerror}): {remedy}.") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
