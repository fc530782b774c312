"""The client for asyncio. The blocking client is built on it."""

import asyncio
import itertools
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from seckill.client import requests
from seckill.client.connections import HttpTransport, Message, MessageCarrier, Reply
from seckill.client.documents import (
    Audit,
    Claimed,
    Custody,
    DeadLetter,
    Entry,
    ErasedBuyer,
    Event,
    Events,
    ExportedOrder,
    Order,
    Orders,
    OrderToPay,
    Pass,
    Round,
    Sale,
    Sales,
    UploadedImage,
    Voucher,
    VoucherCounts,
    VouchersAdded,
    Webhook,
    WebhookDeliveries,
    WebhookDelivery,
)
from seckill.client.errors import CheckNeeded, ClientError, NoAnswer, Unavailable, refusal
from seckill.client.repeats import ANSWER_WITHIN_S, PAUSES_MAX, REPEAT_FOR_S, is_passing, pause_s
from seckill.client.requests import LineOptions, OrderFilters, OrderQuery, Request
from seckill.domain.order import OrderState
from seckill.domain.proof_of_work import solve

T = TypeVar("T")

# The length of a long poll; the API allows 30.
POLL_S_MAX = 25.0
# How many orders of an export are requested, and in memory, at a time.
EXPORTED_AT_ONCE = 1000


class AsyncClient:
    """One API for one user: `token` is a buyer's token or the admin key.

    Reads, claims, payments, cancellations and refunds are repeated for `repeat_for_s` when the API does not answer or
    says "not now"; a claim, and what an operator does to an order, always with its one key. Operators' changes of sales
    are never repeated, except for a sale that is created with a key.
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
        units: int | None = None,
        begins_at: datetime,
        ends_at: datetime,
        limit_per_buyer: int = 1,
        price_cents: int | None = None,
        currency: str = "CNY",
        repeat: str | None = None,
        timezone: str | None = None,
        pay_within_s: int | None = None,
        cool_down_s: int | None = None,
        lanes: int | None = None,
        confirm: Literal["gate", "ledger"] | None = None,
        external_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        description: str | None = None,
        images: Sequence[str] | None = None,
        list_price_cents: int | None = None,
        terms_url: str | None = None,
        delivery: str | None = None,
        return_url: str | None = None,
        published: bool | None = None,
        items: Sequence[Mapping[str, Any]] | None = None,
        vouchers: bool | None = None,
        pass_: Literal["none", "work", "check"] | None = None,
        pass_work: int | None = None,
        audience: Mapping[str, Any] | None = None,
        key: str | None = None,
        **line: Unpack[LineOptions],
    ) -> Sale:
        """Times need an offset. The API chooses values for arguments that are None. `items`: each is a mapping with
        `title` and `units`, and optionally `price_cents`, `external_id` and `image`; with items, `units` may be left
        out. With a `key`, the call is repeated when there is no answer, and never makes a second sale."""
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
                confirm=confirm,
                external_id=external_id,
                metadata=metadata,
                description=description,
                images=images,
                list_price_cents=list_price_cents,
                terms_url=terms_url,
                delivery=delivery,
                return_url=return_url,
                published=published,
                items=items,
                vouchers=vouchers,
                pass_work=pass_work,
                audience=audience,
                key=key,
                **line,
                **{"pass": pass_},
            )
        )

    async def duplicate_sale(
        self, sale_id: str, changes: Mapping[str, object] | None = None, *, key: str | None = None
    ) -> Sale:
        """Makes a draft with the goods, rules and items of that sale. It begins when that one does, or at the same time
        on the next possible day. `changes` use the API's names, such as `title` or `begins_at`. `key`: see
        `create_sale`."""
        return await self.ask(requests.duplicate_sale(sale_id, changes or {}, key=key))

    async def change_sale(self, sale_id: str, changes: Mapping[str, object]) -> Sale:
        """`changes` use the API's names, such as `title`, `ends_at`, `description` or `published`. None removes what a
        page shows."""
        return await self.ask(requests.change_sale(sale_id, **changes))

    async def sales(self, before: str | None = None) -> Sales:
        """Returns all current and coming sales, and the last past ones. Earlier ones follow with `before=….older`."""
        return await self.ask(requests.sales(before))

    async def sale(self, sale_id: str) -> Sale:
        return await self.ask(requests.sale(sale_id))

    async def pause_sale(self, sale_id: str) -> Sale:
        return await self.ask(requests.act_on_sale(sale_id, "pause"))

    async def resume_sale(self, sale_id: str) -> Sale:
        return await self.ask(requests.act_on_sale(sale_id, "resume"))

    async def close_sale(self, sale_id: str) -> Sale:
        """Ends the sale and its repetition for good."""
        return await self.ask(requests.act_on_sale(sale_id, "close"))

    async def add_units(self, sale_id: str, units: int, *, item_id: str | None = None) -> Sale:
        """Adds units to the sale, or, if it has items, to one of them."""
        return await self.ask(requests.add_units(sale_id, units, item_id))

    async def rounds(self, sale_id: str, *, before: str | None = None) -> list[Round]:
        """Returns at most 50 rounds, newest first. Earlier ones follow with `before=….round` of the last."""
        return (await self.ask(requests.rounds(sale_id, before=before))).rounds

    async def custody(self, sale_id: str, round_: str | None = None) -> Custody:
        """Returns where every unit of the current round, or of another one, is."""
        return await self.ask(requests.custody(sale_id, round_))

    # Orders

    async def claim(
        self,
        sale_id: str,
        quantity: int = 1,
        *,
        key: str | None = None,
        wait_s: int = 0,
        metadata: Mapping[str, Any] | None = None,
        pass_: str | None = None,
        item_id: str | None = None,
        deadline_s: float | None = None,
    ) -> Claimed:
        """Buys. In a sale with items, `item_id` names the one to buy. `metadata` is kept with the order; `pass_` is for
        a sale that needs one, see `get_pass`. Without a `key`, the client makes one; every repetition uses the same
        key. If even the last result is unclear, the error has the key as `key`: claim with it again to get the one true
        answer.

        The claim is repeated until the answer is known, but for no longer than `deadline_s`. Without a deadline it is
        repeated for the client's `repeat_for_s`, and the last try may take longer.

        With `wait_s`, up to 30, the answer comes when the order is written or when that time is over; `state` tells
        which. In a sale that confirms in the ledger, the order is always written."""
        claim = requests.claim(
            sale_id,
            quantity,
            key or _fresh_key(),
            wait_s=wait_s,
            metadata=metadata,
            item_id=item_id,
            pass_=_one_line(pass_),
        )
        return await self.ask(claim, deadline_s)

    async def get_pass(self, sale_id: str, *, response: str | None = None, ticket: str = "") -> Pass:
        """Gets the buyer's pass for the sale's round. This method solves a proof of work itself, which takes a second
        or more of CPU time. A captcha has to be solved by a person: `CheckNeeded` then has the key for its widget and a
        ticket; call this again with the widget's `response` and that ticket."""
        answer: dict[str, Any] = {} if response is None else {"response": response, "ticket": ticket}
        while True:
            given = await self.ask(requests.ask_for_pass(sale_id, answer))
            if given.pass_ is not None and given.expires_at is not None:
                return Pass(pass_=given.pass_, expires_at=given.expires_at)
            if given.kind != "work":
                raise CheckNeeded(given.site_key, given.ticket)
            number = await asyncio.to_thread(solve, given.challenge, given.salt, given.maxnumber)
            sent = {"challenge": given.challenge, "salt": given.salt, "signature": given.signature}
            answer = {"solution": {**sent, "number": number}}

    async def order(self, order_id: str) -> Order:
        return await self.ask(requests.order(order_id))

    async def wait_for_order(
        self, order_id: str, *, within_s: float = 60.0, seen: OrderState = OrderState.QUEUED
    ) -> Order:
        """Returns the order as soon as its state is no longer `seen`, or as it is when the time is over."""
        give_up_s = time.monotonic() + within_s
        while True:
            left_s = give_up_s - time.monotonic()
            order = await self.ask(requests.order(order_id, wait_s=max(0.0, min(left_s, POLL_S_MAX)), seen=seen))
            if order.state is not seen or time.monotonic() >= give_up_s:
                return order

    async def orders(self, *, cursor: str | None = None, limit: int | None = None) -> Orders:
        """Returns the buyer's own orders, newest first. Older ones follow with `cursor=….next`."""
        return await self.ask(requests.orders(cursor=cursor, limit=limit))

    async def pay(self, order_id: str) -> OrderToPay:
        """In the sandbox, pays the order. With a provider that has its own payment page, returns the unpaid order with
        `pay_url`: send the buyer there. If the shop takes the money itself, raises `Denied`."""
        return await self.ask(requests.pay(order_id))

    async def cancel(self, order_id: str) -> Order:
        return await self.ask(requests.cancel(order_id))

    # The line

    async def join(
        self,
        sale_id: str,
        quantity: int = 1,
        *,
        metadata: Mapping[str, Any] | None = None,
        pass_: str | None = None,
        item_id: str | None = None,
    ) -> Entry:
        """Joins the line of a sale. A buyer who has already joined gets the same entry. The arguments are those of
        `claim`."""
        wanted = requests.join(sale_id, quantity, metadata=metadata, item_id=item_id, pass_=_one_line(pass_))
        return await self.ask(wanted)

    async def entry_in(self, sale_id: str, *, round_: str | None = None) -> Entry | None:
        """Returns the buyer's entry in the line of a sale, whether in the round that can be joined now or in another,
        or None if they have not joined."""
        return next(iter((await self.ask(requests.own_entries(sale_id, round_))).entries), None)

    async def leave(self, entry_id: str) -> Entry:
        return await self.ask(requests.leave(entry_id))

    # For operators

    async def all_orders(self, **wanted: Unpack[OrderFilters]) -> AsyncGenerator[ExportedOrder, None]:
        """Yields the orders of all buyers, newest first, reading more as you go: `async for order in
        shop.all_orders(state=…)`. Filters are `sale_id`, `round_`, `item_id`, `state`, `buyer`, `since` and `until`.
        With `codes=True`, orders include their voucher codes, which count as shown to their buyers from then on."""
        async for reply in self._portions(OrderQuery(**wanted), "jsonl"):
            for line in reply.body.splitlines():
                yield self._decoded(line, ExportedOrder)

    async def export_orders(
        self, kind: Literal["csv", "jsonl"], **wanted: Unpack[OrderFilters]
    ) -> AsyncGenerator[bytes, None]:
        """Yields the same orders as a file, in portions."""
        async for reply in self._portions(OrderQuery(**wanted), kind):
            yield reply.body

    async def _portions(self, wanted: OrderQuery, kind: str) -> AsyncGenerator[Reply, None]:
        after: str | None = None
        while True:
            reply = await self._answer(
                requests.export_orders(wanted, kind, after=after, limit=EXPORTED_AT_ONCE), lambda reply: reply
            )
            yield reply
            after = reply.headers.get("seckill-next")
            if after is None:
                return

    async def events(
        self,
        *,
        after: int | None = None,
        types: Sequence[str] | None = None,
        sale_id: str | None = None,
        limit: int | None = None,
        wait_s: float = 0.0,
    ) -> Events:
        """Returns the events after that cursor, or from the oldest one that is kept. Read on with `after=….next`."""
        return await self.ask(
            requests.events(after=after, types=types, sale_id=sale_id, limit=limit, wait_s=min(wait_s, POLL_S_MAX))
        )

    async def follow_events(
        self, *, after: int | None = None, types: Sequence[str] | None = None, sale_id: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """Yields every event after that cursor, for as long as you ask for more. It waits for new events, and for an
        API that is away. Keep the `cursor` of the last event that you have dealt with, to go on after it later. Raises
        EventsGone if events after it are no longer kept."""
        pages = self.event_pages(after=after, types=types, sale_id=sale_id)
        try:
            async for page in pages:
                for event in page.events:
                    yield event
        finally:
            await pages.aclose()

    async def event_pages(
        self, *, after: int | None = None, types: Sequence[str] | None = None, sale_id: str | None = None
    ) -> AsyncGenerator[Events, None]:
        """Yields the same events in pages. Keep `next` together with what you did about a page. Empty pages come when
        only other events have happened, so that your `next` does not become too old."""
        tries = 0
        while True:
            try:
                page = await self.events(after=after, types=types, sale_id=sale_id, wait_s=POLL_S_MAX)
            except (NoAnswer, Unavailable) as error:
                await asyncio.sleep(pause_s(error, tries))
                tries = min(tries + 1, PAUSES_MAX)
                continue
            tries = 0
            if page.events or page.next != after:
                yield page
            after = page.next

    async def audit(self, *, full: bool = False) -> Audit:
        """`full`: compare all orders, however long that takes."""
        return await self.ask(requests.audit(full=full))

    async def cancel_order(self, order_id: str, *, reason: str, key: str | None = None) -> ExportedOrder:
        """Cancels a buyer's unpaid order. Like a claim, the request is repeated with one key."""
        return await self.ask(requests.cancel_order(order_id, reason=reason, key=key or _fresh_key()))

    async def refund_order(
        self,
        order_id: str,
        *,
        reason: str,
        return_unit: bool,
        amount_cents: int | None = None,
        key: str | None = None,
    ) -> ExportedOrder:
        """Refunds a paid order: all that is left of its price, or a part. `return_unit`: puts its units back on sale.
        Like a claim, the request is repeated with one key, so it refunds only once."""
        return await self.ask(
            requests.refund_order(
                order_id,
                reason=reason,
                return_unit=return_unit,
                amount_cents=amount_cents,
                key=key or _fresh_key(),
            )
        )

    async def create_webhook(
        self,
        url: str,
        *,
        types: Sequence[str] | None = None,
        sale_id: str | None = None,
        description: str | None = None,
        enabled: bool | None = None,
    ) -> Webhook:
        """Sends events to this address from now on. Only this answer has the `secret`: keep it for `verify_webhook`."""
        return await self.ask(
            requests.create_webhook(url, types=types, sale_id=sale_id, description=description, enabled=enabled)
        )

    async def webhooks(self) -> list[Webhook]:
        return (await self.ask(requests.webhooks())).webhooks

    async def webhook(self, webhook_id: str) -> Webhook:
        return await self.ask(requests.webhook(webhook_id))

    async def change_webhook(self, webhook_id: str, changes: Mapping[str, object]) -> Webhook:
        """`changes` may have `url`, `types`, `sale_id`, `description` and `enabled`. None for `types` or `sale_id`
        means all."""
        return await self.ask(requests.change_webhook(webhook_id, **changes))

    async def delete_webhook(self, webhook_id: str) -> None:
        await self.ask(requests.delete_webhook(webhook_id))

    async def rotate_webhook(self, webhook_id: str, *, overlap_hours: int | None = None) -> Webhook:
        """Gives the webhook a new secret, which only this answer has. The previous secret signs as well for a day, or
        for `overlap_hours`."""
        return await self.ask(requests.rotate_webhook(webhook_id, overlap_hours))

    async def test_webhook(self, webhook_id: str, *, wait_s: float = 20.0) -> WebhookDelivery:
        """Sends a `webhook.test`. The result has a `status` if the receiver has answered in that time."""
        return await self.ask(requests.try_webhook(webhook_id, wait_s=min(wait_s, POLL_S_MAX)))

    async def webhook_deliveries(
        self, webhook_id: str, *, state: str | None = None, limit: int | None = None, after: str | None = None
    ) -> WebhookDeliveries:
        """Returns the deliveries that wait or were given up, and the last successful ones. Earlier ones follow with
        `after=….next`."""
        return await self.ask(requests.webhook_deliveries(webhook_id, state=state, limit=limit, after=after))

    async def redeliver_webhook(self, webhook_id: str, delivery_id: str, *, wait_s: float = 0.0) -> WebhookDelivery:
        return await self.ask(requests.redeliver_webhook(webhook_id, delivery_id, wait_s=min(wait_s, POLL_S_MAX)))

    async def upload_vouchers(
        self, sale_id: str, codes: bytes | Iterable[str], *, item_id: str | None = None
    ) -> VouchersAdded:
        """Uploads codes, or a file with one in each line: all of them or none. `item_id`: the codes are for this item
        alone. The request is not repeated: without an answer, use `count_vouchers` to see whether the codes have
        arrived."""
        content = codes if isinstance(codes, bytes) else "".join(f"{_quoted(code)}\n" for code in codes).encode()
        return await self.ask(requests.upload_vouchers(sale_id, content, item_id=item_id))

    async def upload_image(self, content: bytes) -> UploadedImage:
        """Uploads a picture. Give its `url` to `images` of a sale."""
        return await self.ask(requests.upload_image(content))

    async def count_vouchers(self, sale_id: str) -> VoucherCounts:
        return await self.ask(requests.count_vouchers(sale_id))

    async def voucher(self, code: str) -> Voucher:
        """Returns who has the code, and what has become of it."""
        return await self.ask(requests.voucher(code))

    async def redeem_voucher(self, code: str) -> Voucher:
        """Redeems the code, which works once. Raises Conflict if it was redeemed before, is void, or was given to no
        one."""
        return await self.ask(requests.redeem_voucher(code))

    async def dead_letters(self) -> list[DeadLetter]:
        return (await self.ask(requests.dead_letters())).dead

    async def dead_letter(self, letter_id: str) -> DeadLetter:
        return await self.ask(requests.dead_letter(letter_id))

    async def replay_dead_letter(self, letter_id: str) -> DeadLetter:
        return await self.ask(requests.act_on_dead_letter(letter_id, "replay"))

    async def discard_dead_letter(self, letter_id: str) -> DeadLetter:
        return await self.ask(requests.act_on_dead_letter(letter_id, "discard"))

    async def export_buyer(self, buyer: str) -> dict[str, Any]:
        return await self.ask(requests.export_buyer(buyer))

    async def erase_buyer(self, buyer: str) -> ErasedBuyer:
        return await self.ask(requests.erase_buyer(buyer))

    # Everything else

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Calls any other route of the API, as JSON: `await client.call("GET", "/v1/admin/live")`."""
        return await self.document(Request(method=method, path=path, answer=object, body=body))

    async def ask(self, request: Request[T], deadline_s: float | None = None) -> T:
        return await self._answer(request, lambda reply: self._decoded(reply.body, request.answer), deadline_s)

    async def document(self, request: Request[Any]) -> Any:
        """Returns the answer as the API has written it."""
        return await self._answer(request, lambda reply: self._decoded(reply.body, object))

    def _decoded(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body or b"null", type=kind)  # the answer to a DELETE is empty
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NoAnswer(self._transport.url, f"its answer cannot be read: {error}") from error

    async def _answer(self, request: Request[Any], read: Callable[[Reply], T], deadline_s: float | None = None) -> T:
        """`deadline_s`: replaces the client's time for repetitions, and also limits the last try."""
        message = self._message(request)
        give_up_s = time.monotonic() + (self._repeat_for_s if deadline_s is None else deadline_s)
        within_s = self._within_s + request.wait_s
        for tries in itertools.count():
            left_s = within_s if deadline_s is None else max(0.0, give_up_s - time.monotonic())
            try:
                reply = await self._transport.send(message, min(within_s, left_s))
                if reply.status < 300:
                    return read(reply)
                raise refusal(reply.status, reply.headers, reply.body)
            except ClientError as error:
                error.key = request.key
                waits_s = pause_s(error, tries)
                if not is_passing(error, request) or time.monotonic() + waits_s > give_up_s:
                    raise
            await asyncio.sleep(waits_s)
        raise AssertionError("it counts without end")

    def _message(self, request: Request[Any]) -> Message:
        headers = {"Accept": "application/json"}
        body = b"" if request.body is None else msgspec.json.encode(request.body)
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        if request.content is not None:
            headers["Content-Type"], body = request.content
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if (key := _one_line(request.key)) is not None:
            headers["Idempotency-Key"] = key
        if request.prefer is not None:
            headers["Prefer"] = request.prefer
        if request.pass_ is not None:
            headers["Seckill-Pass"] = request.pass_
        if request.reason is not None:
            headers["Seckill-Reason"] = quote(request.reason)
        return Message(
            method=request.method,
            path=request.path,
            headers=headers,
            body=body,
            repeatable=request.repeatable,
        )


def _quoted(code: str) -> str:
    """Quotes the code for CSV."""
    return '"' + code.replace('"', '""') + '"' if '"' in code or "," in code else code


def _fresh_key() -> str:
    return secrets.token_urlsafe(18)


def _one_line(text: str | None) -> str | None:
    """Refuses characters that could begin another header."""
    if text is not None and not (text.isascii() and text.isprintable()):
        raise ClientError("A token or key has printable ASCII characters only.")
    return text
