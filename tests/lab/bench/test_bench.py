"""The benchmark measures what it says. How fast anything is, is not asserted anywhere."""

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from seckill.cli.commands.bench import bench
from seckill.domain.sale import Confirm
from seckill.errors import StartError
from seckill.lab.bench import claim_lines, gateway, measures, runner
from seckill.lab.bench import load as loading
from seckill.lab.bench.claim_lines import write_lines
from seckill.lab.bench.generator import Pressers
from seckill.lab.bench.goals import GOALS, LIMITS, judged
from seckill.lab.bench.load import Load, load
from seckill.lab.bench.measures import Accepted, Joined, Offered
from seckill.lab.bench.native_http import native_http
from seckill.lab.bench.place import service
from seckill.lab.bench.report import report, verdict
from seckill.lab.bench.runner import BenchPlan, ratios, run
from seckill.lab.bench.startup import Startup, startup
from seckill.lab.bench.tokens import Tokens
from seckill.lab.servers.mariadb import EmbeddedMariaDB
from seckill.settings import Secret, Settings
from seckill.web.buyers.buyer_tokens import Buyers

OF_WRK = """Running 3s test @ http://127.0.0.1:42551
  1 threads and 128 connections
  Latency Distribution
     50%   13.08ms
     75%   40.00ms
     90%    0.90s
     99%    1.25s{blank}
  28511 requests in 3.02s, 6.53MB read
  Non-2xx or 3xx responses: 11
Requests/sec:   9440.73
""".replace("{blank}", " ").encode()  # wrk fills up short units


def test_what_wrk_says_is_understood() -> None:
    assert loading._of_wrk(OF_WRK) == Load(answers=28511, refusals=11, took_s=3.02, p50_ms=13.08, p99_ms=1250.0)


async def test_a_generator_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "ENDS_WITHIN_S", 0.2)
    with pytest.raises(StartError, match="sleep should have ended after 0 s and did not"):
        await loading._output(["sleep", "3600"], {"PATH": os.environ["PATH"]}, 0)


def test_our_tokens_are_as_good_as_the_librarys() -> None:
    secret = Secret("s" * 32)
    buyers = Buyers(Settings(jwt_secret=secret))
    assert buyers.verify(Tokens(secret).of("buyer-7"), time.time()).user == "buyer-7"


@pytest.fixture(params=["wrk", "ours"])
def generator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of making load; without wrk on the machine, only ours."""
    if request.param == "ours":
        monkeypatch.setattr(loading, "has_wrk", lambda: False)
    elif not loading.has_wrk():
        pytest.skip("wrk is not installed; the benchmark then uses its own generator, which is tested here as well")
    return str(request.param)


LINES = 6 * loading.CONNECTIONS  # so that many are answered before the claims run out


async def test_each_line_is_sent_once(generator: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"/somewhere token{number}\n" for number in range(LINES)))
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(2)
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            heard.append(head)
            writer.write(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        # Enough even on a busy machine. Our generator ends when the claims run out, while wrk waits.
        with capture_logs() as told:
            seen = await load(f"http://127.0.0.1:{port}", lines, seconds=8 if generator == "wrk" else 60)
    assert [each["event"] for each in told] == ["the generator ran out of claims: more would have been answered"]
    tokens = [re.search(rb"Bearer (\w+)", head)[1] for head in heard]  # type: ignore[index]
    assert all(head.startswith(b"POST /somewhere HTTP/1.1\r\n") for head in heard)
    # wrk asks for one before it begins and throws it away; told to stop, it repeats the last one on some connections.
    first = 1 if generator == "wrk" else 0
    assert set(tokens) == {f"token{number}".encode() for number in range(first, LINES)}
    repeated = {sent for sent, times in Counter(tokens).items() if times > 1}
    assert repeated <= ({f"token{LINES - 1}".encode()} if generator == "wrk" else set())
    assert 0 < seen.answers <= len(heard)
    assert seen.refusals == seen.answers


async def test_the_ceiling_only_answers(generator: str, tmp_path: Path) -> None:
    async with service("ceiling") as address:
        lines = tmp_path / "lines"
        lines.write_text("/v1/sales/x/orders token\n")
        with capture_logs() as told:
            seen = await load(address, lines, seconds=1, cycle=True)
    assert not told, "they begin again and again"
    assert seen.answers > 1
    assert seen.refusals == 0


async def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    """The run has fewer buyers and a smaller million."""
    monkeypatch.setattr(claim_lines, "CLAIMS_PER_S_MAX", 1000)
    monkeypatch.setattr(loading, "has_wrk", lambda: False)  # ours waits for the answers on a busy machine, too
    monkeypatch.setattr(measures, "MILLION", 2500)
    accepted, refused = await measures.accept_and_refuse(4, "")
    assert accepted.accept > 0
    assert accepted.persist > 0
    assert accepted.mean_batch >= 1
    assert refused.answers == refused.refusals > 0
    assert accepted.cpu_us["ledger"] == 0, "a file is written by the worker"
    assert min(accepted.cpu_us[part] for part in ("api", "worker", "gate")) > 0
    joined = await measures.joined(2, "")
    assert joined.join > 0
    assert min(joined.cpu_us["api"], joined.cpu_us["all"]) > 0
    plain_port, plain_persist = await measures.plain(4, "")
    assert plain_port > 0
    assert plain_persist > 0
    assert await measures.gate_ceiling(1, "") > 0
    for loads in (await measures.confirm(3, 1, "")).values():
        assert loads[0].answers > loads[0].refusals
    monkeypatch.setattr(measures, "OFFERED", (0.5, 4))
    long, overload = await measures.sustained(2, postgres_url, 1)
    assert long.cpu_us["ledger"] > 0, "a server of its own"
    assert [each.offered for each in overload] == [times * long.accept for times in measures.OFFERED]
    assert all(0 < each.accepted <= 1.5 * each.offered for each in overload)
    ((before, after),), _ = await measures.accept_at_1m(3, 1, postgres_url)
    assert before > 0
    assert after > 0


COSTS = {"api": 20.0, "worker": 10.0, "keeper": 1.0, "gate": 9.0, "ledger": 0.0, "all": 40.0}
LONG = Accepted(
    accept=500,
    persist=500,
    drain_s=0.1,
    p50_ms=1,
    p99_ms=2,
    mean_batch=9,
    cpu_us=COSTS,
    api_bytes_before=1,
    api_bytes=1,
)
REFUSED = Load(answers=9000, refusals=9000, took_s=10, p50_ms=2, p99_ms=5)
ROUND: dict[str, float | None] = {
    "http_ceiling": 1000.0,
    "native_http": 800.0,
    "gate_ceiling": 700.0,
    "plain_port": 25.0,
    "plain_persist": 5.0,
    "gateway": 250.0,
    "accept": 500.0,
    "refuse": 900.0,
    "p50_ms": 1.0,
    "p99_ms": 2.0,
    "refuse_p50_ms": 2.0,
    "refuse_p99_ms": 5.0,
    "mean_batch": 9.0,
    "join": 300.0,
    "join_p50_ms": 3.0,
    "join_p99_ms": 6.0,
    "join_cpu_us": 60.0,
}
OFFERS = [Offered(offered=n * 500, accepted=500, persisted=400, backlog=n * 100, p99_ms=n) for n in (1, 4)]
FIELDS = [
    *ROUND,
    *("persist", "drain_s", "accept_at_1m", "confirm", "cpu_us", "overload", "start_s", "memory_mb"),
]


async def measured(monkeypatch: pytest.MonkeyPatch, *, million: bool = True, installed: bool = True) -> dict[str, Any]:
    """The document of a run with made-up measurements."""

    def gives(value: object) -> Callable[..., Awaitable[object]]:
        async def measure(*_: object) -> object:
            return value

        return measure

    monkeypatch.setattr(measures, "http_ceiling", gives(1000.0))
    monkeypatch.setattr(measures, "gate_ceiling", gives(700.0))
    monkeypatch.setattr(measures, "plain", gives((25.0, 5.0)))
    monkeypatch.setattr(measures, "accept_and_refuse", gives((LONG, REFUSED)))
    monkeypatch.setattr(measures, "joined", gives(Joined(join=300.0, p50_ms=3, p99_ms=6, cpu_us={"all": 60.0})))
    monkeypatch.setattr(measures, "sustained", gives((LONG, OFFERS)))
    monkeypatch.setattr(runner, "native_http", gives(800.0 if installed else None))
    monkeypatch.setattr(runner, "gateway", gives(250.0 if installed else None))
    monkeypatch.setattr(runner, "startup", gives(Startup(start_s=1.2, memory_mb=150.0)))
    loads = [Load(answers=10 * n, refusals=2 * n, took_s=2, p50_ms=n, p99_ms=2 * n) for n in (1, 9, 4)]
    monkeypatch.setattr(measures, "confirm", gives({Confirm.GATE: loads, Confirm.LEDGER: loads[:1]}))
    monkeypatch.setattr(measures, "accept_at_1m", gives(([(500.0, 400.0), (500.0, 50.0), (5.0, 5.0)], 100.0)))
    plan = BenchPlan(rounds=3, seconds=8, sustained_s=30, overload_s=10, million=million)
    found = await run("", plan, lambda _: None)
    found["run"] |= {
        "machine": {"cores": 2, "system": "Linux", "python": "3.11"},
        "ledger": "sqlite",
        "seconds": 8,
        "connections": 500,
        "generator": "wrk",
        "plain_framework": "FastAPI",
        "command": "seckill bench",
    }
    return found


async def test_the_document_has_these_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await measured(monkeypatch)
    assert set(found) == {*FIELDS, "ratios", "run"}
    assert found["confirm"] == {
        "gate": {"accept": 16, "p50_ms": 4, "p99_ms": 8},
        "ledger": {"accept": 4, "p50_ms": 1, "p99_ms": 2},
    }
    assert found["ratios"] == {
        "accept_to_plain_port": 20,
        "persist_to_plain_persist": 100,
        "accept_to_http_ceiling": 0.5,
        "accept_to_native_http": 0.62,
        "accept_to_gate_ceiling": 0.71,
        "accept_to_gateway": 2,
        "refuse_to_http_ceiling": 0.9,
        "refuse_to_native_http": 1.12,
        "join_to_accept": 0.6,
        "refuse_p99_to_p50": 2.5,
        "persist_to_accept": 1,
        "accept_at_1m_to_accept": 0.8,
        "memory_per_buyer_bytes": 100,
        "backlog_s": 1,
    }
    assert found["cpu_us"] == COSTS
    assert found["overload"][0] == {"offered": 500, "accepted": 500, "persisted": 400, "backlog": 100, "p99_ms": 1}


async def test_what_is_not_installed_is_neither_measured_nor_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await measured(monkeypatch, installed=False)
    assert found["native_http"] is found["gateway"] is None
    assert found["ratios"]["accept_to_gateway"] is None
    assert not {"accept_to_gateway", "accept_to_native_http"} & {name for name, *_ in judged(found)}
    assert "granian" in report(found)


async def test_a_quick_run_has_the_same_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, quick = await measured(monkeypatch), await measured(monkeypatch, million=False)
    assert set(quick) == set(whole)
    assert set(quick["ratios"]) == set(whole["ratios"])
    unknown = {name for name, value in {**quick, **quick["ratios"]}.items() if value is None}
    assert unknown == {"accept_at_1m", "accept_at_1m_to_accept", "memory_per_buyer_bytes"}
    html = report(quick)
    assert "16 of 16 goals reached." in html, "what was not measured is not judged"
    assert "without a round that has a million buyers" in html


async def test_mariadb_is_measured_in_databases_of_its_own(
    monkeypatch: pytest.MonkeyPatch, mariadb_server: EmbeddedMariaDB
) -> None:
    monkeypatch.setattr(claim_lines, "CLAIMS_PER_S_MAX", 1000)
    monkeypatch.setattr(loading, "has_wrk", lambda: False)  # ours waits for the answers on a busy machine, too
    url = mariadb_server.url("mysql")
    plain_port, plain_persist = await measures.plain(2, url)
    assert plain_port > 0
    assert plain_persist > 0
    monkeypatch.setattr(measures, "OFFERED", ())
    long, _ = await measures.sustained(2, url, 1)
    assert long.persist > 0
    assert long.cpu_us["ledger"] > 0
    assert not [name for (name,) in await mariadb_server.execute("SHOW DATABASES") if "compare" in str(name)]


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    """A machine that is slow for one round is slow for both of its figures."""
    slow = {name: value / 10 for name, value in ROUND.items() if value is not None}
    odd = ROUND | {"accept": 5.0}
    found = ratios([slow, odd, ROUND], LONG)
    assert found["accept_to_plain_port"] == 20


async def test_the_report_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    html = report(await measured(monkeypatch))
    assert not re.search(r"<script|<link|src=|url\(|@import|https?:", html)
    assert "500 orders a second accepted, 500 persisted; 16 of 18 goals reached." in html


async def test_the_verdict_counts_what_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await measured(monkeypatch)
    worse = {name: most + 0.1 for name, most in LIMITS.items()}
    found["ratios"] = dict.fromkeys(GOALS, 0.0) | worse
    found |= {name: worse[name] for name in ("drain_s", "start_s", "memory_mb")} | {"cpu_us": {"all": 45.1}}
    assert verdict(found).endswith("0 of 18 goals reached.")
    found["run"]["ledger"] = "postgres"
    assert verdict(found).endswith("1 of 18 goals reached."), "more is allowed where the database is a server"


class Pressed:
    """A connection that is answered when the test says so."""

    pressed_s = 0.0

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, request: bytes, _: float) -> None:
        self.sent.append(request)


async def test_a_crowd_comes_whatever_the_server_does() -> None:
    crowd = Pressers(iter([b"request"] * 100), until_s=float("inf"), paced=True)
    connections: list[Any] = [Pressed(), Pressed()]
    for connection in connections:
        crowd.connected(connection)
    crowd.come(1)
    assert [len(connection.sent) for connection in connections] == [1, 0], "as many as came, not as many as could"
    crowd.come(3)
    assert [len(connection.sent) for connection in connections] == [1, 1], "the others wait for a connection"
    crowd.answered(connections[1], good=True)
    assert [len(connection.sent) for connection in connections] == [1, 2]
    crowd.give_up()
    for connection in connections:
        assert not crowd.all_answered.is_set()
        crowd.answered(connection, good=False)
    assert crowd.all_answered.is_set()
    assert [len(connection.sent) for connection in connections] == [1, 2], "who gave up does not press any more"
    assert (len(crowd.waits_s), crowd.refusals) == (3, 2)


async def test_a_crowd_is_heard_over_real_connections(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "lines", "/somewhere", ["token"] * 1000)
    async with service("ceiling") as address:
        seen = await loading.crowd(address, lines, seconds=1, per_s=100, connections=7)
    assert 0 < seen.answers <= 100
    assert seen.refusals == 0


async def test_others_are_measured_where_they_are_installed() -> None:
    assert (await native_http(1) or 0) > 0, "granian is among what tests need"
    assert ((await gateway.gateway(1)) is None) == (gateway.find_nginx() is None)


async def test_the_start_is_measured_to_the_first_claim() -> None:
    found = await startup()
    assert found.start_s > 0
    assert found.memory_mb > 50


def test_postgres_has_to_be_named() -> None:
    with pytest.raises(StartError, match="SECKILL_DATABASE_URL"):
        bench(ledger="postgres")


def test_the_goals_are_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "speed.md").read_text()
    for name, goal in GOALS.items():
        assert f"| `{name}` | {goal:g} |" in page
    for name, most in LIMITS.items():
        assert f"| `{name}` | at most {most:g} |" in page


def test_the_fields_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "speed.md").read_text()
    assert [name for name in FIELDS if f"`{name}`" not in page] == []
