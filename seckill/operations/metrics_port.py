"""Figures on a port of their own, for a Prometheus that has no key: every role can have one, also those without an API.

It differs from the API's port, so that a firewall can tell the two apart, and answers one request after the other in
its own thread: a client that asks all day long takes nothing from a sale.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from seckill.errors import StartError
from seckill.settings import Settings
from seckill.telemetry import MEDIA_TYPE, Exposition

READ_WITHIN_S = 2.0


class _Server(HTTPServer):
    allow_reuse_address = True

    def __init__(self, host: str, port: int, exposition: Exposition) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.exposition = exposition
        super().__init__((host, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = READ_WITHIN_S

    def do_GET(self) -> None:
        found = self.path.partition("?")[0] == "/metrics"
        body = self.server.exposition.now() if found else b"Figures are at /metrics.\n"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", MEDIA_TYPE if found else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "seckill"

    def log_message(self, *_: object) -> None:
        """A scrape is no event."""


@contextlib.contextmanager
def metrics_port(settings: Settings, folder: Path | None = None) -> Iterator[None]:
    """While it lasts, figures are served if a port is set. `folder`: of the processes that are shown, instead of this
    one and those that it shares a folder with."""
    if settings.metrics_port is None:
        yield
        return
    where = f"{settings.metrics_host}:{settings.metrics_port}"
    try:
        server = _Server(settings.metrics_host, settings.metrics_port, Exposition(folder))
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
