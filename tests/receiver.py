"""A shop's receiver of webhooks, on loopback: it records what it gets, and answers as a test wants it to."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from standardwebhooks import Webhook

from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def order(self) -> str | None:
        found: str | None = self.event["data"].get("order_id")
        return found

    def verified_with(self, secret: str) -> Any:
        """Verifies the signature with the convention's own library."""
        return Webhook(secret).verify(self.body, dict(self.headers))


Answer = Callable[[Received], Awaitable[int]]


async def yes(_: Received) -> int:
    return 200


class Receiver:
    def __init__(self) -> None:
        self.answer: Answer = yes
        self.got: list[Received] = []  # in the order in which they came
        self.taken: list[Received] = []  # of these, those that were answered with yes
        self.connections = 0
        self.reply_headers = ""
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Condition()

    def url(self, path: str = "/hook") -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{path}"

    def at(self, path: str) -> list[Received]:
        return [each for each in self.taken if each.path == path]

    def times(self) -> Counter[tuple[str, str]]:
        """Counts how often each event was taken at each path."""
        return Counter((each.path, each.id) for each in self.taken)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            received = await self._read(reader)
            self.got.append(received)
            await self._tell()
            status = await self.answer(received)
            if 200 <= status < 300:
                self.taken.append(received)
            head = f"HTTP/1.1 {status} x\r\nContent-Length: 2\r\nConnection: close\r\n{self.reply_headers}\r\n"
            writer.write(head.encode() + b"ok")
            await writer.drain()
            await self._tell()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    @staticmethod
    async def _read(reader: asyncio.StreamReader) -> Received:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lines = [line.split(": ", 1) for line in head[1:] if line]
        headers = {name.lower(): value for name, value in lines}
        return Received(head[0].split(" ")[1], headers, await reader.readexactly(int(headers["content-length"])))

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Receiver"]:
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        try:
            yield self
        finally:
            self._server.close()


def in_order(received: Sequence[Received], cursors: Mapping[str, int]) -> bool:
    """True if the first arrivals of each order's events came in the order of the feed."""
    seen: dict[str, list[int]] = {}
    for each in received:
        places = seen.setdefault(each.order or "", [])
        if (place := cursors[each.id]) not in places:
            places.append(place)
    return all(places == sorted(places) for order, places in seen.items() if order)
