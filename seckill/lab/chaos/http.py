"""As much of an HTTP client as buyers need: one connection, one request at a time, and no answer is an answer."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

ANSWER_WITHIN_S = 8.0


class Unanswered(Exception):
    """The connection broke, or nothing came in time. What was asked for may have been done."""


class Caller:
    """Goes to the next node when one does not answer."""

    def __init__(self, ports: Sequence[int], first: int) -> None:
        self._ports = ports
        self._turn = first
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(
        self, method: str, path: str, token: str, body: object = None, *, key: str = "", listen: bool = True
    ) -> tuple[int, Any]:
        """Status and content. Without `listen` the request is sent, and its answer is not awaited."""
        content = b"" if body is None else msgspec.json.encode(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: chaos\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        )
        if key:
            head += f"Idempotency-Key: {key}\r\n"
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                reader, writer = self._streams or await self._connect()
                writer.write(f"{head}\r\n".encode() + content)
                if not listen:
                    await writer.drain()
                    raise Unanswered
                return await _answer(reader)
        except (OSError, TimeoutError, EOFError, ValueError) as error:
            await self.close()
            raise Unanswered from error
        except (Unanswered, asyncio.CancelledError):
            await self.close()
            raise

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._turn += 1
        self._streams = await asyncio.open_connection("127.0.0.1", self._ports[self._turn % len(self._ports)])
        return self._streams

    async def close(self) -> None:
        if self._streams is not None:
            _, writer = self._streams
            self._streams = None
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return status, msgspec.json.decode(await reader.readexactly(length) or b"null")
