"""`WS /v1/ws`: any number of a buyer's orders and entries over one socket, each at once and at each change.

Only the first message says who the buyer is: a page of another site can open a socket, but it does not have the token.
"""

import asyncio
import time
from collections import deque
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from seckill.domain.line import EntryState
from seckill.domain.order import TRANSITIONS
from seckill.domain.order_number import OrderNumber
from seckill.engine.line.watching import seen_in
from seckill.errors import GateError, LedgerError
from seckill.web.buyers.buyer_tokens import Buyer, Unauthenticated
from seckill.web.buyers.token_keys import KeysNotKnown
from seckill.web.connections.waiting_seats import NoSeat
from seckill.web.context import Context, context
from seckill.web.incidents import Incident
from seckill.web.line.line_entries import view as entry_view
from seckill.web.orders.buyer_orders import order_number, view
from seckill.web.problems import HttpProblem, suspicious

TOKEN_WITHIN_S = 10.0
ORDERS_MAX = 50
MESSAGES_PER_S_MAX = 20
ENTRY_MAX = 1 << 48  # entries are numbered one after the other
SEND_WITHIN_S = 10.0  # a client that takes longer to read a line counts as gone

VIOLATION = 1008
RESTART = 1012
UNAUTHENTICATED = 4401
TRY_AGAIN = 1013  # from IANA's registry: it cannot be decided now
TOO_MANY = 4429


class _Hello(msgspec.Struct, forbid_unknown_fields=True):
    token: str


class _Wish(msgspec.Struct, forbid_unknown_fields=True):
    watch: str


class _Error(msgspec.Struct):
    error: str
    order_id: str  # the id to be watched, even if it is an entry's


_hello = msgspec.json.Decoder(_Hello)
_wish = msgspec.json.Decoder(_Wish)


class _End(Exception):
    """Ends the socket with a code, or without one if the client is gone."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


async def live(websocket: WebSocket) -> None:
    if not _from_here(websocket):
        refusal = HttpProblem(403, "forbidden", "A page of another site may not open a socket here.")
        context(websocket).note(suspicious(refusal, Incident.SOCKET_REFUSED), websocket)
        await websocket.send_denial_response(refusal.response())
        return
    await websocket.accept()
    ctx = context(websocket)
    code: int | None = None
    try:
        buyer = await _greeted(ctx, websocket)
        with ctx.seats.taken_by(buyer.user, ctx.counted_address(websocket)):
            code = await _Conversation(ctx, websocket, buyer).hold()
    except NoSeat:
        code = TOO_MANY
    except _End as end:
        code = end.code
    if code in (VIOLATION, UNAUTHENTICATED, TOO_MANY):
        ctx.incidents.note(Incident.SOCKET_REFUSED, ctx.client_of(websocket))
    if code is not None:
        try:
            await websocket.close(code)
        except (WebSocketDisconnect, OSError):
            return


def _from_here(websocket: WebSocket) -> bool:
    """Whether the socket was opened by no page, by one of ours, or by one of an allowed origin: browsers always say
    which."""
    origins = websocket.headers.getlist("origin")
    if not origins:
        return True
    try:
        origin = urlsplit(origins[0])
    except ValueError:
        return False
    if len(origins) == 1 and origins[0] in context(websocket).settings.origins:
        return True
    return (
        len(origins) == 1
        and origin.scheme in ("http", "https")
        and origin.netloc.lower() == websocket.headers.get("host", "").lower()
    )


async def _received(websocket: WebSocket) -> str:
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise _End(None)
    return message.get("text") or ""  # a message that is not text is not one of ours


async def _greeted(ctx: Context, websocket: WebSocket) -> Buyer:
    try:
        async with asyncio.timeout(TOKEN_WITHIN_S):
            hello = _hello.decode(await _received(websocket))
        return ctx.buyers.verify(hello.token, time.time())
    except KeysNotKnown:
        raise _End(TRY_AGAIN) from None
    except (TimeoutError, msgspec.DecodeError, Unauthenticated):
        raise _End(UNAUTHENTICATED) from None


class _Conversation:
    def __init__(self, ctx: Context, websocket: WebSocket, buyer: Buyer) -> None:
        self._ctx = ctx
        self._websocket = websocket
        self._buyer = buyer
        self._watching: dict[str, asyncio.Task[None]] = {}  # by the id that was sent
        self._received_at: deque[float] = deque(maxlen=MESSAGES_PER_S_MAX)

    async def hold(self) -> int | None:
        """Returns the code to close with, or None if the client is gone."""
        code = None
        try:
            async with asyncio.timeout(self._buyer.good_until_s - time.time()), asyncio.TaskGroup() as tasks:
                while True:
                    await self._obey(await self._next_wish(), tasks)
        except* TimeoutError:
            code = UNAUTHENTICATED
        except* _End as ends:
            code = next(end.code for end in ends.exceptions if isinstance(end, _End))
        return code

    async def _next_wish(self) -> _Wish:
        text = await _received(self._websocket)
        now = asyncio.get_running_loop().time()
        if len(self._received_at) == MESSAGES_PER_S_MAX and now - self._received_at[0] < 1.0:
            raise _End(VIOLATION)
        self._received_at.append(now)
        try:
            return _wish.decode(text)
        except msgspec.DecodeError:
            raise _End(VIOLATION) from None

    async def _obey(self, wish: _Wish, tasks: asyncio.TaskGroup) -> None:
        number, entry = order_number(self._ctx, wish.watch), self._ctx.entry_ids.decode(wish.watch)
        if number is None and entry is None:
            await self._send(_Error("not_found", wish.watch))
            return
        if (earlier := self._watching.pop(wish.watch, None)) is not None:
            earlier.cancel()  # asked for again, so it is sent again
        if len(self._watching) >= ORDERS_MAX:
            await self._send(_Error("too_many", wish.watch))
            return
        task = tasks.create_task(self._watch(wish.watch, number, entry))
        self._watching[wish.watch] = task
        task.add_done_callback(lambda done: self._forget(wish.watch, done))

    def _forget(self, watched: str, task: asyncio.Task[None]) -> None:
        if self._watching.get(watched) is task:
            del self._watching[watched]

    async def _watch(self, watched: str, number: OrderNumber | None, entry: int | None) -> None:
        """Ids of orders and of entries look alike, and most could be either. The numbers of entries are small: only
        once in 65,536 times is an order's id looked for among them, in vain."""
        try:
            known = entry is not None and entry < ENTRY_MAX and await self._watch_entry(entry)
            if not known and (number is None or not await self._watch_order(number)):
                await self._send(_Error("not_found", watched))
        except (GateError, LedgerError):
            await self._send(_Error("not_ready", watched))

    async def _watch_order(self, number: OrderNumber) -> bool:
        """False: there is none of this buyer's."""
        async with self._ctx.orders.watch(self._buyer.user, number) as watch:
            if watch is None:
                return False
            await self._send(view(self._ctx, watch.order))
            while TRANSITIONS[watch.order.state]:
                if not await watch.change():
                    raise _End(RESTART)
                await self._send(view(self._ctx, watch.order))
        return True

    async def _watch_entry(self, number: int) -> bool:
        """False: there is none of this buyer's."""
        line, user = self._ctx.line, self._buyer.user
        found = await line.desk.find(number, user)
        if found is None:
            return False
        await self._send(await entry_view(self._ctx, found))
        while found is not None and found.entry.state.shown is EntryState.WAITING:
            async with line.watches.watch(found.entry) as changed:
                await changed.wait()
            if line.watches.closing:
                raise _End(RESTART)
            seen, found = seen_in(found.entry), await line.desk.find(number, user)
            if found is not None and seen_in(found.entry) != seen:
                await self._send(await entry_view(self._ctx, found))
        return True

    async def _send(self, message: Any) -> None:
        if not self._ctx.buyers.trusts(self._buyer):
            raise _End(UNAUTHENTICATED)
        try:
            async with asyncio.timeout(SEND_WITHIN_S):
                await self._websocket.send_text(msgspec.json.encode(message).decode())
        except (TimeoutError, WebSocketDisconnect, OSError):
            raise _End(None) from None
