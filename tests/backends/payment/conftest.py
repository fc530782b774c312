"""The providers, each with what stands in for its other side."""

from collections.abc import AsyncIterator, Callable, Mapping

import msgspec
import pytest

from seckill.backends.payment import callback, provider_http
from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.backends.payment.provider_choice import open_provider
from seckill.payment import Notice, PaymentProvider
from seckill.settings import Secret, Settings
from tests.backends.payment.alipay_stand_in import AlipayStandIn
from tests.backends.payment.stand_in import Asked, Said, StandIn, served
from tests.backends.payment.stripe_stand_in import StripeStandIn
from tests.backends.payment.wechat_stand_in import WeChatStandIn

PAYMENT_SECRET = Secret("the-payment-key-of-the-tests-0123456789")
# The stand-ins answer in milliseconds; a busy machine takes its time all the same.
DEADLINE_S = 2.0


class CallbackStandIn(StandIn):
    """A shop's own payment side, as docs/payment.md tells it to be."""

    def __init__(self) -> None:
        super().__init__()
        self.made: set[str] = set()

    def settings(self) -> Settings:
        return Settings(payment_provider="callback", payment_secret=PAYMENT_SECRET, refund_url=self.url)

    def notify(self, notice: Notice, now_s: float) -> tuple[Mapping[str, str], bytes] | None:
        said = {
            "payment_id": notice.ref,
            "order_id": notice.order_id,
            "amount_cents": notice.amount_cents,
            "currency": notice.currency,
        }
        body = msgspec.json.encode(said)
        return {HEADER: signature(PAYMENT_SECRET, body, int(now_s))}, body

    def refunds(self) -> int:
        return len(self.made)

    def answer(self, asked: Asked) -> Said:
        if self.kind == "refusing":
            return Said(409)
        self.made.add(msgspec.json.decode(asked.body)["refund_id"])
        return Said(200)


Side = CallbackStandIn | StripeStandIn | AlipayStandIn | WeChatStandIn
SIDES: dict[str, Callable[[], Side]] = {
    "callback": CallbackStandIn,
    "stripe": StripeStandIn,
    "alipay": AlipayStandIn,
    "wechat": WeChatStandIn,
}


@pytest.fixture
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback, "REFUND_WITHIN_S", DEADLINE_S)
    monkeypatch.setattr(provider_http, "WITHIN_S", DEADLINE_S)


@pytest.fixture(params=SIDES)
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    async with served(SIDES[request.param]()) as stand_in:
        yield stand_in


@pytest.fixture
async def provider(side: Side) -> AsyncIterator[PaymentProvider]:
    opened = open_provider(side.settings())
    yield opened
    if (close := getattr(opened, "close", None)) is not None:
        await close()
