"""Alipay: pages to pay on for desktops and phones, notices and refunds, signed with RSA2."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from seckill.backends.payment.provider_http import ProviderHttp
from seckill.backends.payment.rsa_signature import fits, sign
from seckill.backends.payment.trade_numbers import fen, order_in, refund_number, trade_number, yuan
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
from seckill.settings.rsa_keys import private_key, public_key

BEIJING = timezone(timedelta(hours=8))
CURRENCY = "CNY"
# Alipay repeats a notice for 25 hours, so an older one does not come from Alipay. A repeat within that time is
# recognised by the payment that it names.
NOTICE_AGE_S_MAX = 26 * 3600
FUTURE_S_MAX = 300
# Making an address needs no call to Alipay, so a new one costs nothing.
ADDRESS_GOOD_S = 600
# Alipay's limits. A payment cannot be set to close sooner than in a minute, so it closes a minute after the time to
# pay; by then the keeper has closed it anyway.
AMOUNT_FEN_MAX = 100_000_000_00
OPEN_S_MIN, OPEN_S_MAX = 60, 15 * 86_400
SUBJECT_CHARS_MAX = 128
_PAID = ("TRADE_SUCCESS", "TRADE_FINISHED")
_OK = "10000"
_AWAY = "20000"
_FIELDS_MAX = 100


class Alipay:
    name = "alipay"
    sandbox = False
    acknowledgement = "success"
    currencies = frozenset({CURRENCY})

    def __init__(self, settings: Settings) -> None:
        self._app_id = settings.alipay_app_id
        self._seller_id = settings.alipay_seller_id
        self._gateway = settings.alipay_url
        self._notify_url = f"{settings.public_url.rstrip('/')}/v1/payments/callback"
        self._private_key = settings.alipay_private_key
        self._public_keys = [public_key(pem) for pem in settings.alipay_public_keys]
        self._http = ProviderHttp("Alipay")

    @property
    def test_mode(self) -> bool:
        return "sandbox" in self._gateway

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice | None:
        if not self._public_keys:
            raise ProviderUnavailable(
                "No notice of Alipay's can be checked here until SECKILL_ALIPAY_PUBLIC_KEYS is set."
            )
        said = self._verified(body)
        if not now_s - NOTICE_AGE_S_MAX <= _moment(said.get("notify_time", "")) <= now_s + FUTURE_S_MAX:
            raise NotGenuine("The notice is too old, or from the future.")
        if said.get("app_id") != self._app_id or (self._seller_id and said.get("seller_id") != self._seller_id):
            raise NotGenuine("The notice is for another app or seller.")
        return _notice(said) if said.get("trade_status") in _PAID else None

    def _verified(self, body: bytes) -> dict[str, str]:
        try:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=True,
                errors="strict",
                max_num_fields=_FIELDS_MAX,
            )
        except ValueError as error:
            raise NotGenuine("The notice is no form.") from error
        said = dict(pairs)
        if len(said) != len(pairs) or said.get("sign_type", "RSA2") != "RSA2":
            raise NotGenuine("The notice has a field twice, or another kind of signature than RSA2.")
        signature = said.pop("sign", "")
        said.pop("sign_type", None)
        message = _sign_string(said)
        if not any(fits(key, message, signature) for key in self._public_keys):
            raise NotGenuine("The signature does not fit the notice and Alipay's public key.")
        return said

    async def checkout(self, bill: Bill) -> Checkout:
        if bill.currency != CURRENCY or bill.amount_cents > AMOUNT_FEN_MAX:
            raise CheckoutRefused("Alipay takes CNY only, and 100 million yuan at most.")
        now_s = time.time()
        closes_s = min(bill.pay_before_ms // 1000 + OPEN_S_MIN, now_s + OPEN_S_MAX)
        number = trade_number(bill.order_id, on_phone=bill.on_phone)
        content = {
            "out_trade_no": number,
            "total_amount": yuan(bill.amount_cents),
            "subject": _subject(bill.title),
            "product_code": "QUICK_WAP_WAY" if bill.on_phone else "FAST_INSTANT_TRADE_PAY",
            "time_expire": _written(closes_s),
        }
        if bill.on_phone:
            content["quit_url"] = bill.cancel_url
        method = "alipay.trade.wap.pay" if bill.on_phone else "alipay.trade.page.pay"
        more = {"notify_url": self._notify_url, "return_url": bill.return_url}
        address = f"{self._gateway}?{urlencode(self._signed(method, content, now_s, more))}"
        until_ms = int(min(now_s + ADDRESS_GOOD_S, closes_s) * 1000)
        return Checkout(ref=number, address=address, until_ms=until_ms)

    async def call_off(self, ref: str, order_id: str) -> Notice | None:
        closed = await self._ask("alipay.trade.close", {"out_trade_no": ref})
        if closed["code"] == _OK or closed.get("sub_code") == "ACQ.TRADE_NOT_EXIST":  # the buyer has not begun to pay
            return None
        found = await self._ask("alipay.trade.query", {"out_trade_no": ref})
        if found.get("sub_code") == "ACQ.TRADE_NOT_EXIST" or found.get("trade_status") == "TRADE_CLOSED":
            return None
        if found.get("trade_status") in _PAID:
            return _notice(found)
        raise ProviderUnavailable(f"Alipay did not close {ref}: {_words(closed)}.")

    async def refund(self, refund: Refund, order_id: str) -> bool:
        number = refund_number(order_id, refund.id)
        wish = {
            "trade_no": refund.capture.ref,
            "refund_amount": yuan(refund.amount_cents),
            "refund_reason": refund.reason,
            "out_request_no": number,
        }
        made = await self._ask("alipay.trade.refund", wish)
        if made["code"] != _OK:
            if (
                made["code"] == _AWAY
                or "SYSTEM_ERROR" in made.get("sub_code", "")
                or "isp." in made.get("sub_code", "")
            ):
                raise ProviderUnavailable(f"Alipay did not make refund {refund.id}: {_words(made)}.")
            raise RefundRefused(f"Alipay refuses refund {refund.id}: {_words(made)}.")
        if made.get("fund_change") == "Y":
            return True
        # No money moved this time: the refund was made before, or is not made yet.
        asked = {"trade_no": refund.capture.ref, "out_request_no": number}
        found = await self._ask("alipay.trade.fastpay.refund.query", asked)
        if found.get("refund_status") == "REFUND_SUCCESS":
            return True
        raise RefundPending(f"Alipay is still making refund {refund.id}.")

    async def check(self) -> str:
        """An answer shows that Alipay knows us, and its signature that we know Alipay."""
        found = await self._ask("alipay.trade.query", {"out_trade_no": trade_number("0", on_phone=False)})
        if found.get("sub_code") != "ACQ.TRADE_NOT_EXIST" and found["code"] != _OK:
            raise ProviderUnavailable(f"Alipay does not answer as it should: {_words(found)}.")
        return "Alipay knows the app, and its answers are signed"

    async def close(self) -> None:
        await self._http.close()

    def _signed(self, method: str, content: Mapping[str, str], now_s: float, more: Mapping[str, str]) -> dict[str, str]:
        if self._private_key is None:
            raise ProviderUnavailable("Nothing can be asked of Alipay until SECKILL_ALIPAY_PRIVATE_KEY is set.")
        fields = {
            "app_id": self._app_id,
            "method": method,
            "format": "JSON",
            "charset": "utf-8",
            "sign_type": "RSA2",
            "timestamp": _written(now_s),
            "version": "1.0",
            "biz_content": msgspec.json.encode(content).decode(),
            **more,
        }
        return fields | {"sign": sign(private_key(self._private_key.reveal()), _sign_string(fields))}

    async def _ask(self, method: str, content: Mapping[str, str]) -> dict[str, Any]:
        body = urlencode(self._signed(method, content, time.time(), {})).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded;charset=utf-8"}
        reply = await self._http.send("POST", self._gateway, headers, body)
        if reply.status != 200:
            raise ProviderUnavailable(f"Alipay answers {reply.status}.")
        try:
            parts = msgspec.json.decode(reply.body, type=dict[str, msgspec.Raw])
            answer = parts[f"{method.replace('.', '_')}_response"]
            signature = msgspec.json.decode(parts["sign"], type=str)
            said = msgspec.json.decode(answer, type=dict[str, Any])
        except (msgspec.DecodeError, KeyError, UnicodeDecodeError) as error:
            raise ProviderUnavailable("Alipay's answer is not what it should be, or not signed.") from error
        if not any(fits(key, bytes(answer), signature) for key in self._public_keys):
            raise ProviderUnavailable("The signature of Alipay's answer does not fit its public key.")
        if not isinstance(said.get("code"), str):
            raise ProviderUnavailable("Alipay's answer has no code.")
        return said


def _sign_string(fields: Mapping[str, str]) -> bytes:
    return "&".join(f"{name}={fields[name]}" for name in sorted(fields)).encode()


def _notice(said: Mapping[str, Any]) -> Notice | None:
    order_id = order_in(str(said.get("out_trade_no", "")))
    if order_id is None:  # an order of another seller
        return None
    try:
        return Notice(
            ref=str(said["trade_no"]), order_id=order_id, amount_cents=fen(said["total_amount"]), currency=CURRENCY
        )
    except KeyError as error:
        raise NotUnderstood(f"the notice has no {error}") from error


def _moment(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=BEIJING).timestamp()
    except ValueError:
        return 0.0


def _written(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).astimezone(BEIJING).strftime("%Y-%m-%d %H:%M:%S")


def _subject(title: str) -> str:
    """Removes the characters / = & which Alipay does not allow."""
    return title.translate(str.maketrans("/=&", "   "))[:SUBJECT_CHARS_MAX]


def _words(said: Mapping[str, Any]) -> str:
    return " ".join(str(said[name]) for name in ("code", "sub_code", "sub_msg") if name in said)
