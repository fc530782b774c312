"""Places on a node: each connection has one for as long as it lasts, whatever becomes of it, and one buyer has few."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import httpx2
import pytest

from seckill.engine.orders import buyer_orders
from seckill.web.connections import idle_connections
from seckill.web.connections.connection_limits import Room
from seckill.web.connections.waiting_seats import SEATS_PER_BUYER_MAX
from seckill.web.requests import parameters
from tests.api.conftest import Served, buyer, token
from tests.live import socket
from tests.patience import PATIENCE_S

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def connect(served: Served) -> Pair:
    return await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]))


async def ask(connection: Pair, path: str = "/healthz") -> int:
    reader, writer = connection
    writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
    return int(head.split()[1])


def long_poll(order_id: str) -> bytes:
    target = f"/v1/orders/{order_id}?wait={buyer_orders.WAIT_S_MAX:.0f}"
    return f"GET {target} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {token('ann')}\r\n\r\n".encode()


async def test_a_place_is_kept_through_an_upgrade_and_given_back_at_the_end(served: Served) -> None:
    places = served.server.places
    async with socket(served.url, token("ann")) as live:
        assert places.taken == 1
        plain = await connect(served)
        assert await ask(plain) == 200
        assert places.taken == 2
        plain[1].close()
        await until(lambda: places.taken == 1)
        await live.connection.close()
    await until(lambda: places.taken == 0 and not places._taken)


async def test_clients_that_vanish_give_their_places_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (buyer_orders, parameters):
        monkeypatch.setattr(module, "WAIT_S_MAX", 3600.0)  # so that no wait is over before the test is
    places = served.server.places
    order_id = await served.order()
    connections = [await connect(served) for _ in range(4)]
    connections[1][1].write(long_poll(order_id))
    connections[2][1].write(b"GET /heal")
    connections[3][1].write(b"nonsense\r\n\r\n")
    await until(lambda: places.taken >= 3)
    for _, writer in connections:
        writer.transport.abort()
    await until(lambda: places.taken == 0)
    await served.until_all_are_gone()


async def test_idle_connections_make_room_for_new_ones(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first; what is being answered stays."""
    monkeypatch.setattr(idle_connections, "EVERY_S", 0.0)
    monkeypatch.setattr(idle_connections, "IDLE_S_MIN", 0.0)
    served.server.places.room = Room(in_all=20, per_address=20, reserve=8)
    order_id = await served.order()
    busy = await connect(served)
    busy[1].write(long_poll(order_id))
    seats = served.node.api.context.seats
    await until(lambda: seats._taken["ann"] == 1)
    idle = [await connect(served) for _ in range(17)]
    for connection in idle:
        assert await ask(connection) == 200
    newcomers = []
    for _ in range(10):
        newcomers.append(await connect(served))
        assert await ask(newcomers[-1]) == 200
    async with asyncio.timeout(PATIENCE_S):
        assert await idle[0][0].read() == b"", "closed, and nothing said"
    assert seats._taken["ann"] == 1
    for _, writer in (busy, *idle, *newcomers):
        writer.close()


@pytest.mark.parametrize("served_from", ["long polls", "streams", "sockets"])
async def test_one_buyer_waits_for_so_much_and_no_more(served: Served, served_from: str) -> None:
    """Long polls, streams and sockets count together."""
    order_id = await served.order()
    seats = served.node.api.context.seats
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_S, headers=buyer("ann"))
        )
        polls = []
        for _ in range(SEATS_PER_BUYER_MAX):
            if served_from == "long polls":
                polls.append(asyncio.create_task(http.get(f"/v1/orders/{order_id}?wait=30")))
            elif served_from == "streams":
                await stack.enter_async_context(http.stream("GET", f"/v1/orders/{order_id}/events"))
            else:
                await stack.enter_async_context(socket(served.url, token("ann")))
        await until(lambda: seats._taken["ann"] == SEATS_PER_BUYER_MAX)
        for path in (f"/v1/orders/{order_id}?wait=1", f"/v1/orders/{order_id}/events"):
            refused = await http.get(path)
            assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
            assert refused.headers["retry-after"]
        async with socket(served.url, token("ann")) as one_more:
            assert await one_more.closed() == 4429
        assert (await http.get(f"/v1/orders/{order_id}")).status_code == 200, "a request that does not wait is answered"
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)
    await served.until_all_are_gone()
