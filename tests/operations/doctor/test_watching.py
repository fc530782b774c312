"""The doctor says where figures are, whether something answers there, and what would go unnoticed."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

from seckill.lab.servers.ports import free_port
from seckill.operations.doctor.watching import examine_watching
from seckill.operations.metrics_port import metrics_port
from seckill.operations.role_health import HUNG_AFTER_S, Vitals
from seckill.settings import Settings


class NotThere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def somebody_else(port: int) -> Iterator[None]:
    with HTTPServer(("127.0.0.1", port), NotThere) as server:
        threading.Thread(target=server.serve_forever).start()
        yield
        server.shutdown()


async def test_what_nobody_would_notice_is_advice_only_where_it_counts() -> None:
    health = await examine_watching(Settings(), for_good=True)
    assert [sentence.split()[1] for sentence in health.advice] == ["SECKILL_METRICS_PORT", "SECKILL_ALARM_URL"]
    assert (await examine_watching(Settings(), for_good=False)).advice == []


async def test_the_doctor_asks_the_role_that_runs_here() -> None:
    port, now_s = free_port(), 0.0
    settings = Settings(metrics_port=port, metrics_host="0.0.0.0", alarm_url="http://127.0.0.1/x")
    assert "nothing answers" in (await examine_watching(settings, for_good=True)).says
    with metrics_port(settings, Vitals("worker", monotonic=lambda: now_s)):
        health = await examine_watching(settings, for_good=True)
        assert (health.says, health.advice) == (f"figures at http://127.0.0.1:{port}/metrics, where a role is well", [])
        now_s = HUNG_AFTER_S + 1
        assert "not well (503)" in (await examine_watching(settings, for_good=True)).says
    with somebody_else(port):
        assert "something else answers" in (await examine_watching(settings, for_good=True)).says
