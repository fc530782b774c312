"""One order is one trace, from the press to the shop: over API, worker and keeper, as their roles run."""

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest

from seckill import logs
from seckill.bootstrap.engine import open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.claims.admission_desk import AdmissionDesk
from seckill.engine.orders.worker import Worker
from seckill.extras import DRIVERS
from seckill.loops import Stop
from seckill.roles.keeper import keep
from seckill.roles.worker import work
from seckill.settings import Settings
from seckill.web.app import Api
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.connections.listening_socket import bind
from seckill.web.server import ApiServer, serve_until
from tests.api.conftest import OPERATOR, buyer, sale_body
from tests.collector import Collected, Collector, collecting
from tests.fixtures.rabbitmq import RabbitServer
from tests.patience import PATIENCE_S
from tests.receiver import Receiver

PRESS = "POST /v1/sales/{sale_id}/orders"
# Each hangs on the one before it.
STEPS = (PRESS, "gate", "stream", "worker", "ledger", "event order.created", "webhook")
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ASKED = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01"}


@dataclass
class Town:
    """API, worker and keeper, a shop that is told, and a collector."""

    http: httpx2.AsyncClient
    api: Api
    shop: Receiver
    collector: Collector
    sale: dict[str, Any]

    async def buy(self, user: str, **headers: str) -> httpx2.Response:
        path = f"/v1/sales/{self.sale['id']}/orders"
        return await self.http.post(path, json={"quantity": 1}, headers=buyer(user) | headers)

    async def collected(self, *names: str, trace_id: str | None = None) -> dict[str, Collected]:
        return await asyncio.to_thread(self.collector.wait_for, *names, trace_id=trace_id)


@asynccontextmanager
async def town(settings: Settings, collector: Collector) -> AsyncIterator[Town]:
    settings = replace(settings, webhook_private="on")
    stop, listener = Stop(), bind("127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with (
        open_engine(settings, role="api") as of_api,
        open_engine(settings, role="worker") as of_worker,
        open_engine(settings, role="keeper") as of_keeper,
        Receiver().running() as shop,
        httpx2.AsyncClient(base_url=base_url) as http,
        asyncio.timeout(PATIENCE_S),
    ):
        api = Api(settings, of_api)
        async with api.running(), asyncio.TaskGroup() as roles:
            roles.create_task(serve_until(stop, ApiServer(api), listener, api))
            roles.create_task(work(of_worker, settings, stop))
            roles.create_task(keep(of_keeper, settings, stop))
            hook = {"url": shop.url(), "types": ["order.created"]}
            assert (await http.post("/v1/admin/webhooks", json=hook, headers=OPERATOR)).status_code == 201
            made = await http.post("/v1/sales", json=sale_body(units=50), headers=OPERATOR)
            while (await http.get(f"/v1/sales/{made.json()['id']}")).json()["state"] != "open":
                await asyncio.sleep(0.05)
            try:
                yield Town(http, api, shop, collector, made.json())
            finally:
                stop.set()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting(monkeypatch, OTEL_TRACES_SAMPLER="parentbased_always_off") as collector:
        yield collector


def check_order(spans: dict[str, Collected], steps: tuple[str, ...], parent: str) -> None:
    for name in steps:
        assert spans[name].parent == parent, name
        assert not spans[name].failed, name
        parent = spans[name].span_id


async def test_an_order_is_one_trace_from_the_press_to_the_shop(settings: Settings, collector: Collector) -> None:
    async with town(settings, collector) as here:
        assert (await here.buy("unseen")).status_code == 202
        answer = await here.buy("ann", **ASKED)
        assert answer.status_code == 202
        spans = await here.collected(*STEPS, trace_id=TRACE_ID)
        await here.shop.until(lambda: len(here.shop.taken) == 2)
    check_order(spans, STEPS, SPAN_ID)
    services = [spans[name].service for name in STEPS]
    assert services == [*["seckill-api"] * 2, *["seckill-worker"] * 3, *["seckill-keeper"] * 2]
    press, gate = spans[PRESS].facts, spans["gate"].facts
    assert (press["http.response.status_code"], press["seckill.order"]) == (202, answer.json()["order_id"])
    assert gate["seckill.outcome"] == "admitted"
    assert spans["webhook"].facts["http.response.status_code"] == 200
    assert "ann" not in repr(collector.spans)  # traces must not name the buyer
    # The shop goes on under the webhook's span; it is told nothing about an order that is not traced.
    told = {each.event["data"]["buyer"]: each.headers.get("traceparent") for each in here.shop.taken}
    assert told == {"ann": f"00-{TRACE_ID}-{spans['webhook'].span_id}-01", "unseen": None}
    assert {span.trace_id for span in collector.spans} == {TRACE_ID}


async def test_also_by_way_of_a_broker(settings: Settings, collector: Collector, rabbit: RabbitServer) -> None:
    async with town(replace(settings, broker_url=rabbit.url()), collector) as here:
        assert (await here.buy("ann", **ASKED)).status_code == 202
        spans = await here.collected(*STEPS, "relay", trace_id=TRACE_ID)
    check_order(spans, STEPS, SPAN_ID)
    assert spans["relay"].parent == spans["gate"].span_id
    assert here.shop.taken[0].headers["traceparent"].split("-")[1] == TRACE_ID


async def test_a_share_of_those_that_nobody_asked_about(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting(monkeypatch, OTEL_TRACES_SAMPLER="always_on") as collector:
        async with town(replace(settings, traces_per_second=1), collector) as here:
            answers = await asyncio.gather(*(here.buy(f"buyer {n}") for n in range(8)))
            assert {answer.status_code for answer in answers} == {202}
            spans = await here.collected(*STEPS)
            metrics = await here.http.get("/metrics", headers=OPERATOR | {"Accept": "application/openmetrics-text"})
    check_order(spans, STEPS, "")
    # More than were traced were sold, and the histogram shows which trace to look at.
    presses = [span for span in collector.spans if span.name == PRESS]
    assert len(presses) < len(answers)
    assert metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    buckets = [line for line in metrics.text.splitlines() if line.startswith("seckill_answer_seconds_bucket")]
    assert any(f'# {{trace_id="{spans[PRESS].trace_id}"}}' in line for line in buckets if 'answer="accepted"' in line)


GARBAGE = (
    "garbage",
    f"00-{TRACE_ID}-{SPAN_ID}-01-more",
    f"ff-{TRACE_ID}-{SPAN_ID}-01",
    f"00-{'0' * 32}-{SPAN_ID}-01",
    f"00-{TRACE_ID}-{'0' * 16}-01",
    f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
    f"00-{TRACE_ID}-{SPAN_ID}-00",  # sound, and its caller is not traced
    f"00-{TRACE_ID}-{SPAN_ID}-01\r\nTraceparent: 00-{TRACE_ID}-{SPAN_ID}-01",
    "00-" + "f" * 4000,
)


def written(sale: dict[str, Any], user: str, *lines: str) -> bytes:
    fields = ["Host: seckill", f"Authorization: {buyer(user)['Authorization']}", "Content-Length: 2", *lines]
    return "\r\n".join((f"POST /v1/sales/{sale['id']}/orders HTTP/1.1", *fields, "", "{}")).encode()


async def sent(here: Town, *pieces: bytes) -> bytes:
    """The first line of the answer."""
    reader, writer = await asyncio.open_connection(here.http.base_url.host, here.http.base_url.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)  # so that it arrives by itself; if it does not, it is read the other way
    line = await reader.readline()
    writer.close()
    return line


async def test_garbage_is_ignored_and_what_is_sound_is_heeded_by_both_ways(
    settings: Settings, collector: Collector
) -> None:
    async with town(settings, collector) as here:
        for number, said in enumerate(GARBAGE):
            whole = written(here.sale, f"buyer {number}", f"traceparent: {said}")
            assert b" 202 " in await sent(here, whole)
            assert b" 202 " in await sent(
                here, written(here.sale, f"other {number}", f"traceparent: {said}")[:-2], b"{}"
            )
        first, second = TRACE_ID, TRACE_ID[::-1]
        request = written(here.sale, "ann", f"Traceparent: 00-{first}-{SPAN_ID}-01")
        assert b" 202 " in await sent(here, request)
        request = written(here.sale, "bob", f"traceparent: 00-{second}-{SPAN_ID}-01")
        assert b" 202 " in await sent(here, request[:-2], request[-2:])
        for trace_id in (first, second):
            check_order(await here.collected(*STEPS, trace_id=trace_id), STEPS, SPAN_ID)
    assert {span.trace_id for span in collector.spans} == {first, second}


async def test_a_claim_that_is_not_traced_goes_the_quick_way(
    settings: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither asked what it says of traces, nor does it become a request of the framework's."""
    async with town(settings, collector) as here:
        traced = here.api.traced
        assert traced is not None
        asked, answered = [], []
        choose, claim = traced.choose, here.api._claim

        async def answer(sale_id: str, *more: Any) -> None:
            answered.append(sale_id)
            await claim(sale_id, *more)

        def choose_noted(*facts: Any) -> str | None:
            asked.append(facts)
            return choose(*facts)

        monkeypatch.setattr(traced, "choose", choose_noted)
        monkeypatch.setattr(here.api, "_claim", answer)
        assert b" 202 " in await sent(here, written(here.sale, "dry run"))  # the sale may have to be looked for
        asked.clear()
        answered.clear()
        for number in range(10):
            assert b" 202 " in await sent(here, written(here.sale, f"buyer {number}"))
        assert (asked, answered) == ([], [])
        unsampled = f"traceparent: {ASKED['traceparent'][:-1]}0"
        assert b" 202 " in await sent(here, written(here.sale, "ann", unsampled))
        assert (len(asked), answered) == (1, [])
        assert b" 202 " in await sent(here, written(here.sale, "bob", f"traceparent: {ASKED['traceparent']}"))
        assert (len(asked), answered) == (2, [here.sale["id"]])


async def test_nothing_of_traces_is_there_while_they_are_off(settings: Settings) -> None:
    async with open_engine(settings, role="api") as engine:
        api = Api(settings, engine)
        assert (engine.tracer, api.traced, api._claim) == (None, None, api.claims)
        assert type(api.context.desk) is AdmissionDesk
        assert ApiServer(api).config.http is ClaimingProtocol
        use = UseCases(engine, settings)
        assert type(use.worker(Stop())) is Worker
    imported = "import sys, seckill.web.server, seckill.roles.worker, seckill.roles.keeper; print(*sys.modules)"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    run = await asyncio.create_subprocess_exec(sys.executable, "-c", imported, env=environ, stdout=subprocess.PIPE)
    loaded, _ = await run.communicate()
    assert b"seckill.web.claims.claim_protocol" in loaded
    assert b"opentelemetry.exporter" not in loaded  # of the rest, the client of Redis loads what it finds


async def test_without_the_extra_it_starts_all_the_same(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "seckill.backends.otel.tracer", None)
    monkeypatch.setitem(DRIVERS, "seckill", DRIVERS["opentelemetry"])  # which is what is missing here
    stream = io.StringIO()
    logs.setup("json", "info", stream)
    async with open_engine(settings, role="api") as engine:
        assert engine.tracer is None
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert "seckill[otel]" in next(line for line in said if line["event"] == "nothing is traced")["reason"]


async def test_the_log_of_a_traced_claim_names_its_trace(
    settings: Settings, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with town(settings, collector) as here:
        stream = io.StringIO()
        logs.setup("json", "info", stream)

        async def broken(*_: object) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(AdmissionDesk, "claim", broken)
        assert (await here.buy("ann", **ASKED)).status_code == 500
        spans = await here.collected(PRESS, "gate", trace_id=TRACE_ID)
    line = next(json.loads(line) for line in stream.getvalue().splitlines() if "a claim failed" in line)
    assert line["trace_id"] == TRACE_ID
    assert spans[PRESS].failed
    assert spans["gate"].failed
