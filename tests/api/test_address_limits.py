"""Limits of one address: claims on both ways, sign-ins and open streams; and no client chooses whose address counts."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from seckill.settings import Settings
from seckill.web.claims.claim_protocol import _forwarded
from tests.api.conftest import Node, Served, buyer, settings_of_a_node, token
from tests.api.test_short_way import connected, read
from tests.live import stream
from tests.patience import PATIENCE_S

PER_SECOND = 1
AT_ONCE = 10


@pytest.fixture
def settings(redis_url: str, sqlite_database: str) -> Settings:
    return replace(
        settings_of_a_node(redis_url, sqlite_database),
        trusted_proxies=(ip_network("127.0.0.1"), ip_network("10.0.0.0/8")),
        claims_per_address=PER_SECOND,
        sign_ins_per_address=PER_SECOND,
        streams_per_address=2,
        demo_sign_in="on",
    )


def press(sale: dict[str, Any], user: str, *headers: str, body: bytes = b"{}") -> bytes:
    lines = [f"POST /v1/sales/{sale['id']}/orders HTTP/1.1", "Host: seckill", f"Authorization: Bearer {token(user)}"]
    lines += [f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.fixture
async def wire(served: Served) -> AsyncIterator[Any]:
    """Sends a claim as the proxy would, over one connection, and gives status, headers and body."""
    async with connected(served) as (reader, writer):

        async def send(data: bytes) -> tuple[int, dict[str, str], Any]:
            writer.write(data)
            return await read(reader)

        yield send


async def pressed(wire: Any, sale: dict[str, Any], users: str, *headers: str, presses: int = 30) -> list[int]:
    return [(await wire(press(sale, f"{users}-{number}", *headers)))[0] for number in range(presses)]


@pytest.mark.usefixtures("way")
async def test_many_names_from_one_address_are_one(served: Served, wire: Any) -> None:
    sale = await served.node.create(units=1000)
    statuses = await pressed(wire, sale, "bot", "X-Forwarded-For: 203.0.113.9")
    assert statuses[:AT_ONCE] == [202] * AT_ONCE
    assert statuses.count(429) > 10
    status, headers, problem = await wire(press(sale, "bot", "X-Forwarded-For: 203.0.113.9"))
    assert (status, problem["code"], headers["retry-after"]) == (429, "rate_limited", "1")
    assert (await wire(press(sale, "ann", "X-Forwarded-For: 203.0.113.10")))[0] == 202, "another address"


@pytest.mark.usefixtures("way")
async def test_what_a_client_writes_into_the_header_does_not_count(served: Served, wire: Any) -> None:
    """The proxy appends the address that it sees: whatever stands before it may be made up."""
    sale = await served.node.create(units=1000)
    statuses = []
    for number in range(30):
        made_up = f"198.51.100.{number}"
        header = f"X-Forwarded-For: {made_up}, 203.0.113.9"
        if number % 2:
            header = f"Forwarded: for={made_up}\r\nX-Forwarded-For: {made_up},10.0.0.7,203.0.113.9,10.0.0.8"
        statuses.append((await wire(press(sale, f"bot-{number}", header)))[0])
    assert statuses.count(202) <= AT_ONCE + 5
    assert 429 in statuses


def test_nothing_in_the_body_is_taken_for_a_header() -> None:
    """It would come last, where the proxy's own word stands."""
    body = b'{"quantity":1,\nX-Forwarded-For: 198.51.100.1\r\n}'
    data = press({"id": "S"}, "bot", "X-Forwarded-For: 203.0.113.9", body=body)
    assert _forwarded(data) == ((b"x-forwarded-for", b"203.0.113.9"),)


@pytest.mark.usefixtures("way")
async def test_all_addresses_of_a_64_are_one(served: Served, wire: Any) -> None:
    sale = await served.node.create(units=1000)
    statuses = [
        (await wire(press(sale, f"bot-{number}", f"X-Forwarded-For: 2001:db8::{number:x}")))[0] for number in range(30)
    ]
    assert statuses.count(429) > 10
    assert (await wire(press(sale, "ann", "X-Forwarded-For: 2001:db8:0:1::1")))[0] == 202


@pytest.mark.usefixtures("way")
async def test_a_proxy_that_does_not_say_for_whom_is_everybody(served: Served, wire: Any) -> None:
    sale = await served.node.create(units=1000)
    assert await pressed(wire, sale, "any") == [202] * 30
    assert await pressed(wire, sale, "other", "X-Forwarded-For: 10.0.0.7") == [202] * 30


async def test_the_connections_address_counts_where_the_peer_is_no_proxy_of_ours(node: Node) -> None:
    sale = await node.create(units=1000)
    strangers = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(node.api, client=("203.0.113.9", 4711)), base_url="http://seckill"
    )
    statuses = []
    with capture_logs() as logs:
        async with strangers as http:
            for number in range(30):
                headers = buyer(f"bot-{number}") | {"X-Forwarded-For": f"198.51.100.{number}"}
                statuses.append((await http.post(f"/v1/sales/{sale['id']}/orders", headers=headers)).status_code)
    assert statuses.count(429) > 10, "the header is not a proxy's, and not believed"
    # It may be our own proxy that the settings do not name: then all clients behind it are refused.
    [warning] = [line for line in logs if "trust_it_with" in line]
    assert (warning["address"], warning["trust_it_with"]) == ("203.0.113.9", "SECKILL_TRUSTED_PROXIES")


async def test_sign_ins_of_an_address(served: Served) -> None:
    async with httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as http:

        async def sign_in(address: str) -> httpx2.Response:
            return await http.post("/v1/demo/sign-in", json={"name": "x"}, headers={"X-Forwarded-For": address})

        answers = [await sign_in("203.0.113.9") for _ in range(30)]
        assert [answer.status_code for answer in answers[:AT_ONCE]] == [200] * AT_ONCE
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["code"] == "rate_limited"
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await sign_in("203.0.113.10")).status_code == 200


async def test_open_streams_of_an_address(served: Served) -> None:
    order_ids = {user: await served.order(user) for user in ("ann", "bob", "eve")}

    async def wait(user: str, address: str) -> httpx2.Response:
        headers = buyer(user) | {"X-Forwarded-For": address}
        return await http.get(f"/v1/orders/{order_ids[user]}?wait=30", headers=headers)

    async with httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_S) as http:
        seats = served.node.api.context.seats
        waiting = [asyncio.create_task(wait(user, "203.0.113.9")) for user in ("ann", "bob")]
        async with asyncio.timeout(PATIENCE_S):
            while seats._by_address["203.0.113.9"] < 2:
                await asyncio.sleep(0.01)
        refused = await wait("eve", "203.0.113.9")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        async with stream(served.url, order_ids["eve"], token("eve")) as opened:  # the proxy itself, and so all clients
            assert opened.response.status_code == 200
        elsewhere = asyncio.create_task(wait("eve", "203.0.113.10"))
        async with asyncio.timeout(PATIENCE_S):
            while not seats._by_address["203.0.113.10"]:
                await asyncio.sleep(0.01)
        await served.node.work()
        assert [answer.status_code for answer in await asyncio.gather(*waiting, elsewhere)] == [200] * 3
    await served.until_all_are_gone()
    assert not seats._by_address
