"""Servers with replicas, as a run hurts them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seckill.backends.redis import keys
from seckill.backends.redis.server_choice import open_servers
from seckill.backends.redis.servers import Server
from seckill.lab.chaos.servers.choice import GATES
from seckill.lab.chaos.servers.replicated import ReplicatedServer, cluster, sentinel
from seckill.lab.chaos.servers.server import Can, is_stopped
from tests.patience import PATIENCE_S


async def ask(url: str, *command: object) -> Any:
    servers = open_servers(url)

    async def call(server: Server) -> Any:
        return await server.client.execute_command(*command)  # type: ignore[no-untyped-call]

    try:
        return await servers.follow(keys.orders(0), call)
    finally:
        await servers.close()


@pytest.mark.parametrize("make", [cluster, sentinel], ids=["cluster", "sentinel"])
async def test_a_silent_replica_takes_over_without_what_it_has_not_heard(
    folder: Path, make: Callable[[Path], ReplicatedServer]
) -> None:
    assert make in GATES.values()
    server = make(folder)
    assert Can.SILENCE in server.can
    key = keys.orders(0)
    await server.start()
    try:
        await ask(server.url, "SET", key, "heard")
        assert await ask(server.url, "WAIT", 1, 0) >= 1
        await server.silence()
        await ask(server.url, "SET", key, "unheard")
        assert await server.unheard() > 0, "its primary counts it, and writes"
        await server.kill()
        await server.start()
        assert await ask(server.url, "GET", key) == b"heard"
        await ask(server.url, "SET", key, "goes on")
        server.pause()
        async with asyncio.timeout(PATIENCE_S):
            while not all(map(is_stopped, server.pids())):
                await asyncio.sleep(0.01)
        server.resume()
        await server.start()
        assert await ask(server.url, "GET", key) == b"goes on"
    finally:
        await server.stop()
