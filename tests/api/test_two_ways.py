"""A claim gets the same answer whichever way it takes: from its bytes, read in one go or part by part, or as an ASGI
request."""

import asyncio
from typing import Any, Literal

import pytest

from seckill.native.kernel_choice import KERNEL
from seckill.web.app import Api
from seckill.web.claims import claim_protocol
from seckill.web.claims.claim import BEGUN, ClaimRoute
from seckill.web.claims.claim_protocol import ClaimingProtocol
from seckill.web.claims.plain_request import NOTABLE, UNUSUAL, PlainReader
from seckill.web.claims.turn_buffer import TurnBuffer
from tests.api.conftest import ADMIN_KEY, Served, token
from tests.api.test_short_way import connected, read, request
from tests.native.plain_claims import PlainClaimReader
from tests.patience import PATIENCE_S

Way = Literal["in one go", "bytes", "framework"]


@pytest.fixture(params=["in one go", "bytes", "framework"])
async def way(request: pytest.FixtureRequest, served: Served, monkeypatch: pytest.MonkeyPatch) -> Way:
    way: Way = request.param
    if way == "framework":
        monkeypatch.setattr(ClaimingProtocol, "is_quiet", lambda self: False)
    elif way == "bytes":
        monkeypatch.setattr(ClaimingProtocol, "_begin_plain", lambda *_: False)
    elif KERNEL is None:
        read_in_python(served, monkeypatch)
    return way


def read_in_python(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain claims, as the kernel would read them if there were one."""
    reader = PlainClaimReader(PlainReader(NOTABLE, UNUSUAL), None, None)
    monkeypatch.setattr(served.node.api, "read_plain_claim", reader.read)


@pytest.fixture
async def ways_taken(way: Way, monkeypatch: pytest.MonkeyPatch) -> set[Way]:
    """Notes which way each request really took, so that no case silently takes another way than it says."""
    taken: set[Way] = set()
    begin, begin_plain, call = ClaimRoute.begin, ClaimRoute.begin_plain, Api.__call__

    def begun(self: ClaimRoute, *claim: Any) -> Any:
        begun = begin(self, *claim)
        if begun is not False:
            taken.add("bytes")
        return begun

    def begun_plain(self: ClaimRoute, *claim: Any) -> Any:
        begun = begin_plain(self, *claim)
        if begun:
            taken.add("in one go")
        return begun

    async def called(self: Api, scope: Any, receive: Any, send: Any) -> None:
        if ClaimRoute.sale_in(scope) and BEGUN not in scope:
            taken.add("framework")
        await call(self, scope, receive, send)

    monkeypatch.setattr(ClaimRoute, "begin", begun)
    monkeypatch.setattr(ClaimRoute, "begin_plain", begun_plain)
    monkeypatch.setattr(Api, "__call__", called)
    return taken


async def answers(served: Served, *requests: bytes) -> list[tuple[int, dict[str, str], Any]]:
    found = []
    async with connected(served) as (reader, writer):
        for each in requests:
            writer.write(each)
            found.append(await read(reader))
    return found


def bare(sale: dict[str, Any], *lines: str, body: bytes = b"{}") -> bytes:
    head = [f"POST /v1/sales/{sale['id']}/orders HTTP/1.1", "Host: seckill", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


SAME = {"x-content-type-options", "x-request-id", "content-type", "cache-control", "content-length"}


async def test_what_the_gate_says(served: Served, way: Way, ways_taken: set[Way]) -> None:
    node = served.node
    sale = await node.create(units=2, limit_per_buyer=1)
    sold_out = await node.create(units=1)
    await node.buy(sold_out, "eve")
    early = await node.create(begins_at="2100-01-01T00:00:00Z", ends_at="2100-01-02T00:00:00Z")
    ways_taken.clear()
    found = await answers(
        served, request(sale, "ann"), request(sale, "ann"), request(sold_out, "bob"), request(early, "ann")
    )
    assert [(status, body.get("code", body.get("state"))) for status, _, body in found] == [
        (202, "queued"),
        (409, "limit_reached"),
        (409, "sold_out"),
        (409, "not_started"),
    ]
    order_id = found[0][2]["order_id"]
    assert found[0][1]["location"] == f"/v1/orders/{order_id}"
    assert found[0][2] == {
        "order_id": order_id,
        "state": "queued",
        "sale_id": sale["id"],
        "round": sale["round"],
        "quantity": 1,
    }
    assert found[1][2]["order_ids"] == [order_id]
    assert found[3][2]["begins_at"] == early["begins_at"]
    for status, headers, _ in found:
        assert headers.keys() == SAME | ({"date", "location"} if status == 202 else {"date"})
        assert headers["cache-control"] == "no-store"
        assert headers["content-type"] == ("application/json" if status == 202 else "application/problem+json")
    assert ways_taken == {way}


async def test_a_sale_that_is_paused_closed_or_refused_here(served: Served, way: Way) -> None:
    node = served.node
    sale = await node.create()
    from_operator = {"Authorization": f"Bearer {ADMIN_KEY}"}
    codes = []
    for verb in ("pause", "close"):
        await node.http.post(f"/v1/sales/{sale['id']}/{verb}", headers=from_operator)
        ((status, _, body),) = await answers(served, request(sale, "ann"))
        codes.append((status, body["code"]))
    assert codes == [(409, "paused"), (410, "ended")]


async def test_tokens(served: Served, way: Way) -> None:
    sale = await served.node.create()
    cases = [
        (),
        ("Authorization: Basic abc",),
        ("Authorization: Bearer x",),
        (f"Authorization: Bearer {token('ann')[:-2]}",),
        (f"Authorization: Bearer {token('ann')} more",),
    ]
    for lines in cases:
        ((status, headers, body),) = await answers(served, bare(sale, *lines))
        assert (status, body["code"]) == (401, "unauthenticated")
        assert headers["www-authenticate"] == 'Bearer realm="seckill"'
    ((status, _, _),) = await answers(served, bare(sale, f"authorization: bearer {token('ann')}"))
    assert status == 202


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 202, None),
        (b'{"quantity":1}', 202, None),
        (b'{"quantity":2}', 409, "limit_reached"),
        (b'{"quantity":0}', 422, "invalid"),
        (b'{"quantity":"1"}', 422, "invalid"),
        (b'{"user_id":"eve"}', 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b"{", 400, "bad_request"),
        (b'{"a":' * 40, 400, "bad_request"),
        (b"\xff", 400, "bad_request"),
    ],
)
async def test_bodies(served: Served, way: Way, body: bytes, status: int, code: str | None) -> None:
    sale = await served.node.create()
    ((found, _, answer),) = await answers(served, request(sale, "ann", body))
    assert (found, answer.get("code")) == (status, code)


async def test_keys(served: Served, way: Way) -> None:
    sale = await served.node.create(limit_per_buyer=5, units=10)
    first, again, other, long = await answers(
        served,
        request(sale, "ann", key="k"),
        request(sale, "ann", key="k"),
        request(sale, "ann", b'{"quantity":2}', key="k"),
        request(sale, "ann", key="x" * 256),
    )
    assert (first[0], again[0], again[2]) == (202, 202, first[2])
    assert (other[0], other[2]["code"]) == (422, "key_reused")
    assert (long[0], long[2]["errors"][0]["field"]) == (422, "Idempotency-Key")


async def test_one_who_presses_too_often(served: Served, way: Way) -> None:
    sale = await served.node.create()
    served.node.api.claims._rates._most = 1
    while True:  # both in one second
        found = await answers(served, request(sale, "ann"), request(sale, "ann"))
        if found[1][2]["code"] == "rate_limited":
            break
    assert (found[1][0], found[1][1]["retry-after"]) == (429, "1")


async def test_a_gate_that_does_not_answer(served: Served, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    sale = await served.node.create()

    async def broken(*_: Any) -> Any:
        raise ValueError("not a reply")

    monkeypatch.setattr(served.node.engine.gate, "admit", broken)
    ((status, headers, body),) = await answers(served, request(sale, "ann"))
    assert (status, body["code"], headers["retry-after"]) == (503, "unknown", "1")


async def test_an_unknown_sale(served: Served, way: Way) -> None:
    found = await answers(served, request({"id": "7777777777777"}, "ann"), request({"id": "x"}, "ann"))
    assert [(status, body["code"]) for status, _, body in found] == [(404, "unknown_sale")] * 2


async def test_one_who_has_nothing_more_to_say_gets_the_answer(
    served: Served, way: Way, ways_taken: set[Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate answers when the end of what the client sends has been seen, and the connection is closed then."""
    sale = await served.node.create()
    await served.node.buy(sale, "eve")  # by now the way in which tokens are signed is known
    ways_taken.clear()
    ended = asyncio.Event()
    eof_received, admit = claim_protocol.ClaimingProtocol.eof_received, served.node.engine.gate.admit

    def noted(self: claim_protocol.ClaimingProtocol) -> bool | None:
        ended.set()
        return eof_received(self)

    async def slow(ref: Any, claims: Any) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
        return await admit(ref, claims)

    monkeypatch.setattr(claim_protocol.ClaimingProtocol, "eof_received", noted)
    monkeypatch.setattr(served.node.engine.gate, "admit", slow)
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(request(sale, "ann"))
        writer.write_eof()
        status, headers, _ = await read(reader)
        assert (status, headers["connection"]) == (202, "close")
        assert await reader.read() == b""
    assert ways_taken == {way}
    ended.clear()
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(request(sale, "bob")[:-1])  # the rest never comes
        writer.write_eof()
        assert await reader.read() == b""


async def test_more_arrives_while_a_claim_is_on_its_way(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It becomes an ordinary request with the answer that it is waiting for: no second claim is made of it."""
    sale = await served.node.create(units=100)
    asked, go_on = asyncio.Event(), asyncio.Event()
    original = served.node.engine.gate.admit
    users: list[str] = []

    async def slow(ref: Any, claims: Any) -> Any:
        users.extend(claim.user for claim in claims)
        asked.set()
        await go_on.wait()
        return await original(ref, claims)

    monkeypatch.setattr(served.node.engine.gate, "admit", slow)
    async with connected(served) as (reader, writer):
        writer.write(request(sale, "ann"))
        await asked.wait()
        writer.write(request(sale, "bob") + b"GET /v1/sales HTTP/1.1\r\nHost: seckill\r\n\r\n" + request(sale, "ann"))
        await writer.drain()
        await asyncio.sleep(0.05)  # whatever it does with them, it does now
        go_on.set()
        found = [await read(reader) for _ in range(4)]
    assert [status for status, _, _ in found] == [202, 202, 200, 409]
    assert users == ["ann", "bob", "ann"]


async def test_an_answer_that_waits_for_the_end_of_its_turn_comes_first(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else happens to its connection in that turn: another request, or the end of the server."""
    early = await served.node.create(begins_at="2100-01-01T00:00:00Z", ends_at="2100-01-02T00:00:00Z")
    sale = await served.node.create()
    happened: list[str] = []

    def more_arrives(self: TurnBuffer, protocol: claim_protocol.ClaimingProtocol) -> None:
        happened.append("more")
        monkeypatch.undo()
        protocol.data_received(request(sale, "ann"))

    def stops(self: TurnBuffer, protocol: claim_protocol.ClaimingProtocol) -> None:
        happened.append("stop")
        protocol.shutdown()

    monkeypatch.setattr(TurnBuffer, "add", more_arrives)
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(request(early, "ann"))
        assert [(await read(reader))[0] for _ in range(2)] == [409, 202]
    monkeypatch.setattr(TurnBuffer, "add", stops)
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(request(early, "ann"))
        assert (await read(reader))[0] == 409
        assert await reader.read() == b""
    assert happened == ["more", "stop"]
