"""Metrics and health on a port of their own, for Prometheus and for probes that have no key. Every role can have one,
even those without an API.

It is a separate port, so that a firewall can tell it from the API. It answers one request after another, beside the
role's own thread, so a client that asks all day takes nothing from a sale. It reads several requests at once: otherwise
one slow client would keep all others waiting, among them the probes that decide whether a role is killed.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any, Protocol

from seckill.errors import StartError
from seckill.settings import Settings
from seckill.telemetry import Exposition, media_type

# How long a whole request may take to arrive. A client that takes longer is cut off.
READ_WITHIN_S = 2.0
# More clients than this are turned away until others have gone.
CLIENTS_MAX = 32

_TEXT = "text/plain; charset=utf-8"


class HealthAnswer(Protocol):
    @property
    def good(self) -> bool: ...
    def body(self) -> bytes: ...


class Asked(Protocol):
    """Knows whether a role is well: either the role's own process, or the one that has started several roles."""

    def health(self) -> HealthAnswer: ...
    def readiness(self) -> HealthAnswer: ...


class _Server(ThreadingMixIn, HTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = CLIENTS_MAX

    def __init__(self, host: str, port: int, exposition: Exposition, vitals: Asked) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.exposition = exposition
        self.vitals = vitals
        self.turn = threading.Lock()  # held while a request is answered
        self._places = threading.BoundedSemaphore(CLIENTS_MAX)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # the system gives no thread now
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = READ_WITHIN_S

    def handle(self) -> None:
        # The timeout above begins anew with every byte, so it alone would let a client send for ever.
        self._reading = threading.Timer(READ_WITHIN_S, self._cut)
        self._reading.daemon = True
        self._reading.start()
        try:
            super().handle()
        finally:
            self._reading.cancel()

    def _cut(self) -> None:
        with contextlib.suppress(OSError):  # it is gone already
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        self._reading.cancel()
        with self.server.turn:
            status, kind, body = self._answer(self.path.partition("?")[0])
        self._send(status, kind, body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """For requests that are not GET, or are none at all."""
        self.close_connection = True
        self.request_version = self.protocol_version  # otherwise what is no HTTP is answered without headers
        self._send(code, _TEXT, f"{HTTPStatus(code).phrase}.\n".encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
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
        return 404, _TEXT, b"Figures are at /metrics, a role's health at /healthz and /readyz.\n"

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
