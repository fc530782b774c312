"""WeChat Pay's side of its API v3, written from its documents and with no code of ours: it checks every request's
signature, signs what it says, and encrypts its notices."""

import base64
import json
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from seckill.payment import Notice
from seckill.settings import Secret, Settings
from tests.backends.payment.alipay_stand_in import is_signed, key_pair, private_pem, public_pem, signed
from tests.backends.payment.stand_in import Asked, Said, StandIn

APP_ID, MERCHANT, SERIAL = "wx8888888888888888", "1900000001", "5157F09EFDC096DE15EBE81A47057A7232F1B8E1"
KEY_ID = "PUB_KEY_ID_0119000000012026111700000000000001"
API_KEY = "k7Qm2Zp9Xw4Rt8Ln5Vb3Hs6Dy1Fc0JgA"
OLD_API_KEY = "a8Bm2Zp9Xw4Rt8Ln5Vb3Hs6Dy1Fc0JgQ"
_AUTHORIZATION = re.compile(
    r'WECHATPAY2-SHA256-RSA2048 mchid="(\d+)",nonce_str="(\w{16,32})",signature="([^"]+)",timestamp="(\d+)",'
    r'serial_no="(\w+)"'
)


class WeChatStandIn(StandIn):
    def __init__(self) -> None:
        super().__init__()
        self.own, self.merchants = key_pair("wechat"), key_pair("wechat merchant")
        self.made: dict[str, dict[str, Any]] = {}
        self.status = "SUCCESS"
        self.trades: dict[str, dict[str, Any]] = {}
        self.believable = True

    def settings(self, **changes: Any) -> Settings:
        given: dict[str, Any] = {
            "payment_provider": "wechat",
            "public_url": "https://sale.example.com",
            "wechat_app_id": APP_ID,
            "wechat_merchant_id": MERCHANT,
            "wechat_serial": SERIAL,
            "wechat_private_key": Secret(private_pem(self.merchants)),
            "wechat_api_keys": (Secret(OLD_API_KEY), Secret(API_KEY)),
            "wechat_public_keys": (f"{KEY_ID}={public_pem(self.own)}",),
            "wechat_url": self.url,
        }
        return Settings(**given | changes)

    def transaction(self, number: str, cents: int, ref: str, currency: str = "CNY", state: str = "SUCCESS") -> bytes:
        facts = {
            "appid": APP_ID,
            "mchid": MERCHANT,
            "out_trade_no": number,
            "transaction_id": ref,
            "trade_type": "NATIVE",
            "trade_state": state,
            "amount": {"total": cents, "payer_total": cents, "currency": currency, "payer_currency": currency},
        }
        return json.dumps(facts).encode()

    def notify(self, notice: Notice, now_s: float) -> tuple[Mapping[str, str], bytes] | None:
        said = self.transaction(f"{notice.order_id}_p", notice.amount_cents, notice.ref, notice.currency)
        return self.sent("TRANSACTION.SUCCESS", said, now_s)

    def sent(self, event: str, said: bytes, now_s: float, key: str = API_KEY) -> tuple[Mapping[str, str], bytes]:
        nonce = secrets.token_hex(6)
        sealed = AESGCM(key.encode()).encrypt(nonce.encode(), said, b"transaction")
        resource = {
            "original_type": "transaction",
            "algorithm": "AEAD_AES_256_GCM",
            "ciphertext": base64.b64encode(sealed).decode(),
            "associated_data": "transaction",
            "nonce": nonce,
        }
        body = json.dumps(
            {"id": "EV-1", "event_type": event, "resource_type": "encrypt-resource", "resource": resource}
        )
        return {"Content-Type": "application/json", **self.signature(body.encode(), now_s)}, body.encode()

    def signature(self, body: bytes, now_s: float) -> dict[str, str]:
        moment, nonce = str(int(now_s)), secrets.token_hex(16)
        key = self.own if self.believable else self.merchants
        return {
            "Wechatpay-Serial": KEY_ID,
            "Wechatpay-Timestamp": moment,
            "Wechatpay-Nonce": nonce,
            "Wechatpay-Signature": signed(key, moment.encode() + b"\n" + nonce.encode() + b"\n" + body + b"\n"),
        }

    def refunds(self) -> int:
        return len(self.made)

    def answer(self, asked: Asked) -> Said:
        found = _AUTHORIZATION.fullmatch(asked.headers["authorization"])
        assert found, asked.headers["authorization"]
        merchant, nonce, signature, moment, serial = found.groups()
        assert (merchant, serial) == (MERCHANT, SERIAL)
        assert abs(int(moment) - time.time()) < 300
        message = "\n".join([asked.method, asked.target, moment, nonce, asked.body.decode(), ""])
        assert is_signed(self.merchants, message.encode(), signature)
        assert asked.headers["wechatpay-serial"] == KEY_ID
        status, facts = self._does(asked, json.loads(asked.body) if asked.body else {})
        body = b"" if status == 204 else json.dumps(facts).encode()
        return Said(status, body, self.signature(body, time.time()))

    def _does(self, asked: Asked, wish: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        path, _, query = asked.target.partition("?")
        if asked.method == "POST" and path == "/v3/refund/domestic/refunds":
            if self.kind == "refusing":
                return 403, {"code": "NOT_ENOUGH", "message": "基本账户余额不足"}
            assert self.made.setdefault(wish["out_refund_no"], wish) == wish, "another refund under the same number"
            return 200, {"status": self.status, "out_refund_no": wish["out_refund_no"]}
        if found := re.fullmatch(r"/v3/refund/domestic/refunds/(\w+)", path):
            known = found[1] in self.made
            return (200, {"status": self.status}) if known else (404, {"code": "RESOURCE_NOT_EXISTS", "message": "no"})
        if found := re.fullmatch(r"/v3/pay/transactions/(native|h5)", path):
            assert (wish["appid"], wish["mchid"], wish["amount"]["currency"]) == (APP_ID, MERCHANT, "CNY")
            known_trade = self.trades.setdefault(wish["out_trade_no"], wish)
            if known_trade["amount"] != wish["amount"]:
                return 400, {"code": "INVALID_REQUEST", "message": "201 商户订单号重复"}
            if found[1] == "native":
                return 200, {"code_url": f"weixin://wxpay/bizpayurl?pr={wish['out_trade_no']}"}
            assert wish["scene_info"]["payer_client_ip"]
            return 200, {
                "h5_url": f"https://wx.tenpay.com/cgi-bin/mmpayweb-bin/checkmweb?prepay_id={wish['out_trade_no']}"
            }
        found = re.fullmatch(r"/v3/pay/transactions/out-trade-no/(\w+)(/close)?", path)
        assert found, path
        trade = self.trades.get(found[1])
        if trade is None:
            return 404, {"code": "ORDER_NOT_EXIST", "message": "订单不存在"}
        if found[2]:
            assert wish == {"mchid": MERCHANT}
            if trade.get("state", "NOTPAY") != "NOTPAY":
                return 400, {"code": "ORDERPAID", "message": "订单已支付"}
            trade["state"] = "CLOSED"
            return 204, {}
        assert query == f"mchid={MERCHANT}"
        said = self.transaction(found[1], trade["amount"]["total"], "4200001", state=trade.get("state", "NOTPAY"))
        return 200, json.loads(said)
