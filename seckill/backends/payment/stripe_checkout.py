"""Stripe: Checkout Sessions, webhooks and refunds, through Stripe's own library."""

import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec
import stripe

from seckill.backends.payment.provider_http import ProviderHttp
from seckill.backends.payment.stripe_amounts import from_stripe, to_stripe
from seckill.errors import (
    CheckoutRefused,
    NotGenuine,
    NotUnderstood,
    ProviderUnavailable,
    RefundPending,
    RefundRefused,
)
from seckill.ports.payment import Bill, Checkout, Notice, Refund
from seckill.settings import Secret, Settings

HEADER = "Stripe-Signature"
# The same as in Stripe's library.
AGE_S_MAX = 300
# A session closes by itself 30 minutes to 24 hours after it was made. Orders expire sooner, and then we close the
# session. The moment may depend on the order only: a repeat with the same idempotency key must ask for the same. So
# sessions of an order with a long time to pay are made for half a day each, and are open for a little longer than that.
OPEN_MIN_S = 31 * 60
HALF_DAY_S = 12 * 3600
NAME_CHARS_MAX = 250
# For this long, a repeated refund that Stripe has refused counts as the same request.
REFUSED_FOR_S = 3600
ORDER = "seckill_order"
REFUND = "seckill_refund"
_PAID_EVENTS = ("checkout.session.completed", "checkout.session.async_payment_succeeded")

T = TypeVar("T")


class _Session(msgspec.Struct):
    id: str
    payment_status: str
    amount_total: int | None = None
    currency: str | None = None
    payment_intent: str | None = None
    metadata: dict[str, str] | None = None


class _Data(msgspec.Struct):
    object: msgspec.Raw


class _Event(msgspec.Struct):
    type: str
    data: _Data


_event = msgspec.json.Decoder(_Event)
_session = msgspec.json.Decoder(_Session)


class Stripe:
    name = "stripe"
    sandbox = False
    acknowledgement = ""
    currencies = None

    def __init__(self, settings: Settings) -> None:
        self._key = settings.stripe_key
        self._webhook_secrets = settings.stripe_webhook_secrets
        self._url = settings.stripe_url.rstrip("/")
        self._opened: stripe.StripeClient | None = None
        self._http = ProviderHttp("Stripe")

    @property
    def test_mode(self) -> bool:
        return self._key is not None and "_test_" in self._key.reveal()

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice | None:
        if not self._webhook_secrets:
            raise ProviderUnavailable(
                "No webhook of Stripe's can be checked until SECKILL_STRIPE_WEBHOOK_SECRETS is set."
            )
        header = headers.get(HEADER.lower(), "")
        # Compares with all of them, so that the time reveals nothing.
        matches = [_fits(body, header, secret) for secret in self._webhook_secrets]
        if not any(matches):
            raise NotGenuine(f"The {HEADER} does not fit the body and the webhook's secret.")
        if abs(now_s - _moment(header)) > AGE_S_MAX:
            raise NotGenuine(f"The signature is more than {AGE_S_MAX} s away from our clock.")
        try:
            event = _event.decode(body)
            if event.type not in _PAID_EVENTS:
                return None
            session = _session.decode(event.data.object)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise NotUnderstood(str(error)) from error
        return _notice(session)

    async def checkout(self, bill: Bill) -> Checkout:
        try:
            amount = to_stripe(bill.amount_cents, bill.currency)
        except (ValueError, KeyError) as error:
            raise CheckoutRefused(str(error)) from error
        part = max(0, int(time.time()) - bill.created_ms // 1000) // HALF_DAY_S
        part_ends_s = bill.created_ms // 1000 + (part + 1) * HALF_DAY_S
        expires_s = min(bill.pay_before_ms // 1000, part_ends_s) + OPEN_MIN_S
        metadata = {ORDER: bill.order_id}
        product = {
            "currency": bill.currency.lower(),
            "unit_amount": amount,
            "product_data": {"name": bill.title[:NAME_CHARS_MAX]},
        }
        wish: Any = {
            "mode": "payment",
            "client_reference_id": bill.order_id,
            "line_items": [{"quantity": 1, "price_data": product}],
            "success_url": bill.return_url,
            "cancel_url": bill.cancel_url,
            "expires_at": expires_s,
            "metadata": metadata,
            "payment_intent_data": {"metadata": metadata},
            # Buyers pay the price of the order, in its currency.
            "adaptive_pricing": {"enabled": False},
        }
        key = f"seckill-{bill.order_id}-{part}"
        try:
            made = await _told(self._client.checkout.sessions.create_async(wish, {"idempotency_key": key}))
        except _Refused as error:
            raise CheckoutRefused(f"Stripe does not take the payment: {error}.") from error
        if not made.url:
            raise ProviderUnavailable("Stripe's session has no address.")
        return Checkout(ref=made.id, address=made.url, until_ms=(expires_s - OPEN_MIN_S) * 1000)

    async def call_off(self, ref: str, order_id: str) -> Notice | None:
        try:
            await _told(self._client.checkout.sessions.expire_async(ref))
        except _Refused as error:  # the session has already ended, one way or the other
            try:
                found = await _told(self._client.checkout.sessions.retrieve_async(ref))
            except _Refused:
                raise ProviderUnavailable(f"Stripe does not know {ref}: {error}.") from error
            return _notice(msgspec.convert(found.to_dict(), _Session, strict=False))
        return None

    async def refund(self, refund: Refund, order_id: str) -> bool:
        try:
            # Stripe forgets idempotency keys after a day, so a repeated request first looks for an existing one.
            made = await self._found(refund) if refund.attempts > 1 else None
            if made is None:
                made = await self._made(refund, order_id)
        except _Refused as error:
            raise RefundRefused(f"Stripe refuses refund {refund.id}: {error}.") from error
        if made.status == "succeeded":
            return True
        if made.status in ("pending", "requires_action"):
            raise RefundPending(f"Stripe is still making refund {refund.id}.")
        raise RefundRefused(f"Stripe's refund {made.id} has {made.status}: make it by hand.")

    async def _found(self, refund: Refund) -> stripe.Refund | None:
        async def look() -> stripe.Refund | None:
            listed = await self._client.refunds.list_async({"payment_intent": refund.capture.ref, "limit": 100})
            each: stripe.Refund
            async for each in listed.auto_paging_iter():
                if (each.to_dict().get("metadata") or {}).get(REFUND) == str(refund.id):
                    return each
            return None

        return await _told(look())

    async def _made(self, refund: Refund, order_id: str) -> stripe.Refund:
        try:
            amount = to_stripe(refund.amount_cents, refund.capture.currency)
        except (ValueError, KeyError) as error:
            raise _Refused(str(error)) from error
        wish: Any = {
            "payment_intent": refund.capture.ref,
            "amount": amount,
            "metadata": {REFUND: str(refund.id), ORDER: order_id, "reason": refund.reason},
        }
        key = f"seckill-refund-{refund.capture.ref}-{refund.id}"
        # for a day, Stripe would give the same answer to the same key, even if the cause was removed
        if refund.refused is not None:
            key += f"-{int(time.time()) // REFUSED_FOR_S}"
        return await _told(self._client.refunds.create_async(wish, {"idempotency_key": key}))

    async def check(self) -> str:
        try:
            await _told(self._client.balance.retrieve_async())
        except _Refused as error:
            raise ProviderUnavailable(f"Stripe does not answer as it should: {error}.") from error
        return f"Stripe knows the key{', which is for tests' if self.test_mode else ''}"

    async def close(self) -> None:
        await self._http.close()

    @property
    def _client(self) -> Any:
        if self._key is None:
            raise ProviderUnavailable("Nothing can be asked of Stripe until SECKILL_STRIPE_KEY is set.")
        if self._opened is None:
            # The library must not repeat requests by itself: the caller knows better when to do that.
            self._opened = stripe.StripeClient(
                self._key.reveal(),
                http_client=_Http(self._http),
                base_addresses={"api": self._url},
                max_network_retries=0,
            )
        return self._opened.v1


class _Http(stripe.HTTPClient):
    """Makes the library's calls with the same deadline and rules as those to other providers."""

    name = "seckill"

    def __init__(self, http: ProviderHttp) -> None:
        super().__init__()
        self._calls = http

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        body = post_data.encode() if isinstance(post_data, str) else post_data or b""
        reply = await self._calls.send(method.upper(), url, headers, body)
        return reply.body, reply.status, reply.headers


class _Refused(Exception):
    """Stripe has understood the request and refuses it."""


async def _told(call: Coroutine[Any, Any, T]) -> T:
    """Raises ProviderUnavailable and _Refused."""
    try:
        return await call
    except stripe.StripeError as error:
        words = f"{error.http_status or type(error).__name__} {error.code or ''} {error.user_message or ''}".strip()
        refused = isinstance(error, stripe.InvalidRequestError | stripe.CardError | stripe.IdempotencyError)
        if refused and error.http_status != 409:  # 409: the same request is under way
            raise _Refused(words) from error
        raise ProviderUnavailable(f"Stripe did not do it: {words}.") from error


def _notice(session: _Session) -> Notice | None:
    order_id = (session.metadata or {}).get(ORDER)
    # Others may sell through the same account. For a payment that is not complete yet, another notice will come.
    if order_id is None or session.payment_status != "paid":
        return None
    if session.payment_intent is None or session.amount_total is None or session.currency is None:
        raise NotUnderstood("the session has no payment_intent, amount_total or currency")
    currency = session.currency.upper()
    try:
        cents = from_stripe(session.amount_total, currency)
    except ValueError as error:
        raise NotUnderstood(str(error)) from error
    return Notice(ref=session.payment_intent, order_id=order_id, amount_cents=cents, currency=currency)


def _fits(body: bytes, header: str, secret: Secret) -> bool:
    try:
        return bool(stripe.WebhookSignature.verify_header(body, header, secret.reveal()))
    except (stripe.SignatureVerificationError, ValueError, TypeError):
        return False


def _moment(header: str) -> int:
    """Returns when the message was signed, which is part of the signed text. Takes the first `t`, as the library
    does."""
    return next(int(item[2:]) for item in header.split(",") if item.startswith("t="))
