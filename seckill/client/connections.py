"""HTTP/1.1 over asyncio's streams, limited to what the API and the proxies in front of it use."""

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

import httptools

from seckill.client.errors import ClientError, NoAnswer
from seckill.http_reply import HttpReply

# The API closes a connection that was idle for 15 s. If it closes while we write, the fate of the request is unknown.
IDLE_S_MAX = 10.0
IDLE_MAX = 100
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    repeatable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class MessageCarrier(Protocol):
    """Carries messages to one API. Any number of tasks may send at the same time."""

    @property
    def url(self) -> str: ...

    async def send(self, message: Message, within_s: float) -> Reply:
        """Raises NoAnswer."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used_s: float = 0.0

    def is_fresh(self) -> bool:
        unused = time.monotonic() - self.used_s < IDLE_S_MAX
        return unused and not self.reader.at_eof() and not self.writer.is_closing()


class HttpTransport:
    """Ignores proxies of the environment: they must not see tokens, and may not know the host."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.url = url.rstrip("/")
        address, self._host = _read(self.url)
        secure = address.scheme == "https"
        self._port = address.port or (443 if secure else 80)
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self._host_header = address.netloc.rpartition("@")[2].encode("idna").decode()
        self._prefix = address.path
        self._idle: list[_Connection] = []

    async def send(self, message: Message, within_s: float) -> Reply:
        try:
            async with asyncio.timeout(within_s):
                return await self._exchange(message)
        except TimeoutError:
            raise NoAnswer(self.url, f"nothing came within {within_s:g} s") from None
        except (OSError, httptools.HttpParserError) as error:
            raise NoAnswer(self.url, _reason(error)) from error

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await _closed(connection)

    async def _exchange(self, message: Message) -> Reply:
        # A request that must not be done twice goes over a new connection, which the API cannot be about to close.
        connection = (self._used() if message.repeatable else None) or await self._connect()
        try:
            connection.writer.write(self.written(message))
            # Reads while it sends: the API does not take a refused upload to its end.
            sending = asyncio.ensure_future(connection.writer.drain())
            sending.add_done_callback(_noticed)
            reading = HttpReply()
            while not reading.is_done:
                reading.feed(await connection.reader.read(_AT_ONCE))
            if not sending.done():
                sending.cancel()
                reading.keeps_alive = False
        except BaseException:
            connection.writer.transport.abort()
            raise
        connection.used_s = time.monotonic()
        if reading.keeps_alive and len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            await _closed(connection)
        return Reply(status=reading.status, headers=reading.headers, body=bytes(reading.body))

    def _used(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.writer.transport.abort()
        return None

    async def _connect(self) -> _Connection:
        return _Connection(*await asyncio.open_connection(self._host, self._port, ssl=self._tls))

    def written(self, message: Message) -> bytes:
        headers = {"Host": self._host_header, "Content-Length": str(len(message.body)), **message.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{message.method} {self._prefix}{message.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + message.body


def _read(url: str) -> tuple[SplitResult, str]:
    """Returns the address in its parts, and its host as it is looked up. Raises ClientError."""
    try:
        address = urlsplit(url)
        host = (address.hostname or "").encode("idna").decode()
        address.path.encode("ascii")
        is_address = address.scheme in ("http", "https") and host != "" and address.port != 0
    except ValueError:  # the brackets, the port or a name cannot be
        is_address = False
    if not is_address:
        raise ClientError(f"{url} is not an address of the API: use http://… or https://….")
    return address, host


def _noticed(sending: "asyncio.Future[None]") -> None:
    """Marks an error of sending as seen: the answer, or its absence, reports it."""
    if not sending.cancelled():
        sending.exception()


async def _closed(connection: _Connection) -> None:
    connection.writer.close()
    with contextlib.suppress(OSError):
        await connection.writer.wait_closed()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror | ssl.SSLError) and error.errno:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
