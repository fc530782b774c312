"""The WebSocket of one node, on a real port, with good clients and bad ones."""

import asyncio
import contextlib
import json
import logging
import os
import socket as tcp
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from seckill.errors import LedgerUnavailable
from seckill.web.connections.waiting_seats import SEATS_PER_BUYER_MAX
from seckill.web.connections.websocket_limits import FRAGMENTS_MAX
from seckill.web.live_updates import websocket
from seckill.web.server import MESSAGE_BYTES_MAX
from tests.api.conftest import Served, buyer, token, token_that_ends
from tests.live import Socket, socket
from tests.patience import PATIENCE_S

UPGRADE = (
    b"GET /v1/ws HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
DEEP = '{"more":' + "[" * 1500 + "]" * 1500 + "}"


async def test_an_order_is_sent_at_once_and_at_each_change(served: Served) -> None:
    order_id = await served.order()
    async with socket(served.url, token("ann")) as opened:
        await opened.say({"watch": order_id})
        first = await opened.hear()
        assert (first["order_id"], first["state"]) == (order_id, "queued")
        await served.node.work()
        second = await opened.hear()
        shown = await served.node.http.get(f"/v1/orders/{order_id}", headers=buyer("ann"))
        assert second == shown.json()
        await served.act(order_id, "pay")
        assert (await opened.hear())["state"] == "paid"
        await opened.say({"watch": order_id})
        assert (await opened.hear())["state"] == "paid", "a client that asks again is told again"
    await served.until_all_are_gone()


async def test_a_socket_that_opens_and_closes_is_no_line_in_the_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Every buyer has one, so a sale would write a line for each."""
    with caplog.at_level("INFO"):
        logging.getLogger("uvicorn.error.websocket").setLevel("WARNING")  # as `logs.setup` does
        async with socket(served.url, token("ann")):
            pass
        await served.until_all_are_gone()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []


async def test_several_orders_over_one_socket(served: Served) -> None:
    ids = [await served.order() for _ in range(3)]
    async with socket(served.url, token("ann")) as opened:
        for order_id in ids:
            await opened.say({"watch": order_id})
        assert {(await opened.hear())["order_id"] for _ in ids} == set(ids)
        await served.node.work()
        heard = [await opened.hear() for _ in ids]
        assert {(order["order_id"], order["state"]) for order in heard} == {(each, "unpaid") for each in ids}


async def test_another_buyers_order_is_not_found(served: Served) -> None:
    order_id = await served.order()
    async with socket(served.url, token("eve")) as opened:
        for wanted in (order_id, "0123456789ABC", "*", ""):
            await opened.say({"watch": wanted})
            assert await opened.hear() == {"error": "not_found", "order_id": wanted}
        await served.node.work()
        await opened.say({"watch": order_id})
        assert await opened.hear() == {"error": "not_found", "order_id": order_id}


async def test_one_socket_watches_a_limited_number_of_orders(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "ORDERS_MAX", 2)
    ids = [await served.order() for _ in range(3)]
    async with socket(served.url, token("ann")) as opened:
        for order_id in ids[:2]:
            await opened.say({"watch": order_id})
            assert (await opened.hear())["state"] == "queued"
        await opened.say({"watch": ids[2]})
        assert await opened.hear() == {"error": "too_many", "order_id": ids[2]}


@pytest.mark.parametrize(
    "first",
    ['{"token": "x.y.z"}', '{"watch": "x"}', "", "nonsense", '{"token": 1}', b"\x00", '{"token":"a","more":1}', DEEP],
)
async def test_who_does_not_say_who_it_is_is_closed(served: Served, first: str | bytes) -> None:
    async with socket(served.url) as opened:
        await opened.connection.send(first)
        assert await opened.closed() == 4401


async def test_what_is_sent_with_the_request_for_a_socket_is_heard(served: Served) -> None:
    """Otherwise a client that does not wait for our answer would wait for ever."""
    order_id = await served.order()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))
    writer.write(UPGRADE + frame(json.dumps({"token": token("ann")})) + frame(json.dumps({"watch": order_id})))
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        assert order_id.encode() in await reader.readuntil(b"}")
    writer.close()


def frame(text: str) -> bytes:
    """Makes a frame as a client sends it, masked with zeros."""
    data = text.encode()
    return bytes([0x81, 0x80 | 126]) + len(data).to_bytes(2, "big") + bytes(4) + data


async def test_who_says_nothing_is_closed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "TOKEN_WITHIN_S", 0.1)
    async with socket(served.url) as opened:
        assert await opened.closed() == 4401


async def test_cookies_and_headers_do_not_open_it(served: Served) -> None:
    """Cookies and headers, which a browser sends by itself, prove nothing (S13)."""
    order_id = await served.order()
    headers = {"Cookie": f"token={token('ann')}", "Authorization": f"Bearer {token('ann')}"}
    async with socket(served.url, additional_headers=headers) as opened:
        await opened.say({"watch": order_id})
        assert await opened.closed() == 4401


async def test_a_socket_ends_with_its_token(served: Served) -> None:
    order_id = await served.order()
    async with socket(served.url, token_that_ends("ann", 4)) as opened:
        await opened.say({"watch": order_id})
        assert (await opened.hear())["state"] == "queued"
        assert await opened.closed() == 4401
    await served.until_all_are_gone()


async def test_a_socket_is_told_when_the_node_stops(served: Served) -> None:
    order_id = await served.order()
    async with socket(served.url, token("ann")) as opened, socket(served.url, token("bob")) as idle:
        await opened.say({"watch": order_id})
        assert (await opened.hear())["state"] == "queued"
        served.stop.set()
        assert await opened.closed() == 1012
        assert await idle.closed() == 1012


@pytest.mark.parametrize(
    "message",
    ["", "nonsense", "[]", "{}", '{"watch": 1}', '{"token": "x"}', '{"watch": "x", "user": "eve"}', b"{}", DEEP],
)
async def test_what_is_not_a_message_closes(served: Served, message: str | bytes) -> None:
    async with socket(served.url, token("ann")) as opened:
        await opened.connection.send(message)
        assert await opened.closed() == 1008


async def test_too_many_messages_close(served: Served) -> None:
    async with socket(served.url, token("ann")) as opened:
        with contextlib.suppress(ConnectionError):
            for _ in range(websocket.MESSAGES_PER_S_MAX + 1):
                await opened.say({"watch": "nothing"})
        assert await opened.closed() == 1008


@pytest.mark.parametrize("size", [MESSAGE_BYTES_MAX + 1, 1 << 20])
@pytest.mark.parametrize("known", [False, True])
async def test_too_large_a_frame_closes_and_says_so(served: Served, size: int, known: bool) -> None:
    async with socket(served.url, token("ann") if known else None) as opened:
        sending = asyncio.create_task(opened.connection.send("x" * size))
        assert await opened.closed() == 1009
        await asyncio.gather(sending, return_exceptions=True)
    await served.until_all_are_gone()


def send_all_then_read(port: int) -> bytes:
    """Half a megabyte is on its way before the first byte of the answer is looked at."""
    with tcp.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.sendall(UPGRADE)
        assert client.recv(4096).startswith(b"HTTP/1.1 101 ")
        client.sendall(bytes([0x81, 0x80 | 127]) + (1 << 20).to_bytes(8) + bytes(4))
        for _ in range(64):
            client.sendall(bytes(8192))
            time.sleep(0.002)
        return client.recv(4096)


async def test_the_reason_reaches_also_a_client_that_is_still_sending(served: Served) -> None:
    """Closing with unread bytes would reset the connection, and the client would lose what it has not read yet."""
    answer = await asyncio.to_thread(send_all_then_read, int(served.url.rsplit(":", 1)[1]))
    assert (answer[0], int.from_bytes(answer[2:4])) == (0x88, 1009)
    await served.until_all_are_gone()


async def test_a_message_in_endless_pieces_closes(served: Served) -> None:
    async def pieces() -> AsyncIterator[str]:
        for _ in range(FRAGMENTS_MAX + 2):
            yield ""

    async with socket(served.url, token("ann")) as opened:
        with contextlib.suppress(Exception):
            await opened.connection.send(pieces())
        assert await opened.closed() == 1008


async def test_what_is_not_text_closes(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    async with socket(served.url, token("ann")) as opened:
        await opened.connection.send(b"\xff\xfe", text=True)
        assert await opened.closed() == 1007
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1", "http://127.0.0.1:1", "", "file://", "http://[", "*"]
)
async def test_a_page_of_another_site_is_refused_before_the_upgrade(served: Served, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await socket(served.url, additional_headers={"Origin": origin}).__aenter__()
    assert refused.value.response.status_code == 403


async def test_a_page_of_this_site_may(served: Served) -> None:
    order_id = await served.order()
    for origin in (served.url, served.url.replace("http:", "https:")):
        async with socket(served.url, token("ann"), origin=origin) as opened:
            await opened.say({"watch": order_id})
            assert (await opened.hear())["order_id"] == order_id


async def test_one_buyer_has_a_limited_number_of_sockets(served: Served) -> None:
    order_id = await served.order()
    async with AsyncExitStack() as all_of_them:
        for _ in range(SEATS_PER_BUYER_MAX):
            opened = await all_of_them.enter_async_context(socket(served.url, token("ann")))
            await opened.say({"watch": order_id})
            assert (await opened.hear())["state"] == "queued"
        async with socket(served.url, token("ann")) as one_more:
            assert await one_more.closed() == 4429
        async with socket(served.url, token("bob")) as other:
            await other.say({"watch": order_id})
            assert (await other.hear())["error"] == "not_found"
    await served.until_all_are_gone()


async def test_clients_that_vanish_leave_nothing_behind(served: Served) -> None:
    """Reset in the middle of everything, a hundred at once (S32)."""
    sale = await served.node.create(units=100)
    users = [f"buyer-{i}" for i in range(100)]
    ids = [(await served.node.buy(sale, user)).json()["order_id"] for user in users]
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(socket(served.url, token(user))) for user in users]
        for each, order_id in zip(opened, ids, strict=True):
            await each.say({"watch": order_id})
        for each in opened[::2]:
            assert (await each.hear())["state"] == "queued"
        for each in opened:
            each.connection.transport.abort()
        await served.node.work()
    await served.until_all_are_gone()
    assert not served.server.server_state.connections


@asynccontextmanager
async def deaf(served: Served, user: str) -> AsyncIterator[Socket]:
    """Takes in next to nothing of what is sent to it."""
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(socket(served.url, token(user), max_queue=1, close_timeout=0.1))
        opened.connection.transport.pause_reading()
        yield opened
        opened.connection.transport.abort()


async def test_who_never_reads_is_cut_and_disturbs_nobody(served: Served) -> None:
    """Pings are answered by the protocol, below anything that counts messages."""
    order_id = await served.order()
    ping = bytes([0x89, 0x80 | 125]) + bytes(4) + os.urandom(125)
    async with socket(served.url, token("ann")) as good, deaf(served, "eve") as bad:
        await good.say({"watch": order_id})
        assert (await good.hear())["state"] == "queued"

        async def flood() -> None:
            transport: Any = bad.connection.transport
            while not transport.is_closing():
                transport.write(ping * 500)
                await asyncio.sleep(0.001)

        flooding = asyncio.create_task(flood())
        async with asyncio.timeout(PATIENCE_S):
            while len(served.node.api.context.seats._taken) > 1 or len(served.server.server_state.tasks) > 1:
                await asyncio.sleep(0.01)
        await served.node.work()
        assert (await good.hear())["state"] == "unpaid"
        flooding.cancel()
    await served.until_all_are_gone()


async def test_a_ledger_that_is_away_is_said(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    order_id = await served.order()

    async def away(_: Any) -> None:
        raise LedgerUnavailable("away")

    async with socket(served.url, token("ann")) as opened:
        with monkeypatch.context() as patched:
            patched.setattr(served.node.engine.ledger, "orders", away)
            await opened.say({"watch": order_id})
            assert await opened.hear() == {"error": "not_ready", "order_id": order_id}
        await opened.say({"watch": order_id})
        assert (await opened.hear())["state"] == "queued"
