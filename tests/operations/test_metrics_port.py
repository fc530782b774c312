"""Figures on a port of their own."""

import http.client
import socket
from pathlib import Path

import pytest

from seckill.errors import StartError
from seckill.lab.servers.ports import free_port
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import Vitals
from seckill.settings import Settings


def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


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
