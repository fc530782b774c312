"""What a rehearsal asks of the deployment."""

import asyncio

import pytest

from seckill.lab.rehearsal import deployment
from seckill.lab.rehearsal.deployment import OperatorSite

HOLDS = (
    b'{"verdict":"holds","at":"2026-11-19T10:00:00Z","orders_compared_at":null,"took_ms":1,"invariants":[],"units":[]}'
)
SLOW_S = 1.0


async def answer_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(SLOW_S)
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(HOLDS) + HOLDS
    )
    writer.close()


async def test_it_waits_for_the_audit_of_many_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """It compares every order of the deployment: with many of them this takes longer than any other answer."""
    monkeypatch.setattr(deployment, "ASK_WITHIN_S", SLOW_S / 4)
    async with await asyncio.start_server(answer_slowly, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        site = OperatorSite(f"http://{host}:{port}", "key")
        assert await site.text("/version", within_s=SLOW_S / 4) is None
        assert await site.audit() == "holds"
        await site.close()
