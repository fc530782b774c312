"""Pages of other origins: allowed origins may ask what buyers may ask, and all others learn nothing more."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
import websockets

from seckill.bootstrap.engine import Engine
from seckill.settings import Settings
from seckill.web.app import Api
from seckill.web.claims.claim import ClaimRoute
from seckill.web.routes import ROUTES, Route
from tests.api.conftest import OPERATOR, Node, Served, buyer, make_node
from tests.api.test_short_way import connected, read, request

SHOP = "https://shop.example.com"
OTHER = "http://localhost:3000"
EVIL = ("https://evil.example", "https://shop.example.com.evil.example", "http://shop.example.com", "null", "*", "")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, origins=(SHOP, OTHER))


def preflight(origin: str, method: str, *headers: str) -> dict[str, str]:
    asked = {"Access-Control-Request-Headers": ",".join(headers)} if headers else {}
    return {"Origin": origin, "Access-Control-Request-Method": method, **asked}


def of_cors(answer: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def listed(answer: httpx2.Response, name: str) -> set[str]:
    return set(answer.headers[name].lower().split(", "))


def address(route: Route) -> str:
    return re.sub(r"{\w+}", "ABC", route.path)


IS_FOR_BUYERS = [route.who in ("all", "buyer") and route.path.startswith("/v1/") for route in ROUTES]
BUYERS = [route for route, is_one in zip(ROUTES, IS_FOR_BUYERS, strict=True) if is_one]
OTHERS = [route for route, is_one in zip(ROUTES, IS_FOR_BUYERS, strict=True) if not is_one]


async def test_the_browser_is_told_what_buyers_may_send(node: Node) -> None:
    for route in BUYERS:
        asked = preflight(SHOP, route.method, "authorization", "content-type", "idempotency-key")
        answer = await node.http.options(address(route), headers=asked)
        assert (answer.status_code, answer.content) == (204, b""), route
        assert answer.headers["access-control-allow-origin"] == SHOP
        assert "access-control-allow-credentials" not in answer.headers, "no cookie has any meaning here"
        assert route.method.lower() in listed(answer, "access-control-allow-methods")
        wanted = {"authorization", "content-type", *(name.lower() for name, _ in route.headers)}
        assert wanted <= listed(answer, "access-control-allow-headers"), route
        assert answer.headers["access-control-max-age"] == "7200"
        assert "origin" in answer.headers["vary"].lower()


async def test_nothing_of_operators_is_for_pages(node: Node) -> None:
    """Neither the preflight nor the request succeeds, even with a key that was put into a page."""
    for route in OTHERS:
        asked = await node.http.options(address(route), headers=preflight(SHOP, route.method, "authorization"))
        assert route.method.lower() not in asked.headers.get("access-control-allow-methods", "").lower(), route
        done = await node.http.request(route.method, address(route), headers={"Origin": SHOP, **OPERATOR})
        assert of_cors(done) == {}, route


async def test_what_is_shared_with_operators_is_told_apart_by_its_method(node: Node) -> None:
    sale = await node.create()
    address = f"/v1/sales/{sale['id']}"
    asked = await node.http.options(address, headers=preflight(SHOP, "PATCH", "authorization"))
    assert listed(asked, "access-control-allow-methods") == {"get", "options"}
    patched = await node.http.patch(address, json={"title": "A"}, headers={"Origin": SHOP, **OPERATOR})
    assert (patched.status_code, of_cors(patched)) == (200, {})
    shown = await node.http.get(address, headers={"Origin": SHOP})
    assert shown.headers["access-control-allow-origin"] == SHOP


@pytest.mark.parametrize("origin", EVIL)
async def test_an_origin_that_is_not_named_is_told_nothing(node: Node, origin: str) -> None:
    sale = await node.create()
    address = f"/v1/sales/{sale['id']}"
    answers = [
        await node.http.options(f"{address}/orders", headers=preflight(origin, "POST", "authorization")),
        await node.http.get(address, headers={"Origin": origin}),
        await node.http.get("/embed.js", headers={"Origin": origin}),
        await node.http.post(f"{address}/orders", json={}, headers={"Origin": origin, **buyer("ann")}),
    ]
    assert [of_cors(answer) for answer in answers] == [{}] * 4
    assert [answer.status_code for answer in answers] == [405, 200, 200, 202], "as without an origin"


async def test_two_origins_are_none(node: Node) -> None:
    answer = await node.http.get("/v1/sales", headers=[("Origin", SHOP), ("Origin", "https://evil.example")])
    assert of_cors(answer) == {}


async def test_no_cache_gives_the_answer_for_one_origin_to_another(node: Node) -> None:
    sale = await node.create()
    for headers in ({}, {"Origin": SHOP}, {"Origin": OTHER}, {"Origin": EVIL[0]}):
        for path in ("/v1/sales", f"/v1/sales/{sale['id']}", "/v1/time", "/embed.js"):
            answer = await node.http.get(path, headers=headers)
            assert "origin" in answer.headers["vary"].lower(), (path, headers)
            allowed = headers.get("Origin") in (SHOP, OTHER)
            assert answer.headers.get("access-control-allow-origin") == (headers["Origin"] if allowed else None)


async def test_refusals_can_be_read_too(node: Node) -> None:
    """Otherwise a page could not tell sold out from a broken connection."""
    sale = await node.create(units=1)
    missing = await node.http.get("/v1/orders/ABC", headers={"Origin": SHOP, **buyer("ann")})
    unknown = await node.http.post("/v1/sales/ABC/orders", json={}, headers={"Origin": SHOP, **buyer("ann")})
    nobody = await node.http.post(f"/v1/sales/{sale['id']}/orders", json={}, headers={"Origin": SHOP})
    assert [answer.status_code for answer in (missing, unknown, nobody)] == [404, 404, 401]
    for answer in (missing, unknown, nobody):
        assert answer.headers["access-control-allow-origin"] == SHOP
        assert {"location", "retry-after", "x-request-id"} <= listed(answer, "access-control-expose-headers")


@pytest.fixture
def framework_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Claims that did not go straight from their bytes."""
    calls: list[str] = []
    call = Api.__call__

    async def called(self: Api, scope: Any, receive: Any, send: Any) -> None:
        if ClaimRoute.sale_in(scope):
            calls.append(scope["path"])
        await call(self, scope, receive, send)

    monkeypatch.setattr(Api, "__call__", called)
    return calls


@pytest.mark.parametrize(("origin", "allowed"), [(SHOP, SHOP), (OTHER, OTHER), (EVIL[0], None), (None, None)])
async def test_the_quick_way_of_a_claim(
    served: Served, framework_calls: list[str], origin: str | None, allowed: str | None
) -> None:
    sale = await served.node.create(units=1, limit_per_buyer=1)
    said = [] if origin is None else [f"Origin: {origin}"]
    framework_calls.clear()
    async with connected(served) as (reader, writer):
        found = []
        for user in ("ann", "ann", "bob", "eve"):  # admitted, has one already, sold out: first by the gate, then by us
            writer.write(with_lines(request(sale, user), *said))
            found.append(await read(reader))
        writer.write(with_lines(request(sale, "ann").replace(b"Bearer ", b"Bearer x"), *said))
        found.append(await read(reader))
    assert [status for status, _, _ in found] == [202, 409, 409, 409, 401]
    assert framework_calls == [], "they all took the quick way"
    for _, headers, _ in found:
        assert headers.get("access-control-allow-origin") == allowed
        assert ("access-control-expose-headers" in headers) == (allowed is not None)
        assert headers["vary"] == "Origin"


async def test_a_claim_with_two_origins_is_left_to_the_parser(served: Served, framework_calls: list[str]) -> None:
    sale = await served.node.create()
    framework_calls.clear()
    async with connected(served) as (reader, writer):
        writer.write(with_lines(request(sale, "ann"), f"Origin: {SHOP}", f"Origin: {EVIL[0]}"))
        status, headers, _ = await read(reader)
    assert (status, len(framework_calls)) == (202, 1)
    assert "access-control-allow-origin" not in headers


def with_lines(claim: bytes, *lines: str) -> bytes:
    first, rest = claim.split(b"\r\n", 1)
    return b"\r\n".join([first, *(line.encode() for line in lines), rest])


@pytest.mark.parametrize("origin", [SHOP, OTHER])
async def test_a_socket_may_be_opened(served: Served, origin: str) -> None:
    url = f"{served.url.replace('http', 'ws')}/v1/ws"
    async with websockets.connect(url, additional_headers={"Origin": origin}) as socket:
        await socket.send('{"token": "x"}')
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401


@pytest.mark.parametrize("origin", [origin for origin in EVIL if origin])
async def test_a_socket_of_another_may_not(served: Served, origin: str) -> None:
    url = f"{served.url.replace('http', 'ws')}/v1/ws"
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(url, additional_headers={"Origin": origin}).__aenter__()
    assert refused.value.response.status_code == 403


@pytest.fixture
async def alone(settings: Settings, engine: Engine) -> AsyncIterator[Node]:
    node = await make_node(replace(settings, origins=()), engine)
    yield node
    await node.http.aclose()


async def test_where_no_origin_is_named_nothing_is_said_of_any(alone: Node) -> None:
    assert alone.api.origins is None, "so that a claim costs nothing more"
    for origin in (SHOP, *EVIL):
        answer = await alone.http.get("/v1/sales", headers={"Origin": origin})
        assert of_cors(answer) == {}
        assert "origin" not in answer.headers.get("vary", "").lower()
        asked = await alone.http.options("/v1/sales/ABC/orders", headers=preflight(origin, "POST"))
        assert (asked.status_code, of_cors(asked)) == (405, {})
