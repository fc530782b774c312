"""Server-sent events: shows what a buyer watches, now and at each change."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from seckill.web.buyers.buyer_tokens import Buyer
from seckill.web.context import Context
from seckill.web.responses import NO_STORE

MEDIA_TYPE = "text/event-stream"
# Shorter than the time after which proxies and phone networks forget a silent connection.
HEARTBEAT_EVERY_S = 15.0
# Each stream has its own delay: all streams of a stopping node end at once, and must not reach the other nodes at once.
RETRY_MS_MIN = 1000
RETRY_MS_MAX = 3000
EVENT_HEADERS = {**NO_STORE, "X-Accel-Buffering": "no"}


class Watched(Protocol):
    """Something that a buyer watches, as the buyer was last told about it."""

    @property
    def name(self) -> str:
        """Names the state that is shown: another name means another event."""

    @property
    def goes_on(self) -> bool:
        """Returns False when nothing more can change."""

    async def shown(self) -> msgspec.Struct: ...

    async def change(self) -> bool:
        """Returns True when the name has changed, False when this node stops. The call may be cancelled and
        repeated."""


class EventStream(StreamingResponse):
    """Only looks when it is being sent, so that everything it holds is given back however the sending ends."""

    def __init__(
        self, request: Request, ctx: Context, buyer: Buyer, watching: AbstractAsyncContextManager[Watched]
    ) -> None:
        super().__init__((), headers=EVENT_HEADERS, media_type=MEDIA_TYPE)
        self._ctx = ctx
        self._buyer = buyer
        self._address = ctx.counted_address(request)
        self._seen = request.headers.get("last-event-id")
        self._watching = watching

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._ctx.seats.taken_by(self._buyer.user, self._address):
            async with self._watching as watched:
                if watched.name == self._seen and not watched.goes_on:
                    # The one answer after which an EventSource does not come back.
                    await Response(None, 204, NO_STORE)(scope, receive, send)
                elif scope["method"] == "HEAD":
                    await Response(None, 200, EVENT_HEADERS, MEDIA_TYPE)(scope, receive, send)
                else:
                    self.body_iterator = self._events(watched)
                    await super().__call__(scope, receive, send)

    async def _events(self, watched: Watched) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        expires_at = loop.time() + self._buyer.good_until_s - time.time()
        yield b"retry: %d\n\n" % random.randint(RETRY_MS_MIN, RETRY_MS_MAX)  # noqa: S311 (chance, not a secret)
        if watched.name != self._seen:
            yield await _event(watched)
        while watched.goes_on and (left_s := expires_at - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(HEARTBEAT_EVERY_S, left_s)):
                    goes_on = await watched.change()
            except TimeoutError:
                yield b":\n\n"
                continue
            if not goes_on or not self._ctx.buyers.trusts(self._buyer):
                return
            yield await _event(watched)


async def _event(watched: Watched) -> bytes:
    data = msgspec.json.encode(await watched.shown())
    return b"id: %b\nevent: state\ndata: %b\n\n" % (watched.name.encode(), data)
