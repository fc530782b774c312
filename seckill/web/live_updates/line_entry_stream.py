"""`GET /v1/entries/{entry_id}/events`: the entry now and at each change, as server-sent events."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.line import EntryState
from seckill.engine.line.watching import seen_in
from seckill.ports.line import Standing
from seckill.web.context import Context, context
from seckill.web.line.line_entries import entry_number, view
from seckill.web.line.line_schemas import Entry
from seckill.web.live_updates.event_stream import EventStream
from seckill.web.problems import not_yours


async def entry_events(request: Request) -> Response:
    ctx = context(request)
    buyer = ctx.require_token(request)
    return EventStream(request, ctx, buyer, _watched(ctx, buyer.user, entry_number(ctx, request)))


@asynccontextmanager
async def _watched(ctx: Context, user: str, number: int) -> AsyncIterator["_WatchedEntry"]:
    yield _WatchedEntry(ctx, await _find(ctx, user, number))


async def _find(ctx: Context, user: str, number: int) -> Standing:
    found = await ctx.line.desk.find(number, user)
    if found is None:
        raise not_yours("entry")
    return found


class _WatchedEntry:
    def __init__(self, ctx: Context, found: Standing) -> None:
        self._ctx = ctx
        self._found = found

    @property
    def name(self) -> str:
        """The state, and the place if there is one."""
        state, place = seen_in(self._found.entry)
        return f"{state}-{place or 0}"

    @property
    def goes_on(self) -> bool:
        return self._found.entry.state.shown is EntryState.WAITING

    async def shown(self) -> Entry:
        return await view(self._ctx, self._found)

    async def change(self) -> bool:
        watches, before = self._ctx.line.watches, self.name
        while self.name == before:
            entry = self._found.entry
            async with watches.watch(entry) as changed:
                await changed.wait()
            if watches.closing:
                return False
            self._found = await _find(self._ctx, entry.user, entry.id)
        return True
