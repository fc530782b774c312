"""WeChat Pay: requests whose signatures the other side checks by itself, encrypted notices, closing and refunds."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from seckill.backends.payment.wechat import WeChat
from seckill.errors import CheckoutRefused, NotGenuine, NotUnderstood, ProviderUnavailable, RefundPending, RefundRefused
from seckill.payment import Notice
from seckill.settings import Secret
from seckill.settings.provider_keys import wechat_public_keys
from tests.backends.payment.making import ORDER, bill, refund
from tests.backends.payment.stand_in import served
from tests.backends.payment.wechat_stand_in import API_KEY, KEY_ID, OLD_API_KEY, WeChatStandIn

NOW_S = 1_800_000_000.0
NOTICE = Notice(ref="4200002026", order_id=ORDER, amount_cents=9_900, currency="CNY")


@pytest.fixture
async def side() -> AsyncIterator[WeChatStandIn]:
    async with served(WeChatStandIn()) as stand_in:
        yield stand_in


@pytest.fixture
async def wechat(side: WeChatStandIn) -> AsyncIterator[WeChat]:
    provider = WeChat(side.settings())
    yield provider
    await provider.close()


async def test_a_code_to_scan_and_a_page_for_phones(wechat: WeChat, side: WeChatStandIn) -> None:
    given = bill(title="限量手机" * 40)
    scanned = await wechat.checkout(given)
    assert scanned.address == f"weixin://wxpay/bizpayurl?pr={ORDER}_d"
    wish = json.loads(side.asked[-1].body)
    assert wish["description"] == ("限量手机" * 11)[:42], "in 127 bytes, and no half character"
    assert wish["amount"] == {"total": 9_900, "currency": "CNY"}
    assert wish["notify_url"] == "https://sale.example.com/v1/payments/callback"
    moment = datetime.fromisoformat(wish["time_expire"]).timestamp()
    assert moment == given.pay_before_ms // 1000 + 60
    page = await wechat.checkout(bill(on_phone=True))
    assert urlsplit(page.address).hostname == "wx.tenpay.com"
    assert parse_qs(urlsplit(page.address).query)["redirect_url"] == [given.return_url]
    assert json.loads(side.asked[-1].body)["scene_info"]["payer_client_ip"] == given.buyer_address
    assert scanned.until_ms > page.until_ms > time.time() * 1000


async def test_what_wechat_pay_does_not_take(wechat: WeChat) -> None:
    with pytest.raises(CheckoutRefused, match="CNY only"):
        await wechat.checkout(bill(currency="EUR"))
    await wechat.checkout(bill())
    with pytest.raises(CheckoutRefused, match="INVALID_REQUEST"):
        await wechat.checkout(bill(amount_cents=1))


def read(wechat: WeChat, sent: tuple[Mapping[str, str], bytes], now_s: float = NOW_S) -> Notice | None:
    headers, body = sent
    return wechat.read({name.lower(): value for name, value in headers.items()}, body, now_s)


def test_notices(wechat: WeChat, side: WeChatStandIn) -> None:
    paid = side.transaction(f"{ORDER}_d", 9_900, NOTICE.ref)
    for key in (API_KEY, OLD_API_KEY):
        assert read(wechat, side.sent("TRANSACTION.SUCCESS", paid, NOW_S, key)) == NOTICE
    assert read(wechat, side.sent("REFUND.SUCCESS", b"{}", NOW_S)) is None
    others = [side.transaction("17", 1, "x"), paid.replace(b'"mchid": "1900000001"', b'"mchid": "1900000002"')]
    unpaid = side.transaction(f"{ORDER}_d", 9_900, NOTICE.ref, state="PAYERROR")
    for said in (*others, unpaid):
        assert read(wechat, side.sent("TRANSACTION.SUCCESS", said, NOW_S)) is None
    for said in (b"{}", b"nothing", b"\xff", side.transaction(f"{ORDER}_d", 9_900, "")):
        with pytest.raises(NotUnderstood):
            read(wechat, side.sent("TRANSACTION.SUCCESS", said, NOW_S))
    with pytest.raises(NotUnderstood, match="SECKILL_WECHAT_API_KEYS"):
        read(wechat, side.sent("TRANSACTION.SUCCESS", paid, NOW_S, "z" * 32))


def test_signatures_of_others_and_of_other_times(wechat: WeChat, side: WeChatStandIn) -> None:
    paid = side.transaction(f"{ORDER}_d", 9_900, NOTICE.ref)
    sent = side.sent("TRANSACTION.SUCCESS", paid, NOW_S)
    for now_s in (NOW_S + 301, NOW_S - 301):
        with pytest.raises(NotGenuine, match="300 s"):
            read(wechat, sent, now_s)
    headers, body = sent
    for changes in (
        {"Wechatpay-Serial": "PUB_KEY_ID_9"},
        {"Wechatpay-Signature": f"WECHATPAY/SIGNTEST/{headers['Wechatpay-Signature']}"},
        {"Wechatpay-Timestamp": "²"},
        {"Wechatpay-Nonce": "other"},
    ):
        with pytest.raises(NotGenuine):
            read(wechat, ({**headers, **changes}, body))


def test_a_platform_certificate_in_the_place_of_the_public_key(side: WeChatStandIn) -> None:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Tenpay.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, side.own.public_key(), 0xABCDEF0123)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(side.own, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
        .decode()
    )
    wechat = WeChat(side.settings(wechat_public_keys=wechat_public_keys(certificate)))
    headers, body = side.sent("TRANSACTION.SUCCESS", side.transaction(f"{ORDER}_d", 9_900, NOTICE.ref), NOW_S)
    assert read(wechat, ({**headers, "Wechatpay-Serial": "ABCDEF0123"}, body)) == NOTICE
    with pytest.raises(NotGenuine):
        read(wechat, ({**headers, "Wechatpay-Serial": KEY_ID}, body))


async def test_calling_off(wechat: WeChat, side: WeChatStandIn) -> None:
    number = f"{ORDER}_d"
    assert await wechat.call_off(number, ORDER) is None, "there is none"
    await wechat.checkout(bill())
    assert await wechat.call_off(number, ORDER) is None
    assert side.trades[number]["state"] == "CLOSED"
    assert await wechat.call_off(number, ORDER) is None, "harmless to repeat"
    side.trades[number]["state"] = "SUCCESS"
    assert await wechat.call_off(number, ORDER) == Notice(
        ref="4200001", order_id=ORDER, amount_cents=9_900, currency="CNY"
    )
    side.trades[number]["state"] = "USERPAYING"
    with pytest.raises(ProviderUnavailable):
        await wechat.call_off(number, ORDER)


async def test_refunds(wechat: WeChat, side: WeChatStandIn) -> None:
    side.status = "PROCESSING"
    for attempts in (1, 2):
        with pytest.raises(RefundPending):
            await wechat.refund(refund("wechat", amount_cents=4_000, attempts=attempts), ORDER)
    assert [asked.method for asked in side.asked] == ["POST", "GET"], "who asks again, looks"
    side.status = "SUCCESS"
    assert await wechat.refund(refund("wechat", amount_cents=4_000, attempts=3), ORDER) is True
    [wish] = side.made.values()
    assert wish["amount"] == {"refund": 4_000, "total": 9_900, "currency": "CNY"}
    for status in ("ABNORMAL", "CLOSED"):
        side.status = status
        with pytest.raises(RefundRefused, match=status):
            await wechat.refund(refund("wechat", id=8), ORDER)


async def test_answers_that_are_not_wechat_pays_are_not_believed(wechat: WeChat, side: WeChatStandIn) -> None:
    """An attacker in between claims that it is refunded."""
    side.believable = False
    for ask in (wechat.refund(refund("wechat"), ORDER), wechat.checkout(bill()), wechat.check()):
        with pytest.raises(ProviderUnavailable, match="cannot be believed"):
            await ask


async def test_whether_wechat_pay_knows_us(wechat: WeChat) -> None:
    assert "knows the merchant" in await wechat.check()
    bare = WeChat(WeChatStandIn().settings(wechat_private_key=None, wechat_public_keys=()))
    with pytest.raises(ProviderUnavailable, match="SECKILL_WECHAT_PRIVATE_KEY"):
        await bare.check()
    with pytest.raises(ProviderUnavailable, match="SECKILL_WECHAT_PUBLIC_KEYS"):
        bare.read({}, b"", NOW_S)


def test_nothing_of_the_keys_is_told(wechat: WeChat) -> None:
    assert API_KEY not in repr(vars(wechat))
    assert "PRIVATE" not in repr(vars(wechat))
    assert repr(Secret(API_KEY)) == "Secret(***)"
