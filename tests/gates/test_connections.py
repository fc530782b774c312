"""A connection that is reset while it lies idle, on the event loop that production runs on."""

import pytest
import uvloop
from redis import exceptions
from redis.asyncio import Redis

from seckill.gates.redis import connect


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
