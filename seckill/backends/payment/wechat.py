"""WeChat Pay, API v3: a QR code for desktops, a page for phones' browsers, notices and refunds."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from seckill.backends.payment.provider_http import ProviderHttp, ProviderReply
from seckill.backends.payment.trade_numbers import order_in, refund_number, trade_number
from seckill.backends.payment.wechat_messages import Signatures, authorization, opened
from seckill.errors import (
    CheckoutRefused,
    NotGenuine,
    NotUnderstood,
    ProviderUnavailable,
    RefundPending,
    RefundRefused,
)
from seckill.ports.payment import Bill, Checkout, Notice, Refund
from seckill.settings import Settings
from seckill.settings.rsa_keys import private_key

CURRENCY = "CNY"
# How long codes and pages of WeChat Pay are valid.
CODE_GOOD_S = 7200
PAGE_GOOD_S = 300
# A payment cannot be set to close sooner than in a minute, so it closes a minute after the time to pay; by then the
# keeper has closed it anyway.
OPEN_S_MIN = 60
DESCRIPTION_BYTES_MAX = 127
REASON_CHARS_MAX = 80
_PAID = "SUCCESS"
_REFUSES = (400, 403, 404, 409)


class _Amount(msgspec.Struct):
    total: int
    currency: str = CURRENCY


class _Transaction(msgspec.Struct):
    appid: str
    mchid: str
    out_trade_no: str
    trade_state: str
    transaction_id: str = ""
    amount: _Amount | None = None


_transaction = msgspec.json.Decoder(_Transaction)


class WeChat:
    name = "wechat"
    sandbox = False
    acknowledgement = ""
    currencies = frozenset({CURRENCY})

    def __init__(self, settings: Settings) -> None:
        self._app_id = settings.wechat_app_id
        self._merchant = settings.wechat_merchant_id
        self._serial = settings.wechat_serial
        self._private_key = settings.wechat_private_key
        self._api_keys = settings.wechat_api_keys
        self._signatures = Signatures(settings.wechat_public_keys)
        self._url = settings.wechat_url.rstrip("/")
        self._notify_url = f"{settings.public_url.rstrip('/')}/v1/payments/callback"
        self._http = ProviderHttp("WeChat Pay")

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice | None:
        if not self._signatures or not self._api_keys:
            raise ProviderUnavailable(
                "No notice of WeChat Pay's can be read here until SECKILL_WECHAT_PUBLIC_KEYS and "
                "SECKILL_WECHAT_API_KEYS are set."
            )
        self._signatures.verify(headers, body, now_s)
        event_type, said = opened(body, self._api_keys)
        return self._notice(said) if event_type == "TRANSACTION.SUCCESS" else None

    def _notice(self, said: bytes) -> Notice | None:
        try:
            transaction = _transaction.decode(said)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise NotUnderstood("is not about a payment") from error
        order_id = order_in(transaction.out_trade_no)
        if (transaction.appid, transaction.mchid) != (self._app_id, self._merchant) or order_id is None:
            return None  # an order of another seller
        if transaction.trade_state != _PAID:
            return None
        if transaction.amount is None or not transaction.transaction_id:
            raise NotUnderstood("has no amount, or no transaction_id")
        amount = transaction.amount
        return Notice(
            ref=transaction.transaction_id, order_id=order_id, amount_cents=amount.total, currency=amount.currency
        )

    async def checkout(self, bill: Bill) -> Checkout:
        if bill.currency != CURRENCY:
            raise CheckoutRefused("WeChat Pay takes CNY only.")
        now_s = time.time()
        closes_s = bill.pay_before_ms // 1000 + OPEN_S_MIN
        number = trade_number(bill.order_id, on_phone=bill.on_phone)
        wish: dict[str, Any] = {
            "appid": self._app_id,
            "mchid": self._merchant,
            "description": bill.title.encode()[:DESCRIPTION_BYTES_MAX].decode(errors="ignore"),
            "out_trade_no": number,
            # Must be the same for every request about an order: otherwise WeChat Pay treats it as another payment.
            "time_expire": datetime.fromtimestamp(closes_s, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00"),
            "notify_url": self._notify_url,
            "amount": {"total": bill.amount_cents, "currency": CURRENCY},
        }
        if bill.on_phone:
            wish["scene_info"] = {"payer_client_ip": bill.buyer_address or "127.0.0.1", "h5_info": {"type": "Wap"}}
        reply = await self._ask("POST", f"/v3/pay/transactions/{'h5' if bill.on_phone else 'native'}", wish)
        if reply.status != 200:
            problem = f"WeChat Pay does not take the payment: {_words(reply)}."
            raise CheckoutRefused(problem) if reply.status in _REFUSES else ProviderUnavailable(problem)
        address = str(_facts(reply).get("h5_url" if bill.on_phone else "code_url", ""))
        if not address:
            raise ProviderUnavailable("WeChat Pay's answer has no address to pay at.")
        if bill.on_phone:
            address += f"{'&' if urlsplit(address).query else '?'}{urlencode({'redirect_url': bill.return_url})}"
        good_s = PAGE_GOOD_S if bill.on_phone else CODE_GOOD_S
        return Checkout(ref=number, address=address, until_ms=int(min(now_s + good_s, closes_s) * 1000))

    async def call_off(self, ref: str, order_id: str) -> Notice | None:
        trade = f"/v3/pay/transactions/out-trade-no/{quote(ref, safe='')}"
        closed = await self._ask("POST", f"{trade}/close", {"mchid": self._merchant})
        if closed.status == 204:
            return None
        found = await self._ask("GET", f"{trade}?{urlencode({'mchid': self._merchant})}")
        if found.status == 404:
            return None
        if found.status == 200:
            if (notice := self._notice(found.body)) is not None:
                return notice
            if _facts(found).get("trade_state") in ("CLOSED", "REVOKED", "REFUND"):
                return None
        raise ProviderUnavailable(f"WeChat Pay did not close {ref}: {_words(closed)}.")

    async def refund(self, refund: Refund, order_id: str) -> bool:
        number = refund_number(order_id, refund.id)
        found = await self._ask("GET", f"/v3/refund/domestic/refunds/{number}") if refund.attempts > 1 else None
        if found is None or found.status == 404:
            found = await self._ask("POST", "/v3/refund/domestic/refunds", _refund_wish(refund, number))
        if found.status != 200:
            problem = f"WeChat Pay does not make refund {refund.id}: {_words(found)}."
            raise RefundRefused(problem) if found.status in _REFUSES else ProviderUnavailable(problem)
        status = _facts(found).get("status")
        if status == "SUCCESS":
            return True
        if status == "PROCESSING":
            raise RefundPending(f"WeChat Pay is still making refund {refund.id}.")
        raise RefundRefused(f"WeChat Pay says of refund {refund.id}: {status}. Look for it on the merchant platform.")

    async def check(self) -> str:
        """If WeChat Pay looks for a payment, it knows us; if the answer is signed, we know it."""
        number = trade_number("000000", on_phone=False)
        target = f"/v3/pay/transactions/out-trade-no/{number}?{urlencode({'mchid': self._merchant})}"
        reply = await self._ask("GET", target)
        if reply.status not in (200, 404):
            raise ProviderUnavailable(f"WeChat Pay does not answer as it should: {_words(reply)}.")
        return "WeChat Pay knows the merchant, and its answers are signed"

    async def close(self) -> None:
        await self._http.close()

    async def _ask(self, method: str, target: str, wish: Mapping[str, Any] | None = None) -> ProviderReply:
        if self._private_key is None:
            raise ProviderUnavailable("Nothing can be asked of WeChat Pay until SECKILL_WECHAT_PRIVATE_KEY is set.")
        body = b"" if wish is None else msgspec.json.encode(wish)
        key = private_key(self._private_key.reveal())
        path = urlsplit(self._url).path + target
        headers = {
            "Authorization": authorization(key, self._merchant, self._serial, method, path, body, time.time()),
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "seckill",
        }
        if (preferred := self._signatures.preferred) is not None:
            headers["Wechatpay-Serial"] = preferred
        reply = await self._http.send(method, self._url + target, headers, body)
        if reply.status >= 500 or reply.status in (401, 429):
            raise ProviderUnavailable(f"WeChat Pay answers {_words(reply)}.")
        try:
            self._signatures.verify(reply.headers, reply.body, time.time())
        except NotGenuine as error:
            raise ProviderUnavailable(f"WeChat Pay's answer cannot be believed: {error}") from error
        return reply


def _refund_wish(refund: Refund, number: str) -> dict[str, Any]:
    return {
        "transaction_id": refund.capture.ref,
        "out_refund_no": number,
        "reason": refund.reason[:REASON_CHARS_MAX],
        "amount": {"refund": refund.amount_cents, "total": refund.capture.amount_cents, "currency": CURRENCY},
    }


def _facts(reply: ProviderReply) -> dict[str, Any]:
    try:
        return msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _words(reply: ProviderReply) -> str:
    facts = _facts(reply)
    return " ".join(str(word) for word in (reply.status, facts.get("code"), facts.get("message")) if word)
