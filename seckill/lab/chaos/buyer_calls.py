"""How the buyers of a fault run call the API: they go to the next node when one does not answer, and sometimes hang up.

`AsyncClient` would repeat a claim by itself and turn refusals into exceptions. Here the buyers decide what to repeat,
and every answer is counted, so they use the transport below that client.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from seckill.client import NoAnswer
from seckill.client.connections import HttpTransport, Message

ANSWER_WITHIN_S = 8.0


class Unanswered(Exception):
    """The connection broke, or no answer came in time. The request may have taken effect."""


class Caller:
    """Sends one request at a time."""

    def __init__(self, ports: Sequence[int], first: int) -> None:
        self._nodes = [HttpTransport(f"http://127.0.0.1:{port}") for port in ports]
        self._ports = ports
        self._turn = first

    async def call(
        self, method: str, path: str, token: str, body: object = None, *, key: str = "", listen: bool = True
    ) -> tuple[int, Any]:
        """Returns status and content. Without `listen`, the request is sent but its answer is not awaited."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        content = b"" if body is None else msgspec.json.encode(body)
        message = Message(method=method, path=path, headers=headers, body=content, repeatable=True)
        node = self._nodes[self._turn % len(self._nodes)]
        try:
            if not listen:
                await self._hang_up(node.written(message))
                raise Unanswered
            reply = await node.send(message, ANSWER_WITHIN_S)
            return reply.status, msgspec.json.decode(reply.body or b"null")
        except (NoAnswer, OSError, TimeoutError, ValueError) as error:
            self._turn += 1
            raise Unanswered from error

    async def _hang_up(self, request: bytes) -> None:
        """Closes the connection once the request is sent, without reading the answer. HTTP clients cannot do that, so
        this writes the bytes itself."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            _, writer = await asyncio.open_connection("127.0.0.1", self._ports[self._turn % len(self._ports)])
            writer.write(request)
            await writer.drain()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def close(self) -> None:
        for node in self._nodes:
            await node.close()
