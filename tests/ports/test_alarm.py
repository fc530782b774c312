"""Alarms, against receivers that behave badly: the caller that raises one goes on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from seckill.ports import alarm
from seckill.ports.alarm import Alarm
from tests.patience import PATIENCE_S

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def receiver(answer: Answer) -> AsyncIterator[str]:
    """The address of a receiver that hears an alarm and answers like this."""

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answer(writer)
        writer.close()
        with suppress(ConnectionError):  # it has hung up
            await writer.wait_closed()
        over.set()

    over = asyncio.Event()
    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    await over.wait()
    server.close()
    await server.wait_closed()


async def test_an_answer_that_is_not_http() -> None:
    answered = []

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"no HTTP here\r\n\r\n")
        answered.append(True)

    async with receiver(answer) as url:
        await Alarm(url).raise_("something is wrong", {})
    assert answered


async def test_an_answer_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, each in time: only a limit on the whole ends it."""
    monkeypatch.setattr(alarm, "TIMEOUT_S", 0.5)
    enough = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        while not enough.is_set():
            writer.write(b"H")
            await asyncio.sleep(0.05)

    async with receiver(answer) as url:
        raising = asyncio.create_task(Alarm(url).raise_("something is wrong", {}))
        done, _ = await asyncio.wait({raising}, timeout=PATIENCE_S)
        enough.set()
        assert done, "it held up the caller that raised it"
        await raising
