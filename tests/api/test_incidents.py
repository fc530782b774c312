"""Attacks leave a trace: a count by kind, and lines in the log that say from where, few however many they are."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
import structlog
from prometheus_client import REGISTRY

from seckill.bootstrap.engine import Engine
from seckill.errors import NotGenuine
from seckill.settings import Settings
from seckill.web import incidents as module
from seckill.web.incidents import ADDRESSES_MAX, Incident, Incidents
from seckill.web.operators.guess_backoff import FREE_GUESSES
from tests.api.conftest import OPERATOR, Node, Served, buyer, make_node
from tests.live import socket
from tests.patience import PATIENCE_S

FORGED = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJleHAiOjk5OTk5OTk5OTl9.c2lnbmF0dXJl"
HERE = "203.0.113.7"


@pytest.fixture
def told() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


def counted(kind: Incident) -> float:
    return REGISTRY.get_sample_value("seckill_incidents_total", {"kind": kind.value}) or 0.0


async def until_counted(kind: Incident, count: float) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while counted(kind) < count:
            await asyncio.sleep(0.01)


async def test_each_kind_is_counted_and_told(served: Served, told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def not_genuine(*_: object) -> None:
        raise NotGenuine("this is a test")

    node = served.node
    monkeypatch.setattr(node.engine.provider, "read", not_genuine)
    sale = await node.create()
    claim = f"/v1/sales/{sale['id']}/orders"
    before = {kind: counted(kind) for kind in Incident}
    async with httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as http:
        await http.get("/v1/orders")
        await http.get("/v1/orders", headers={"Authorization": f"Bearer {FORGED}"})
        await http.post(claim)  # the way of plain bytes
        await http.post(claim, headers={"Authorization": f"Bearer {FORGED}"})
        await http.post(claim, headers={"TE": "trailers", "Authorization": f"Bearer {FORGED}"})  # the parser's
        await http.post("/v1/payments/callback", json={})
        await http.get("/v1/admin/live", headers={"Authorization": "Bearer a-wrong-key"})
    await node.http.post(claim, headers={"Authorization": f"Bearer {FORGED}"})  # the framework's
    async with socket(served.url) as opened:
        await opened.connection.send("nonsense")
        assert await opened.closed() == 4401
    found = {kind.value: counted(kind) - before[kind] for kind in Incident if counted(kind) > before[kind]}
    assert found == {"unauthenticated": 2, "bad_signature": 4 + 1, "admin_guess": 1, "socket_refused": 1}
    lines = [line for line in told if line["event"] == "refused"]
    assert [line["incident"] for line in lines] == ["unauthenticated", "bad_signature", "admin_guess", "socket_refused"]
    assert all(line["most"] == {"127.0.0.1": 1} for line in lines)
    assert FORGED not in json.dumps(told)
    assert "a-wrong-key" not in json.dumps(told)


async def test_the_rate_limit_leaves_a_trace(settings: Settings, engine: Engine, told: list[Any]) -> None:
    node = await make_node(replace(settings, claims_per_second=1), engine)
    sale = await node.create()
    before = counted(Incident.RATE_LIMITED)
    answers = [(await node.buy(sale, "ann")).status_code for _ in range(20)]
    assert 429 in answers
    await until_counted(Incident.RATE_LIMITED, before + answers.count(429))
    assert [line["incident"] for line in told if line["event"] == "refused"] == ["rate_limited"]
    await node.http.aclose()


async def test_a_flood_is_a_few_lines(told: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_EVERY_S", 3600.0)
    incidents = Incidents()
    for number in range(5000):
        incidents.note(Incident.UNAUTHENTICATED, f"198.51.{number % 250}.1")
    for _ in range(7000):
        incidents.note(Incident.UNAUTHENTICATED, HERE)
    assert [line["times"] for line in told] == [1], "the first at once"
    incidents.tell(Incident.UNAUTHENTICATED)
    assert [line["times"] for line in told] == [1, 11_999]
    assert told[1]["most"][HERE] == 7000
    assert len(told[1]["most"]) == 5
    incidents.tell(Incident.UNAUTHENTICATED)
    assert len(told) == 2, "nothing has happened since"
    incidents.note(Incident.UNAUTHENTICATED, HERE)
    assert told[2]["most"] == {HERE: 1}, "at once again"


async def test_addresses_without_end_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_EVERY_S", 3600.0)
    incidents = Incidents()
    for number in range(3 * ADDRESSES_MAX):
        incidents.note(Incident.RATE_LIMITED, f"2001:db8:{number:x}::1")
    (untold,) = incidents._untold.values()
    assert len(untold) == ADDRESSES_MAX + 1
    assert untold.total() == 3 * ADDRESSES_MAX - 1


async def guess(node: Node, address: str, key: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": f"1.2.3.4, {address}"}
    return await node.http.get("/v1/admin/live", headers=headers)


async def test_a_client_that_guesses_at_the_admin_key_has_to_wait_and_operators_elsewhere_do_not(
    settings: Settings, engine: Engine, told: list[Any]
) -> None:
    node = await make_node(replace(settings, trusted_proxies=(ip_network("127.0.0.1"),)), engine)
    right = OPERATOR["Authorization"].removeprefix("Bearer ")
    for number in range(FREE_GUESSES + 1):
        assert (await guess(node, HERE, f"guess-number-{number}")).status_code == 403
    waiting = await guess(node, HERE, "guess-number-x")
    assert (waiting.status_code, waiting.json()["code"]) == (429, "too_many_guesses")
    assert int(waiting.headers["retry-after"]) >= 1
    assert (await guess(node, HERE, right)).status_code == 429, "otherwise they could go on guessing"
    assert (await guess(node, "198.51.100.9", right)).status_code == 200
    assert [line["most"] for line in told if line.get("incident") == "admin_guess"] == [{HERE: 1}]
    await node.http.aclose()


async def test_whatever_is_logged_about_a_request_has_its_name(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("this is a test")

    lines: list[Any] = []

    def keep(_: Any, __: str, event: Any) -> str:
        lines.append(event)
        return ""

    structlog.configure(processors=[structlog.contextvars.merge_contextvars, keep])
    monkeypatch.setattr(node.api.context.orders, "newest", broken)
    try:
        with pytest.raises(RuntimeError):
            await node.http.get("/v1/orders", headers=buyer("ann") | {"X-Request-Id": "mine-1"})
    finally:
        structlog.reset_defaults()
    (line,) = [line for line in lines if line["event"] == "a request failed"]
    assert line["request_id"] == "mine-1"
