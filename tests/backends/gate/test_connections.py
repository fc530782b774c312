"""A connection that is reset while it lies idle, on the event loop that production runs on."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import uvloop
from redis import exceptions
from redis.asyncio import Redis

from seckill.backends.redis.command_rights import NEEDED
from seckill.backends.redis.gate import RedisGate, connect
from seckill.lab.servers.proxy import Proxy, Trouble


async def write_after_reset(client: Redis) -> None:
    connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        await connection.send_command("PING")
        await connection.read_response()
        connection._writer.transport.abort()  # as if the other side had: it is found closed at the next write
        await connection.send_command("PING")
        await connection.read_response()
    finally:
        await client.connection_pool.release(connection)
        await client.aclose()


def test_a_reset_is_a_lost_connection(valkey_url: str) -> None:
    with pytest.raises(exceptions.ConnectionError):
        uvloop.run(write_after_reset(connect(valkey_url)))


def test_control_the_library_alone_tells_something_else(valkey_url: str) -> None:
    with pytest.raises(RuntimeError):
        uvloop.run(write_after_reset(Redis.from_url(valkey_url)))


async def test_the_check_at_the_start_asks_for_little_time(valkey_url: str) -> None:
    """On a slow way every call counts: a role whose check takes longer than a claim may take would never start."""
    async with Proxy(Path(unquote(urlsplit(valkey_url).path))) as proxy:
        proxy.set_trouble(Trouble.SLOW)  # counts what goes to and fro
        gate = RedisGate(f"redis://127.0.0.1:{proxy.port}", timeout_s=60, backlog_max=10)
        await gate.check("fast")
        await gate.close()
        assert 0 < proxy.touched < len(NEEDED)
