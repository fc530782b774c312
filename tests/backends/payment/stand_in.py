"""A small HTTP server that stands in for a payment provider, and can be in trouble."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

SLOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    target: str  # path and query
    headers: Mapping[str, str]  # names in lower case
    body: bytes


@dataclass(frozen=True, slots=True)
class Said:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class StandIn(ABC):
    """`answer` is what it does and says; a refusal is its own affair."""

    def __init__(self) -> None:
        self.url = ""
        self.kind = ""
        self.asked: list[Asked] = []

    def trouble(self, kind: str) -> None:
        self.kind = kind

    @abstractmethod
    def answer(self, asked: Asked) -> Said: ...

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().splitlines():
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, target, _ = head[0].split()
                self.asked.append(Asked(method, target, headers, body))
                if self.kind == "away":
                    break
                if self.kind == "slow":
                    await asyncio.sleep(SLOW_S)
                said = self.answer(self.asked[-1])
                if self.kind == "mute":
                    break
                lines = "".join(f"{name}: {value}\r\n" for name, value in said.headers.items())
                start = f"HTTP/1.1 {said.status} X\r\n{lines}Content-Length: {len(said.body)}\r\n\r\n"
                writer.write(start.encode() + said.body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


S = TypeVar("S", bound=StandIn)


@asynccontextmanager
async def served(stand_in: S) -> AsyncIterator[S]:
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with suppress(asyncio.CancelledError):  # the test is over
            await stand_in.serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    stand_in.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield stand_in
    finally:
        server.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
