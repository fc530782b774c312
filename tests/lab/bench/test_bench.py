"""The benchmark measures what it says. How fast anything is, is not asserted anywhere."""

import asyncio
import re
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from seckill.cli.bench import bench
from seckill.domain.sale import Confirm
from seckill.errors import StartError
from seckill.lab.bench import load as loading
from seckill.lab.bench import measures
from seckill.lab.bench.load import Load, load
from seckill.lab.bench.measures import Accepted
from seckill.lab.bench.place import service
from seckill.lab.bench.report import report, verdict
from seckill.lab.bench.runner import GOALS, LIMITS, ratios, run
from seckill.lab.bench.tokens import Tokens
from seckill.lab.servers.mariadb import EmbeddedMariaDB
from seckill.settings import Secret, Settings
from seckill.web.auth import Buyers

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


def test_our_tokens_are_as_good_as_the_librarys() -> None:
    secret = Secret("s" * 32)
    buyers = Buyers(Settings(jwt_secret=secret))
    assert buyers.verify(Tokens(secret).of("buyer-7"), time.time()).user == "buyer-7"


@pytest.fixture(params=["wrk", "ours"])
def generator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of making load; without wrk on the machine, only ours."""
    if request.param == "ours":
        monkeypatch.setattr(shutil, "which", lambda _: None)
    elif shutil.which("wrk") is None:
        pytest.skip("wrk is not installed; the benchmark then uses its own generator, which is tested here as well")
    return str(request.param)


LINES = 6 * loading.CONNECTIONS  # so that many are answered before there are none left


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
        # Enough on a busy machine as well. Ours ends when there are none left, wrk waits.
        seen = await load(f"http://127.0.0.1:{port}", lines, seconds=8 if generator == "wrk" else 60)
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
        seen = await load(address, lines, seconds=1, cycle=True)
    assert seen.answers > 1
    assert seen.refusals == 0


async def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    """With fewer buyers and a smaller million."""
    monkeypatch.setattr(measures, "CLAIMS_PER_S_MAX", 1000)
    monkeypatch.setattr(measures, "MILLION", 2500)
    accepted, refuse = await measures.accept_and_refuse(4, "")
    assert accepted.accept > 0
    assert accepted.persist > 0
    assert accepted.mean_batch >= 1
    assert refuse > 0
    plain_port, plain_persist = await measures.plain(4, "")
    assert plain_port > 0
    assert plain_persist > 0
    assert await measures.gate_ceiling(1, "") > 0
    for loads in (await measures.confirm(3, 1, "")).values():
        assert loads[0].answers > loads[0].refusals
    ((before, after),), _ = await measures.accept_at_1m(3, 1, postgres_url)
    assert before > 0
    assert after > 0


LONG = Accepted(accept=500, persist=500, drain_s=0.1, p50_ms=1, p99_ms=2, mean_batch=9, api_bytes_before=1, api_bytes=1)
ROUND = {
    "http_ceiling": 1000.0,
    "gate_ceiling": 1000.0,
    "plain_port": 50.0,
    "plain_persist": 25.0,
    "accept": 500.0,
    "refuse": 900.0,
    "p50_ms": 1.0,
    "p99_ms": 2.0,
    "mean_batch": 9.0,
}
FIELDS = [*ROUND, "persist", "drain_s", "accept_at_1m", "confirm"]


async def measured(monkeypatch: pytest.MonkeyPatch, *, million: bool = True) -> dict[str, Any]:
    """The document of a run with made-up measurements."""

    def gives(value: object) -> Callable[..., Awaitable[object]]:
        async def measure(*_: object) -> object:
            return value

        return measure

    monkeypatch.setattr(measures, "http_ceiling", gives(1000.0))
    monkeypatch.setattr(measures, "gate_ceiling", gives(1000.0))
    monkeypatch.setattr(measures, "plain", gives((50.0, 25.0)))
    monkeypatch.setattr(measures, "accept_and_refuse", gives((LONG, 900.0)))
    monkeypatch.setattr(measures, "sustained", gives(LONG))
    loads = [Load(answers=10 * n, refusals=2 * n, took_s=2, p50_ms=n, p99_ms=2 * n) for n in (1, 9, 4)]
    monkeypatch.setattr(measures, "confirm", gives({Confirm.GATE: loads, Confirm.LEDGER: loads[:1]}))
    monkeypatch.setattr(measures, "accept_at_1m", gives(([(500.0, 400.0), (500.0, 50.0), (5.0, 5.0)], 100.0)))
    found = await run("", rounds=3, seconds=8, sustained_s=30, say=lambda _: None, million=million)
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
        "accept_to_plain_port": 10,
        "persist_to_plain_persist": 20,
        "accept_to_http_ceiling": 0.5,
        "accept_to_gate_ceiling": 0.5,
        "refuse_to_http_ceiling": 0.9,
        "persist_to_accept": 1,
        "accept_at_1m_to_accept": 0.8,
        "memory_per_buyer_bytes": 100,
    }


async def test_a_quick_run_has_the_same_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, quick = await measured(monkeypatch), await measured(monkeypatch, million=False)
    assert set(quick) == set(whole)
    assert set(quick["ratios"]) == set(whole["ratios"])
    unknown = {name for name, value in {**quick, **quick["ratios"]}.items() if value is None}
    assert unknown == {"accept_at_1m", "accept_at_1m_to_accept", "memory_per_buyer_bytes"}
    html = report(quick)
    assert "7 of 7 goals reached." in html, "what was not measured is not judged"
    assert "without a round that has a million buyers" in html


async def test_mariadb_is_measured_in_databases_of_its_own(
    monkeypatch: pytest.MonkeyPatch, mariadb_server: EmbeddedMariaDB
) -> None:
    monkeypatch.setattr(measures, "CLAIMS_PER_S_MAX", 1000)
    url = mariadb_server.url("mysql")
    plain_port, plain_persist = await measures.plain(2, url)
    assert plain_port > 0
    assert plain_persist > 0
    assert (await measures.sustained(2, url)).persist > 0
    assert not [name for (name,) in await mariadb_server.execute("SHOW DATABASES") if "compare" in str(name)]


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    """A machine that is slow for one round is slow for both of its figures."""
    slow = {name: value / 10 for name, value in ROUND.items()}
    odd = ROUND | {"accept": 5.0}
    found = ratios([slow, odd, ROUND], LONG)
    assert found["accept_to_plain_port"] == 10


async def test_the_report_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    html = report(await measured(monkeypatch))
    assert not re.search(r"<script|<link|src=|url\(|@import|https?:", html)
    assert "500 orders a second accepted, 500 persisted; 8 of 9 goals reached." in html


async def test_the_verdict_counts_what_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await measured(monkeypatch)
    found["ratios"] = dict.fromkeys(GOALS, 0.0) | {"memory_per_buyer_bytes": 151}
    found["drain_s"] = 2.1
    assert verdict(found).endswith("0 of 9 goals reached.")


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
