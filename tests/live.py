"""Clients of the two live channels, for a server at a URL."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.patience import PATIENCE_S


@dataclass
class Event:
    id: str
    name: str
    order: dict[str, Any]


class Stream:
    """An event stream that is being read."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.comments = 0
        self.retry_ms: int | None = None
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """Returns None if the stream has ended."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_S):
            async for line in self._lines:
                if line.startswith(":"):
                    self.comments += 1
                elif line.startswith("retry: "):
                    self.retry_ms = int(line.removeprefix("retry: "))
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    return Event(fields["id"], fields["event"], json.loads(fields["data"]))
        return None

    async def states(self) -> list[str]:
        """All that come until the stream ends."""
        found = []
        while (event := await self.next()) is not None:
            assert event.id == event.order["state"]
            found.append(event.id)
        return found


@asynccontextmanager
async def stream(url: str, order_id: str, token: str, seen: str | None = None) -> AsyncIterator[Stream]:
    headers = {"Authorization": f"Bearer {token}"} | ({} if seen is None else {"Last-Event-ID": seen})
    async with (
        # Not verifying saves reading the certificates, which takes longer than everything else here.
        httpx2.AsyncClient(timeout=PATIENCE_S, verify=False) as http,
        http.stream("GET", f"{url}/v1/orders/{order_id}/events", headers=headers) as response,
    ):
        yield Stream(response)


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, message: Any) -> None:
        await self.connection.send(json.dumps(message))

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            heard: dict[str, Any] = json.loads(await self.connection.recv())
        return heard

    async def closed(self) -> int:
        """The code it is closed with, whatever comes before."""
        while True:
            try:
                await self.hear()
            except ConnectionClosed as end:
                return 1006 if end.rcvd is None else end.rcvd.code  # 1006: it did not say why


@asynccontextmanager
async def socket(url: str, token: str | None = None, **options: Any) -> AsyncIterator[Socket]:
    address = url.replace("http://", "ws://") + "/v1/ws"
    async with connect(address, proxy=None, ping_interval=None, open_timeout=PATIENCE_S, **options) as connection:
        opened = Socket(connection)
        if token is not None:
            await opened.say({"token": token})
        yield opened
