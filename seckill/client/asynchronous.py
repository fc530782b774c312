"""The client for asyncio. The blocking one is made of it."""

import asyncio
import itertools
import random
import secrets
import ssl
import time
from datetime import datetime
from typing import Any, Self, TypeVar

import msgspec

from seckill.client import requests
from seckill.client.connections import HttpTransport, Message, MessageCarrier, Reply
from seckill.client.documents import Audit, Claimed, Custody, DeadLetter, Order, Orders, Round, Sale, Sales
from seckill.client.errors import ClientError, NoAnswer, Unavailable, refusal
from seckill.client.requests import Request
from seckill.domain.order import OrderState

T = TypeVar("T")

ANSWER_WITHIN_S = 10.0
REPEAT_FOR_S = 15.0
# Between two tries, where the API does not say how long: doubled each time, with jitter.
PAUSE_S_MIN = 0.2
PAUSE_S_MAX = 3.0
# One long poll; the API allows 30.
POLL_S_MAX = 25.0


class AsyncClient:
    """One API for one user: `token` is a buyer's token or the admin key.

    Reads, claims, payments and cancellations are repeated for `repeat_for_s` when the API does not answer or says
    "not now"; a claim always with its one key. Operators' changes are never repeated.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        within_s: float = ANSWER_WITHIN_S,
        repeat_for_s: float = REPEAT_FOR_S,
        tls: ssl.SSLContext | None = None,
        transport: MessageCarrier | None = None,
    ) -> None:
        self._transport = transport or HttpTransport(url, tls)
        self._token = _one_line(token)
        self._within_s = within_s
        self._repeat_for_s = repeat_for_s

    def signed_in(self, token: str | None) -> "AsyncClient":
        """The same API for another user over the same connections, which the first client closes."""
        return AsyncClient(
            self._transport.url,
            token,
            within_s=self._within_s,
            repeat_for_s=self._repeat_for_s,
            transport=self._transport,
        )

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Sales

    async def create_sale(
        self,
        title: str,
        *,
        units: int,
        begins_at: datetime,
        ends_at: datetime,
        limit_per_buyer: int = 1,
        price_cents: int = 0,
        currency: str = "CNY",
        repeat: str | None = None,
        timezone: str | None = None,
        pay_within_s: int | None = None,
        cool_down_s: int | None = None,
        lanes: int | None = None,
    ) -> Sale:
        """Times need an offset. The API chooses what is None."""
        return await self.ask(
            requests.create_sale(
                title,
                units=units,
                begins_at=begins_at,
                ends_at=ends_at,
                limit_per_buyer=limit_per_buyer,
                price_cents=price_cents,
                currency=currency,
                repeat=repeat,
                timezone=timezone,
                pay_within_s=pay_within_s,
                cool_down_s=cool_down_s,
                lanes=lanes,
            )
        )

    async def sales(self, before: str | None = None) -> Sales:
        """All current and coming ones, and the last past ones; earlier ones with `before=….older`."""
        return await self.ask(requests.sales(before))

    async def sale(self, sale_id: str) -> Sale:
        return await self.ask(requests.sale(sale_id))

    async def pause_sale(self, sale_id: str) -> Sale:
        return await self.ask(requests.act_on_sale(sale_id, "pause"))

    async def resume_sale(self, sale_id: str) -> Sale:
        return await self.ask(requests.act_on_sale(sale_id, "resume"))

    async def close_sale(self, sale_id: str) -> Sale:
        """Ends it for good, and its repetition."""
        return await self.ask(requests.act_on_sale(sale_id, "close"))

    async def add_units(self, sale_id: str, units: int) -> Sale:
        return await self.ask(requests.change_sale(sale_id, add_units=units))

    async def rounds(self, sale_id: str, *, before: str | None = None) -> list[Round]:
        """The newest first, at most 50; earlier ones with `before=….round` of the last."""
        return (await self.ask(requests.rounds(sale_id, before=before))).rounds

    async def custody(self, sale_id: str, round_: str | None = None) -> Custody:
        """Where every unit is: of the current round, or of another."""
        return await self.ask(requests.custody(sale_id, round_))

    # Orders

    async def claim(self, sale_id: str, quantity: int = 1, *, key: str | None = None) -> Claimed:
        """Buys. Without a `key` of yours it makes one; either way, every repetition has the same. If even the last
        result is unclear, the error has the key as `key`: claim with it again, and you get the one true answer."""
        return await self.ask(requests.claim(sale_id, quantity, key or secrets.token_urlsafe(18)))

    async def order(self, order_id: str) -> Order:
        return await self.ask(requests.order(order_id))

    async def wait_for_order(
        self, order_id: str, *, within_s: float = 60.0, seen: OrderState = OrderState.QUEUED
    ) -> Order:
        """The order as soon as its state is no longer `seen`, or as it is when the time is over."""
        give_up_s = time.monotonic() + within_s
        while True:
            left_s = give_up_s - time.monotonic()
            order = await self.ask(requests.order(order_id, wait_s=max(0.0, min(left_s, POLL_S_MAX)), seen=seen))
            if order.state is not seen or time.monotonic() >= give_up_s:
                return order

    async def orders(self, *, cursor: str | None = None, limit: int | None = None) -> Orders:
        """The buyer's own, newest first; older ones with `cursor=….next`."""
        return await self.ask(requests.orders(cursor=cursor, limit=limit))

    async def pay(self, order_id: str) -> Order:
        """In the sandbox only: elsewhere the shop takes the money."""
        return await self.ask(requests.act_on_order(order_id, "pay"))

    async def cancel(self, order_id: str) -> Order:
        return await self.ask(requests.act_on_order(order_id, "cancel"))

    # For operators

    async def audit(self, *, full: bool = False) -> Audit:
        """`full`: compare all orders, however long that takes."""
        return await self.ask(requests.audit(full=full))

    async def dead_letters(self) -> list[DeadLetter]:
        return (await self.ask(requests.dead_letters())).dead

    async def dead_letter(self, letter_id: str) -> DeadLetter:
        return await self.ask(requests.dead_letter(letter_id))

    async def replay_dead_letter(self, letter_id: str) -> DeadLetter:
        return await self.ask(requests.act_on_dead_letter(letter_id, "replay"))

    async def discard_dead_letter(self, letter_id: str) -> DeadLetter:
        return await self.ask(requests.act_on_dead_letter(letter_id, "discard"))

    # Everything else

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Whatever else the API has, as JSON: `await client.call("GET", "/v1/admin/live")`."""
        return await self.document(Request(method=method, path=path, answer=object, body=body))

    async def ask(self, request: Request[T]) -> T:
        return self._decoded(await self._answer(request), request.answer)

    async def document(self, request: Request[Any]) -> Any:
        """The answer as the API has written it."""
        return self._decoded(await self._answer(request), object)

    def _decoded(self, reply: Reply, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NoAnswer(self._transport.url, f"its answer cannot be read: {error}") from error

    async def _answer(self, request: Request[Any]) -> Reply:
        message = self._message(request)
        give_up_s = time.monotonic() + self._repeat_for_s
        for tries in itertools.count():
            try:
                reply = await self._transport.send(message, self._within_s + request.wait_s)
                if reply.status < 300:
                    return reply
                raise refusal(reply.status, reply.headers, reply.body)
            except (NoAnswer, Unavailable) as error:
                pause_s = _pause_s(error, tries)
                if not request.repeatable or time.monotonic() + pause_s > give_up_s:
                    error.key = request.key
                    raise
            await asyncio.sleep(pause_s)
        raise AssertionError("it counts without end")

    def _message(self, request: Request[Any]) -> Message:
        headers = {"Accept": "application/json"}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None and not request.for_anybody:
            headers["Authorization"] = f"Bearer {self._token}"
        if (key := _one_line(request.key)) is not None:
            headers["Idempotency-Key"] = key
        return Message(
            method=request.method,
            path=request.path,
            headers=headers,
            body=b"" if request.body is None else msgspec.json.encode(request.body),
            repeatable=request.repeatable,
        )


def _pause_s(error: NoAnswer | Unavailable, tries: int) -> float:
    told_s = error.retry_after_s if isinstance(error, Unavailable) else None
    pause_s = min(PAUSE_S_MIN * 2**tries, PAUSE_S_MAX) if told_s is None else max(told_s, PAUSE_S_MIN)
    return pause_s * random.uniform(1.0, 1.5)  # noqa: S311 (jitter, not a secret)


def _one_line(text: str | None) -> str | None:
    """As a header's value it must not begin another one."""
    if text is not None and not (text.isascii() and text.isprintable()):
        raise ClientError("A token or key has printable ASCII characters only.")
    return text
