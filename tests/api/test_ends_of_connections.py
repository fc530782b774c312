"""What becomes of requests whose client closes its side of the connection, or is gone, while several are on their
way."""

import asyncio
import logging
import socket
import struct
from typing import Any

import pytest

from seckill.web.claims.claim_protocol import ClaimingProtocol
from tests.api.conftest import Served, buyer
from tests.api.test_short_way import connected, read, request, slow_gate
from tests.patience import PATIENCE_S

__all__ = ["slow_gate"]
Gate = tuple[asyncio.Event, asyncio.Event]
LIST = b"GET /v1/sales HTTP/1.1\r\nHost: seckill\r\n\r\n"


def joining(sale: dict[str, Any], user: str) -> bytes:
    lines = [f"POST /v1/sales/{sale['id']}/entries HTTP/1.1", "Host: seckill", "Content-Length: 2"]
    lines += [f"{name}: {value}" for name, value in buyer(user).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n{}"


def closed(_: Any) -> None:
    """As uvloop does it."""
    raise RuntimeError("unable to perform operation on a transport; the handler is closed")


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the server has noticed that a client will send nothing more, or is gone."""
    noticed = asyncio.Event()
    for name in ("eof_received", "connection_lost"):
        original = getattr(ClaimingProtocol, name)

        def noted(self: ClaimingProtocol, *args: Any, original: Any = original) -> Any:
            found = original(self, *args)
            if original.__name__ == "connection_lost":
                monkeypatch.setattr(self.transport, "write", closed)
            noticed.set()
            return found

        monkeypatch.setattr(ClaimingProtocol, name, noted)
    return noticed


@pytest.mark.parametrize(
    ("first", "behind", "statuses"),
    [(b"", b"", [202]), (b"", LIST, [202]), (LIST, b"", [200, 202]), (LIST, LIST, [200, 202])],
    ids=["alone", "something behind it", "something before it", "both"],
)
async def test_who_has_nothing_more_to_say_is_told_of_the_claim_whatever_was_sent_with_it(
    served: Served, slow_gate: Gate, ended: asyncio.Event, first: bytes, behind: bytes, statuses: list[int]
) -> None:
    asked, go_on = slow_gate
    sale = await served.node.create()
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(first + request(sale, "ann") + behind)
        writer.write_eof()
        await asked.wait()
        await ended.wait()
        go_on.set()
        assert [(await read(reader))[0] for _ in statuses] == statuses
        assert await reader.read() == b""


@pytest.mark.parametrize("behind", [b"", LIST], ids=["alone", "something behind it"])
async def test_who_has_nothing_more_to_say_is_told_of_the_place_in_a_line(
    served: Served, ended: asyncio.Event, behind: bytes
) -> None:
    sale = await served.node.create(order="draw", begins_at="2100-01-01T00:00:00Z", ends_at="2100-01-02T00:00:00Z")
    async with connected(served) as (reader, writer), asyncio.timeout(PATIENCE_S):
        writer.write(joining(sale, "ann") + behind)
        writer.write_eof()
        status, headers, entry = await read(reader)
        assert (status, headers["connection"], entry["state"]) == (201, "close", "waiting")
        assert await reader.read() == b""


async def test_a_client_that_is_gone_leaves_no_error_however_many_requests_it_has_sent(
    served: Served, slow_gate: Gate, ended: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """Any buyer could fill the log: each of its requests but the last was answered into a closed connection."""
    asked, go_on = slow_gate
    sale = await served.node.create(units=9)
    caplog.set_level(logging.INFO)
    host, port = "127.0.0.1", int(served.url.rpartition(":")[2])
    with socket.create_connection((host, port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(request(sale, "ann") + request(sale, "bob") + LIST)
        await asked.wait()
    async with asyncio.timeout(PATIENCE_S):
        await ended.wait()
        go_on.set()
        while any("run_asgi" in str(task.get_coro()) for task in asyncio.all_tasks()):
            await asyncio.sleep(0.01)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert (await served.node.buy(sale, "ann")).status_code == 409  # the first claim had been let in
