"""The proxy disturbs connections; each test looks whether it really did."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from seckill.lab.servers.proxy import Proxy, Trouble
from tests.patience import PATIENCE_S


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[:2]) as made:
        yield made


async def ask(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], what: bytes, within_s: float = 5) -> bytes:
    reader, writer = streams
    writer.write(what)
    async with asyncio.timeout(within_s):
        return await reader.read(100)


async def until_broken(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ConnectionResetError):
            await streams[0].read(100)


async def test_a_proxy_passes_bytes_on(proxy: Proxy) -> None:
    streams = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ask(streams, b"hello") == b"hello"
    assert proxy.touched == 0
    streams[1].close()


async def test_a_cut_breaks_what_is_there_and_nothing_after_it(proxy: Proxy) -> None:
    streams = await asyncio.open_connection("127.0.0.1", proxy.port)
    await ask(streams, b"hello")
    assert proxy.cut() == 1
    await until_broken(streams)
    again = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ask(again, b"hello") == b"hello"
    again[1].close()


async def test_a_hole_swallows_and_breaks_in_the_end(proxy: Proxy) -> None:
    streams = await asyncio.open_connection("127.0.0.1", proxy.port)
    await ask(streams, b"hello")
    proxy.set_trouble(Trouble.HOLE)
    with pytest.raises(TimeoutError):
        await ask(streams, b"anybody there?", within_s=0.2)
    assert proxy.touched == 1
    proxy.set_trouble(None)
    await until_broken(streams)


async def test_slow_is_late_and_whole(proxy: Proxy) -> None:
    streams = await asyncio.open_connection("127.0.0.1", proxy.port)
    proxy.set_trouble(Trouble.SLOW)
    assert await ask(streams, b"hello") == b"hello"
    assert proxy.touched == 2, "there and back"
    streams[1].close()


@pytest.mark.parametrize("silent", [False, True])
async def test_the_answer_to_one_request_is_lost(proxy: Proxy, silent: bool) -> None:
    streams = await asyncio.open_connection("127.0.0.1", proxy.port)
    proxy.lose_answer(b"COMMIT", b"COMMIT", silent=silent)
    assert await ask(streams, b"BEGIN") == b"BEGIN"
    if silent:
        with pytest.raises(TimeoutError):
            await ask(streams, b"COMMIT", within_s=0.2)
    else:
        streams[1].write(b"COMMIT")
        await until_broken(streams)
    assert proxy.hits == 1
    streams[1].close()
    again = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ask(again, b"COMMIT") == b"COMMIT", "one only"
    again[1].close()


@pytest.mark.parametrize("trouble", [None, Trouble.NO_GOODBYE])
async def test_a_goodbye_arrives_unless_it_is_hidden(trouble: Trouble | None) -> None:
    async def answer_and_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"Not " + await reader.read(100))
        writer.close()

    server = await asyncio.start_server(answer_and_hang_up, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[:2]) as proxy:
        proxy.set_trouble(trouble)
        streams = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await ask(streams, b"now") == b"Not now"
        if trouble is None:
            await until_broken(streams)
        else:
            for _ in range(3):  # also once the proxy has noticed that no one listens any more
                with pytest.raises(TimeoutError):
                    await ask(streams, b"hello?", within_s=0.1)
            streams[1].close()
            async with asyncio.timeout(PATIENCE_S):
                while proxy.connections:
                    await asyncio.sleep(0.01)
