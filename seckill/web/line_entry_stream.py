"""`GET /v1/entries/{entry_id}/events`: the entry now and at each change, as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from seckill.domain.line import EntryState
from seckill.engine.line.watching import seen_in
from seckill.ports.line import Standing
from seckill.web.buyer_tokens import Buyer
from seckill.web.context import Context, context
from seckill.web.line_entries import entry_number, view
from seckill.web.order_stream import EVENT_HEADERS, HEARTBEAT_EVERY_S, MEDIA_TYPE, RETRY_MS
from seckill.web.problems import not_yours
from seckill.web.responses import NO_STORE


async def entry_events(request: Request) -> Response:
    ctx = context(request)
    buyer = ctx.require_token(request)
    number = entry_number(ctx, request)
    return _EntryEvents(ctx, buyer, ctx.counted_address(request), number, request.headers.get("last-event-id"))


class _EntryEvents(StreamingResponse):
    """Looks when it is sent, so that what it holds is given back however the sending ends."""

    def __init__(self, ctx: Context, buyer: Buyer, address: str, number: int, seen: str | None) -> None:
        super().__init__((), headers=EVENT_HEADERS, media_type=MEDIA_TYPE)
        self._ctx = ctx
        self._buyer = buyer
        self._address = address
        self._number = number
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._ctx.seats.taken_by(self._buyer.user, self._address):
            found = await self._find()
            if _name(found) == self._seen and not _goes_on(found):
                # The one answer after which an EventSource does not come back.
                await Response(None, 204, NO_STORE)(scope, receive, send)
            elif scope["method"] == "HEAD":
                await Response(None, 200, EVENT_HEADERS, MEDIA_TYPE)(scope, receive, send)
            else:
                self.body_iterator = self._events(found)
                await super().__call__(scope, receive, send)

    async def _find(self) -> Standing:
        found = await self._ctx.line.desk.find(self._number, self._buyer.user)
        if found is None:
            raise not_yours("entry")
        return found

    async def _events(self, found: Standing) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        expires_at = loop.time() + self._buyer.good_until_s - time.time()
        yield b"retry: %d\n\n" % RETRY_MS
        if _name(found) != self._seen:
            yield await self._event(found)
        while _goes_on(found) and not self._ctx.line.watches.closing and (left_s := expires_at - loop.time()) > 0:
            async with self._ctx.line.watches.watch(found.entry) as changed:
                try:
                    async with asyncio.timeout(min(HEARTBEAT_EVERY_S, left_s)):
                        await changed.wait()
                except TimeoutError:
                    yield b":\n\n"
                    continue
            before, found = found, await self._find()
            if not self._ctx.buyers.trusts(self._buyer):
                return
            if _name(found) != _name(before):
                yield await self._event(found)

    async def _event(self, found: Standing) -> bytes:
        data = msgspec.json.encode(await view(self._ctx, found))
        return b"id: %b\nevent: state\ndata: %b\n\n" % (_name(found).encode(), data)


def _goes_on(found: Standing) -> bool:
    return found.entry.state.shown is EntryState.WAITING


def _name(found: Standing) -> str:
    """Of what a buyer has seen: the state, and the place if there is one."""
    state, place = seen_in(found.entry)
    return f"{state}-{place or 0}"
