"""The shop's own payment side: reads its callbacks, and asks it for refunds."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from seckill import http_call
from seckill.backends.payment.callback_signature import HEADER, signature, verify
from seckill.errors import NotUnderstood, ProviderUnavailable, RefundRefused
from seckill.ports.payment import Notice, Refund
from seckill.settings import Settings

REFUND_WITHIN_S = 10.0
# With these statuses, the shop's payment side has understood the request and refuses it.
REFUSED_FOR_GOOD = (400, 409, 410, 422)


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    """The content of a callback. No payment may be named `*…`: the sandbox gives such names to payments that buyers
    make."""

    payment_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:/+=~-]{1,128}$(?!\n)")]
    order_id: str
    amount_cents: Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}$", max_length=3)]


_message = msgspec.json.Decoder(_Message)


def read_signed(settings: Settings, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice:
    secret = settings.payment_secret
    if secret is None:
        raise ProviderUnavailable("No payment callback can be checked here until SECKILL_PAYMENT_SECRET is set.")
    verify(secret, headers.get(HEADER.lower()), body, now_s, settings.payment_secret_old)
    try:
        message = _message.decode(body)
    except msgspec.ValidationError as error:
        raise NotUnderstood(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotUnderstood("is not valid JSON") from error
    return Notice(
        ref=message.payment_id,
        order_id=message.order_id,
        amount_cents=message.amount_cents,
        currency=message.currency,
    )


class Callback:
    """The shop's own payment side takes the money and notifies us; we tell it what to refund."""

    name = "callback"
    sandbox = False

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice:
        return read_signed(self._settings, headers, body, now_s)

    async def refund(self, refund: Refund, order_id: str) -> bool:
        if not self._settings.refund_url:
            return False
        message = {
            "refund_id": str(refund.id),
            "payment_id": refund.capture.ref,
            "order_id": order_id,
            "amount_cents": refund.amount_cents,
            "currency": refund.capture.currency,
            "reason": refund.reason,
        }
        try:
            await asyncio.to_thread(self._post, json.dumps(message).encode())
        except urllib.error.HTTPError as error:
            if error.code not in REFUSED_FOR_GOOD:
                raise ProviderUnavailable(f"SECKILL_REFUND_URL did not take refund {refund.id}: {error}.") from error
            raise RefundRefused(f"SECKILL_REFUND_URL refuses refund {refund.id}: {error}.") from error
        except http_call.FAILURES as error:
            raise ProviderUnavailable(f"SECKILL_REFUND_URL did not take refund {refund.id}: {error}.") from error
        return True

    def _post(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        secret = self._settings.payment_secret
        if secret is not None:
            headers[HEADER] = signature(secret, body, int(time.time()), self._settings.payment_secret_old)
        request = urllib.request.Request(self._settings.refund_url, body, headers)  # noqa: S310 (checked)
        with http_call.open_url(request, REFUND_WITHIN_S):
            pass
