"""How chaos's buyers call the API: they go to the next node when one does not answer, and hang up at times.

`AsyncClient` would repeat a claim by itself and make exceptions of refusals. Here the buyers decide what to repeat, and
every answer is counted: so they use what carries that client's messages.
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
    """The connection broke, or nothing came in time. What was asked for may have been done."""


class Caller:
    """One request at a time."""

    def __init__(self, ports: Sequence[int], first: int) -> None:
        self._nodes = [HttpTransport(f"http://127.0.0.1:{port}") for port in ports]
        self._ports = ports
        self._turn = first

    async def call(
        self, method: str, path: str, token: str, body: object = None, *, key: str = "", listen: bool = True
    ) -> tuple[int, Any]:
        """Status and content. Without `listen` the request is sent, and its answer is not awaited."""
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
        """Once the request is sent, without a look at the answer: no client does that, so the bytes go by hand."""
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
