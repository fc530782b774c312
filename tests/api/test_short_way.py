"""Claims answered from their bytes: connections, pipelines and endings are as with any other request."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from seckill.web.app import Api
from seckill.web.claims.buyer_rate import Rates
from seckill.web.claims.claim_protocol import ClaimingProtocol
from tests.api.conftest import Node, Served, buyer
from tests.patience import PATIENCE_S


@pytest.fixture
def through_the_framework(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of requests that were not answered from their bytes alone."""
    paths: list[str] = []
    original = Api.__call__

    async def noted(self: Api, scope: Any, receive: Any, send: Any) -> None:
        paths.append(scope["path"])
        await original(self, scope, receive, send)

    monkeypatch.setattr(Api, "__call__", noted)
    return paths


@pytest.fixture
def slow_gate(node: Node, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Set when it has been asked, and to be set for it to answer."""
    asked, go_on = asyncio.Event(), asyncio.Event()
    original = node.engine.gate.admit

    async def slow(ref: Any, claims: Any) -> Any:
        asked.set()
        await go_on.wait()
        return await original(ref, claims)

    monkeypatch.setattr(node.engine.gate, "admit", slow)
    return asked, go_on


def request(sale: dict[str, Any], user: str, body: bytes = b"{}", *, head: str = "", key: str | None = None) -> bytes:
    lines = [f"POST /v1/sales/{sale['id']}/orders HTTP/1.1", "Host: seckill"]
    lines += [f"{name}: {value}" for name, value in buyer(user, key).items()]
    lines += [head or f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    async with asyncio.timeout(PATIENCE_S):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers, msgspec.json.decode(body)


async def test_a_plain_claim_needs_no_framework(served: Served, through_the_framework: list[str]) -> None:
    sale = await served.node.create()
    through_the_framework.clear()
    async with connected(served) as (reader, writer):
        for user, status in (("ann", 202), ("bob", 202), ("ann", 409)):
            writer.write(request(sale, user))
            answer = await read(reader)
            assert answer[0] == status
            assert {"date", "content-type", "content-length", "cache-control"} <= answer[1].keys()
    assert through_the_framework == []


async def test_a_repeat_and_an_unknown_sale_need_a_task(served: Served, through_the_framework: list[str]) -> None:
    sale = await served.node.create()
    through_the_framework.clear()
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann", key="k"))
        first = await read(reader)
        await served.node.work()
        writer.write(request(sale, "ann", key="k"))
        again = await read(reader)
        assert (again[2]["order_id"], again[2]["state"]) == (first[2]["order_id"], "unpaid")
        writer.write(request({"id": "7777777777777"}, "ann"))
        assert (await read(reader))[2]["code"] == "unknown_sale"
    assert len(through_the_framework) == 2


async def test_a_repeat_is_counted_once_by_the_rate_limit(
    served: Served, through_the_framework: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is begun from its bytes and answered by the framework, and is still one press."""
    seconds = SimpleNamespace(monotonic=lambda: 1.0, time=time.time)
    monkeypatch.setattr("seckill.web.claims.claim.time", seconds)
    monkeypatch.setattr(served.node.api.claims, "_rates", Rates(claims_per_second=1))
    asked: list[int] = []
    admit = served.node.engine.gate.admit

    async def noted(ref: Any, claims: Any) -> Any:
        asked.append(len(claims))
        return await admit(ref, claims)

    monkeypatch.setattr(served.node.engine.gate, "admit", noted)
    sale = await served.node.create()
    through_the_framework.clear()
    async with connected(served) as (reader, writer):
        statuses = []
        for second in (1.0, 2.0, 2.0):
            seconds.monotonic = lambda now=second: now
            writer.write(request(sale, "ann", key="k"))
            statuses.append((await read(reader))[0])
    assert statuses == [202, 202, 429]
    assert len(through_the_framework) == 1, "the second"
    assert asked == [1, 1], "and the gate is asked once for each"


async def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    sale = await served.node.create(units=100)
    async with connected(served) as (reader, writer):
        listing = b"GET /v1/sales HTTP/1.1\r\nHost: seckill\r\n\r\n"
        writer.write(request(sale, "a") + listing + request(sale, "b") + request(sale, "a") + request(sale, "c"))
        answers = [await read(reader) for _ in range(5)]
        assert [answer[0] for answer in answers] == [202, 200, 202, 409, 202]


async def test_a_body_in_pieces(served: Served) -> None:
    sale = await served.node.create(limit_per_buyer=3)
    whole = request(sale, "ann", b'{"quantity": 2}')
    async with connected(served) as (reader, writer):
        for start in range(0, len(whole), 7):
            writer.write(whole[start : start + 7])
            await writer.drain()
            await asyncio.sleep(0)
        assert (await read(reader))[2]["quantity"] == 2
        chunks = b"5\r\n" + b'{"qua' + b"\r\na\r\n" + b'ntity": 1}' + b"\r\n0\r\n\r\n"
        writer.write(request(sale, "bob", chunks, head="Transfer-Encoding: chunked"))
        assert (await read(reader))[2]["quantity"] == 1


@pytest.mark.parametrize("body", [b"{", b'{"quantity":0}', b'{"user_id":"eve"}'])
async def test_a_bad_body_keeps_the_connection(served: Served, body: bytes) -> None:
    sale = await served.node.create()
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann", body))
        assert (await read(reader))[0] in (400, 422)
        writer.write(request(sale, "ann"))
        assert (await read(reader))[0] == 202


async def test_a_client_that_wants_to_be_told_to_go_on(served: Served, through_the_framework: list[str]) -> None:
    sale = await served.node.create()
    through_the_framework.clear()
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann", head="Expect: 100-continue\r\nContent-Length: 2").removesuffix(b"{}"))
        assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"{}")
        assert (await read(reader))[0] == 202
    assert len(through_the_framework) == 1


@pytest.mark.parametrize("old", [True, False])
async def test_a_connection_that_shall_not_be_kept(served: Served, old: bool) -> None:
    sale = await served.node.create()
    whole = request(sale, "ann", head="Connection: close\r\nContent-Length: 2")
    if old:
        whole = request(sale, "ann").replace(b"HTTP/1.1", b"HTTP/1.0")
    async with connected(served) as (reader, writer):
        writer.write(whole)
        status, headers, _ = await read(reader)
        assert (status, headers["connection"]) == (202, "close")
        assert await reader.read() == b""


async def test_a_buyer_who_hangs_up_is_admitted_and_finds_the_order_by_the_key(
    served: Served, slow_gate: tuple[asyncio.Event, asyncio.Event]
) -> None:
    sale = await served.node.create()
    asked, go_on = slow_gate
    async with connected(served) as (_, writer):
        writer.write(request(sale, "ann", key="k"))
        await asked.wait()
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "bob"))
        go_on.set()
        assert (await read(reader))[0] == 202
        writer.write(request(sale, "ann", key="k"))
        assert (await read(reader))[2]["state"] == "queued"
    async with asyncio.timeout(PATIENCE_S):
        while served.server.server_state.connections:
            await asyncio.sleep(0.01)


async def test_a_claim_under_way_is_answered_before_the_end(
    served: Served, slow_gate: tuple[asyncio.Event, asyncio.Event]
) -> None:
    sale = await served.node.create()
    asked, go_on = slow_gate
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann"))
        await asked.wait()
        served.stop.set()
        while not served.server.should_exit:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # the server has told its connections to finish
        go_on.set()
        status, headers, _ = await read(reader)
        assert (status, headers["connection"]) == (202, "close")
        assert await reader.read() == b""


async def test_one_who_does_not_read_is_waited_for(served: Served, through_the_framework: list[str]) -> None:
    sale = await served.node.create()
    through_the_framework.clear()
    async with connected(served) as (reader, writer):
        while not served.server.server_state.connections:
            await asyncio.sleep(0)
        (protocol,) = served.server.server_state.connections
        assert isinstance(protocol, ClaimingProtocol)
        protocol.pause_writing()  # as the transport does when its buffer is full
        writer.write(request(sale, "ann"))
        while not through_the_framework:
            await asyncio.sleep(0)
        await served.node.refresh()
        assert not protocol.cycle.response_started
        protocol.resume_writing()
        assert (await read(reader))[0] == 202
