"""Alipay's side of its interface, written from its documents and with no code of ours: it checks every request's
signature, and signs what it says."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qs, quote_plus, unquote_plus

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from seckill.payment import Notice
from seckill.settings import Secret, Settings
from tests.backends.payment.stand_in import Asked, Said, StandIn

APP_ID = "2021000000000001"


@cache
def key_pair(_: str) -> rsa.RSAPrivateKey:
    """One for each name; making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private_pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def public_pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def signed(key: rsa.RSAPrivateKey, message: bytes) -> str:
    return base64.b64encode(key.sign(message, padding.PKCS1v15(), hashes.SHA256())).decode()


def is_signed(key: rsa.RSAPrivateKey, message: bytes, signature: str) -> bool:
    try:
        key.public_key().verify(base64.b64decode(signature), message, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def beijing(now_s: float) -> str:
    return (datetime.fromtimestamp(now_s, UTC) + timedelta(hours=8)).strftime("%Y-%m-%d %H:%M:%S")


class AlipayStandIn(StandIn):
    def __init__(self) -> None:
        super().__init__()
        self.own, self.apps = key_pair("alipay"), key_pair("alipay app")
        self.made: dict[tuple[str, str], str] = {}  # trade and request → amount
        self.pending = False
        self.trades: dict[str, str] = {}  # out_trade_no → trade_status

    def settings(self, **changes: Any) -> Settings:
        given: dict[str, Any] = {
            "payment_provider": "alipay",
            "public_url": "https://sale.example.com",
            "alipay_app_id": APP_ID,
            "alipay_private_key": Secret(private_pem(self.apps)),
            "alipay_public_keys": (public_pem(self.own),),
            "alipay_url": f"{self.url}/gateway.do",
        }
        return Settings(**given | changes)

    def notify(self, notice: Notice, now_s: float) -> tuple[Mapping[str, str], bytes] | None:
        if notice.currency != "CNY":
            return None
        yuan, fen = divmod(notice.amount_cents, 100)
        return self.sent(
            {
                "app_id": APP_ID,
                "charset": "utf-8",
                "notify_time": beijing(now_s),
                "notify_type": "trade_status_sync",
                "notify_id": "ac05099524730693a8b330c5ecf72da9786",
                "trade_no": notice.ref,
                "out_trade_no": f"{notice.order_id}_d",
                "total_amount": f"{yuan}.{fen:02d}",
                "trade_status": "TRADE_SUCCESS",
                "subject": "手机 & more",
                "version": "1.0",
            }
        )

    def sent(self, fields: Mapping[str, str]) -> tuple[Mapping[str, str], bytes]:
        message = "&".join(f"{name}={value}" for name, value in sorted(fields.items()))
        given = {**fields, "sign": signed(self.own, message.encode()), "sign_type": "RSA2"}
        body = "&".join(f"{name}={quote_plus(value)}" for name, value in given.items())
        return {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, body.encode()

    def refunds(self) -> int:
        return len(self.made)

    def believed(self, query: str) -> dict[str, str]:
        """The fields of a request or an address, if their signature is right."""
        fields = {name: unquote_plus(value) for name, _, value in (part.partition("=") for part in query.split("&"))}
        assert fields == {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
        signature = fields.pop("sign")
        message = "&".join(f"{name}={fields[name]}" for name in sorted(fields) if fields[name] != "")
        assert fields["sign_type"] == "RSA2"
        assert is_signed(self.apps, message.encode(), signature), message
        return fields

    def answer(self, asked: Asked) -> Said:
        assert asked.method == "POST"
        fields = self.believed(asked.body.decode())
        said = json.dumps(self._does(fields["method"], json.loads(fields["biz_content"])), ensure_ascii=False)
        node = fields["method"].replace(".", "_") + "_response"
        body = f'{{"{node}":{said},"sign":"{signed(self.own, said.encode())}"}}'
        return Said(200, body.encode(), {"Content-Type": "text/html;charset=utf-8"})

    def _does(self, method: str, wish: Mapping[str, str]) -> dict[str, str]:
        no = {"code": "40004", "msg": "Business Failed", "sub_code": "ACQ.TRADE_NOT_EXIST", "sub_msg": "交易不存在"}
        if method == "alipay.trade.refund":
            if self.kind == "refusing":
                return no | {"sub_code": "ACQ.SELLER_BALANCE_NOT_ENOUGH"}
            request = (wish["trade_no"], wish["out_request_no"])
            again = request in self.made
            assert self.made.setdefault(request, wish["refund_amount"]) == wish["refund_amount"]
            return {"code": "10000", "msg": "Success", "fund_change": "N" if again or self.pending else "Y"}
        if method == "alipay.trade.fastpay.refund.query":
            done = not self.pending and (wish["trade_no"], wish["out_request_no"]) in self.made
            return {"code": "10000"} | ({"refund_status": "REFUND_SUCCESS"} if done else {})
        status = self.trades.get(wish["out_trade_no"])
        if status is None:
            return no
        if method == "alipay.trade.query":
            more = {"trade_no": "2026T1", "out_trade_no": wish["out_trade_no"], "total_amount": "99.00"}
            return {"code": "10000", "trade_status": status} | more
        assert method == "alipay.trade.close"
        if status != "WAIT_BUYER_PAY":
            return no | {"sub_code": "ACQ.TRADE_STATUS_ERROR"}
        self.trades[wish["out_trade_no"]] = "TRADE_CLOSED"
        return {"code": "10000", "out_trade_no": wish["out_trade_no"]}
