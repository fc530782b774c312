"""Figures on a port of their own."""

import contextlib
import http.client
import socket
import threading
import time
from pathlib import Path

import pytest

from seckill.errors import StartError
from seckill.lab.servers.ports import free_port
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals
from seckill.settings import Settings
from tests.patience import PATIENCE_S


def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_figures_and_nothing_else_are_served_while_it_lasts() -> None:
    port = free_port()
    with metrics_port(Settings(metrics_port=port), Vitals("api")):
        status, text = get(port, "/metrics")
        assert (status, "seckill_claims" in text) == (200, True)
        assert get(port, "/metrics?x=1")[0] == 200
        assert get(port, "/v1/sales")[0] == 404
        assert get(port, "/metrics", "POST")[0] == 501
    with pytest.raises(ConnectionRefusedError):
        get(port, "/metrics")


def test_a_silent_client_holds_up_no_other_for_long() -> None:
    port = free_port()
    with metrics_port(Settings(metrics_port=port), Vitals("api")), socket.create_connection(("127.0.0.1", port)):
        assert get(port, "/metrics")[0] == 200


class Slow(threading.Thread):
    """A client that sends its request byte by byte, and is never done."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.begun, self.enough = threading.Event(), threading.Event()

    def run(self) -> None:
        self.connection.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        self.begun.set()
        with contextlib.suppress(OSError):
            while not self.enough.wait(0.2):
                self.connection.sendall(b"x")

    def is_cut_off(self) -> bool:
        with contextlib.suppress(ConnectionResetError):
            return self.connection.recv(1000) == b""
        return True

    def end(self) -> None:
        self.enough.set()
        self.join()
        self.connection.close()


def test_a_slow_client_holds_up_no_probe_and_is_cut_off() -> None:
    """One byte at a time is no silence. A role whose probe gets no answer is killed."""
    port = free_port()
    with metrics_port(Settings(metrics_port=port), Vitals("api")):
        slow = Slow(port)
        slow.start()
        slow.begun.wait()
        try:
            # 30 s of patience, and it sends a byte five times a second
            assert get(port, "/healthz")[0] in (200, 503)
            assert slow.is_cut_off()
        finally:
            slow.end()


def test_clients_beyond_the_places_are_turned_away_and_the_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seckill.operations.metrics_port.READ_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr("seckill.operations.metrics_port.CLIENTS_MAX", 3)
    port = free_port()
    with metrics_port(Settings(metrics_port=port), Vitals("api")), contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert get(port, "/metrics")[0] == 200
        turned_away = pytest.raises((ConnectionError, http.client.HTTPException))
        with socket.create_connection(("127.0.0.1", port)), turned_away:
            get(port, "/metrics")
        until_answered(port)


def test_a_client_that_gets_no_thread_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may give no threads for a while. Its probes are answered as soon as there are some again."""
    monkeypatch.setattr("seckill.operations.metrics_port.CLIENTS_MAX", 2)
    port = free_port()
    with metrics_port(Settings(metrics_port=port), Vitals("api")):
        with monkeypatch.context() as scarce:
            scarce.setattr(threading.Thread, "start", no_thread)
            for _ in range(3):
                with pytest.raises((ConnectionError, http.client.HTTPException)):
                    get(port, "/metrics")
        until_answered(port)


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def until_answered(port: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            if get(port, "/metrics")[0] == 200:
                return
        time.sleep(0.05)
    raise AssertionError("the place that was given back is not there")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\n\r\n", None),
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 501),
        (b"<script> HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/7.1\r\n\r\n", 505),
        (b"GET /" + b"x" * 70_000, 414),
        (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n", 431),
    ],
)
def test_what_every_answer_says_about_itself(request_: bytes, status: int | None) -> None:
    port = free_port()
    with (
        metrics_port(Settings(metrics_port=port), Vitals("api")),
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert status in (answer.status, None)
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "html" not in answer.headers["Content-Type"]
        assert b"<" not in answer.read() or status == 200


def test_without_a_port_there_is_none_and_one_that_is_taken_is_said() -> None:
    with metrics_port(Settings(), Vitals("api")):
        pass
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        settings = Settings(metrics_port=taken)
        with (
            pytest.raises(StartError, match="choose another SECKILL_METRICS_PORT"),
            metrics_port(settings, Vitals("api")),
        ):
            pass


def test_the_figures_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    with metrics_port(Settings(metrics_port=port), Vitals("api")):
        status, text = get(port, "/metrics")
        named = {line.split()[0] for line in text.splitlines() if not line.startswith("#")}
        assert (status, named) == (200, {"seckill_sales_on", "seckill_sales_shown"}), "nothing has been counted there"
