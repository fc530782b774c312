"""Alipay: addresses and requests whose signatures the other side checks by itself, its notices, closing and refunds."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seckill.backends.payment.alipay import NOTICE_AGE_S_MAX, Alipay
from seckill.backends.payment.trade_numbers import fen, order_in, trade_number, yuan
from seckill.errors import CheckoutRefused, NotGenuine, NotUnderstood, ProviderUnavailable, RefundPending, RefundRefused
from seckill.payment import Notice
from tests.backends.payment.alipay_stand_in import APP_ID, AlipayStandIn, beijing, key_pair, public_pem
from tests.backends.payment.making import ORDER, bill, refund
from tests.backends.payment.stand_in import served

NOW_S = 1_800_000_000.0
NOTICE = Notice(ref="2026111722001", order_id=ORDER, amount_cents=9_900, currency="CNY")


@pytest.fixture
async def side() -> AsyncIterator[AlipayStandIn]:
    async with served(AlipayStandIn()) as stand_in:
        yield stand_in


@pytest.fixture
async def alipay(side: AlipayStandIn) -> AsyncIterator[Alipay]:
    provider = Alipay(side.settings())
    yield provider
    await provider.close()


@given(some.integers(0, 10**12))
def test_yuan_and_fen(amount: int) -> None:
    assert fen(yuan(amount)) == amount


@pytest.mark.parametrize("text", ["", ".5", "1.", "1.234", "-1", "1e2", "１", "1,000", "0x1", " 1", "1\n"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(NotUnderstood):
        fen(text)


@pytest.mark.parametrize("number", ["", ORDER, "other-shop-17", f"{ORDER}_x", f"{ORDER}_d\n", "_d", f"{ORDER}_r7"])
def test_what_is_no_number_of_ours(number: str) -> None:
    assert order_in(number) is None
    assert order_in(trade_number(ORDER, on_phone=True)) == ORDER


@pytest.mark.parametrize(
    ("on_phone", "method", "product", "number"),
    [
        (False, "alipay.trade.page.pay", "FAST_INSTANT_TRADE_PAY", f"{ORDER}_d"),
        (True, "alipay.trade.wap.pay", "QUICK_WAP_WAY", f"{ORDER}_p"),
    ],
)
async def test_an_address_to_pay_at(
    alipay: Alipay, side: AlipayStandIn, on_phone: bool, method: str, product: str, number: str
) -> None:
    given_ = bill(on_phone=on_phone)
    made = await alipay.checkout(given_)
    assert made.ref == number
    assert made.address.startswith(f"{side.url}/gateway.do?")
    fields = side.believed(urlsplit(made.address).query)
    content = json.loads(fields["biz_content"])
    assert (fields["method"], fields["app_id"], content["product_code"]) == (method, APP_ID, product)
    assert (content["out_trade_no"], content["total_amount"]) == (number, "99.00")
    assert content["time_expire"] == beijing(given_.pay_before_ms // 1000 + 60)
    assert content["subject"] == "手机   phone", "Alipay takes no / in it"
    assert fields["notify_url"] == "https://sale.example.com/v1/payments/callback"
    assert fields["return_url"] == given_.return_url
    assert content.get("quit_url") == (given_.cancel_url if on_phone else None)
    assert side.asked == [], "it is made without asking"


async def test_what_alipay_does_not_take(alipay: Alipay) -> None:
    for changes in ({"currency": "EUR"}, {"amount_cents": 10_000_000_001}):
        with pytest.raises(CheckoutRefused):
            await alipay.checkout(bill(**changes))


def read(alipay: Alipay, sent: tuple[Mapping[str, str], bytes] | None, now_s: float = NOW_S) -> Notice | None:
    assert sent is not None
    return alipay.read({}, sent[1], now_s)


def fields_of(side: AlipayStandIn, **changes: str) -> dict[str, str]:
    fields = {
        "app_id": APP_ID,
        "notify_time": beijing(NOW_S),
        "trade_no": NOTICE.ref,
        "out_trade_no": f"{ORDER}_d",
        "total_amount": "99.00",
        "trade_status": "TRADE_SUCCESS",
        "seller_id": "2088000000000001",
    }
    return fields | changes


def test_notices(alipay: Alipay, side: AlipayStandIn) -> None:
    for status in ("TRADE_SUCCESS", "TRADE_FINISHED"):
        assert read(alipay, side.sent(fields_of(side, trade_status=status))) == NOTICE
    for status in ("WAIT_BUYER_PAY", "TRADE_CLOSED"):
        assert read(alipay, side.sent(fields_of(side, trade_status=status))) is None
    assert read(alipay, side.sent(fields_of(side, out_trade_no="17"))) is None, "sold by others"
    with pytest.raises(NotGenuine, match="another app"):
        read(alipay, side.sent(fields_of(side, app_id="2021000000000002")))
    with pytest.raises(NotUnderstood):
        read(alipay, side.sent(fields_of(side, total_amount="ninety")))
    strict = Alipay(side.settings(alipay_seller_id="2088000000000009"))
    with pytest.raises(NotGenuine, match="seller"):
        read(strict, side.sent(fields_of(side)))


def test_notices_of_other_times(alipay: Alipay, side: AlipayStandIn) -> None:
    """Alipay repeats a notice for 25 hours, and may leave its time as it was."""
    sent = side.sent(fields_of(side))
    assert read(alipay, sent, NOW_S + 25 * 3600) == NOTICE
    for now_s in (NOW_S + NOTICE_AGE_S_MAX + 1, NOW_S - 301):
        with pytest.raises(NotGenuine, match="too old"):
            read(alipay, sent, now_s)
    with pytest.raises(NotGenuine):
        read(alipay, side.sent(fields_of(side, notify_time="now")))


def test_notices_that_are_none(alipay: Alipay, side: AlipayStandIn) -> None:
    _, body = side.sent(fields_of(side))
    for wrong in (
        body + b"&trade_no=other",
        body + b"&x=1",
        body.replace(b"RSA2", b"RSA"),
        b"a",
        b"a=%ff",
        b"=&" * 500,
    ):
        with pytest.raises(NotGenuine):
            alipay.read({}, wrong, NOW_S)
    unsigned = b"&".join(part for part in body.split(b"&") if not part.startswith(b"sign="))
    with pytest.raises(NotGenuine):
        alipay.read({}, unsigned, NOW_S)


def test_two_keys_while_one_is_being_changed(side: AlipayStandIn) -> None:
    both = Alipay(side.settings(alipay_public_keys=(public_pem(key_pair("next")), public_pem(side.own))))
    assert read(both, side.sent(fields_of(side))) == NOTICE
    only_next = Alipay(side.settings(alipay_public_keys=(public_pem(key_pair("next")),)))
    with pytest.raises(NotGenuine):
        read(only_next, side.sent(fields_of(side)))


async def test_calling_off(alipay: Alipay, side: AlipayStandIn) -> None:
    number = f"{ORDER}_d"
    assert await alipay.call_off(number, ORDER) is None, "nobody has begun to pay"
    side.trades[number] = "WAIT_BUYER_PAY"
    assert await alipay.call_off(number, ORDER) is None
    assert side.trades[number] == "TRADE_CLOSED"
    assert await alipay.call_off(number, ORDER) is None, "harmless to repeat"
    side.trades[number] = "TRADE_SUCCESS"
    found = await alipay.call_off(number, ORDER)
    assert found == Notice(ref="2026T1", order_id=ORDER, amount_cents=9_900, currency="CNY")


async def test_refunds(alipay: Alipay, side: AlipayStandIn) -> None:
    side.pending = True
    with pytest.raises(RefundPending):
        await alipay.refund(refund("alipay", amount_cents=29), ORDER)
    side.pending = False
    assert await alipay.refund(refund("alipay", amount_cents=29, attempts=2), ORDER) is True
    assert side.made == {("ref-1", f"{ORDER}_r7"): "0.29"}
    side.trouble("refusing")
    with pytest.raises(RefundRefused, match="SELLER_BALANCE_NOT_ENOUGH"):
        await alipay.refund(refund("alipay", id=8), ORDER)


async def test_answers_that_are_not_alipays_are_not_believed(side: AlipayStandIn) -> None:
    """An attacker in between claims that it is refunded."""
    alipay = Alipay(side.settings(alipay_public_keys=(public_pem(key_pair("another")),)))
    for ask in (alipay.refund(refund("alipay"), ORDER), alipay.check(), alipay.call_off(f"{ORDER}_d", ORDER)):
        with pytest.raises(ProviderUnavailable, match="does not fit"):
            await ask
    await alipay.close()


async def test_whether_alipay_knows_us(alipay: Alipay) -> None:
    assert "knows the app" in await alipay.check()
    assert not alipay.test_mode
    for changes in ({"alipay_private_key": None}, {"alipay_public_keys": ()}):
        bare = Alipay(AlipayStandIn().settings(**changes))
        with pytest.raises(ProviderUnavailable, match="SECKILL_ALIPAY_"):
            _ = bare.read({}, b"", time.time()) if "alipay_public_keys" in changes else await bare.check()


def test_nothing_of_the_key_is_told(side: AlipayStandIn, alipay: Alipay) -> None:
    told: Any = vars(alipay)
    assert "PRIVATE" not in repr(told)
