"""An ASGI application called without a socket."""

import asyncio
from typing import Any
from urllib.parse import unquote

from seckill.client.connections import Message, Reply
from seckill.client.errors import NoAnswer


class InProcess:
    """Sends a client's messages straight to the application."""

    url = "http://seckill.testing"

    def __init__(self, app: Any) -> None:
        self._app = app

    async def send(self, message: Message, within_s: float) -> Reply:
        raw_path, _, query = message.path.partition("?")
        body = [{"type": "http.request", "body": message.body, "more_body": False}]
        sent: list[Any] = []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": message.method,
            "scheme": "http",
            "path": unquote(raw_path),
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in message.headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("seckill.testing", 80),
        }

        async def receive() -> Any:
            return body.pop() if body else await asyncio.Event().wait()  # the client never hangs up

        async def send(part: Any) -> None:
            sent.append(part)

        try:
            async with asyncio.timeout(within_s):
                await self._app(scope, receive, send)
        except TimeoutError:
            raise NoAnswer(self.url, f"nothing came within {within_s:g} s") from None
        return Reply(
            status=sent[0]["status"],
            headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in sent[0]["headers"]},
            body=b"".join(part.get("body", b"") for part in sent[1:]),
        )

    async def close(self) -> None:
        """Does nothing: there is nothing to close."""
