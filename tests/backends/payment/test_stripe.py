"""Stripe: requests as stripe-mock wants them, sessions that are not made twice, webhooks, amounts, and refunds that
take their time."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seckill.backends.payment.stripe_amounts import from_stripe, to_stripe
from seckill.backends.payment.stripe_checkout import HALF_DAY_S, Stripe
from seckill.domain.money import DECIMALS
from seckill.errors import CheckoutRefused, NotGenuine, NotUnderstood, ProviderUnavailable, RefundPending, RefundRefused
from seckill.lab.servers.ports import free_port
from seckill.payment import Capture, Notice
from seckill.settings import Secret
from tests.backends.payment.making import ORDER, bill, refund
from tests.backends.payment.stand_in import served
from tests.backends.payment.stripe_stand_in import KEY, OLD_SECRET, SECRET, StripeStandIn, session_of
from tests.fixtures import missing
from tests.patience import PATIENCE_S

NOW_S = 1_800_000_000.0
NOTICE = Notice(ref="pi_1", order_id=ORDER, amount_cents=9_900, currency="CNY")


@pytest.fixture
async def side() -> AsyncIterator[StripeStandIn]:
    async with served(StripeStandIn()) as stand_in:
        yield stand_in


@pytest.fixture
async def stripe(side: StripeStandIn) -> AsyncIterator[Stripe]:
    provider = Stripe(side.settings())
    yield provider
    await provider.close()


@pytest.fixture(scope="module")
def stripe_mock() -> Iterator[str]:
    program = shutil.which("stripe-mock") or str(Path(sys.prefix) / "servers" / "stripe-mock" / "stripe-mock")
    if not Path(program).exists():
        missing("stripe-mock is not there: scripts/get-servers builds it, if there is Go")
    address = f"127.0.0.1:{free_port()}"
    with subprocess.Popen([program, "-http-addr", address], stdout=subprocess.DEVNULL) as server:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            with suppress(httpx2.HTTPError):
                httpx2.get(f"http://{address}/v1/balance")
                break
            assert server.poll() is None
            assert time.monotonic() < deadline_s, "stripe-mock does not answer"
            time.sleep(0.05)
        yield f"http://{address}"
        server.terminate()


@pytest.fixture
async def mocked(stripe_mock: str) -> AsyncIterator[Stripe]:
    """It knows what every request of Stripe's API must look like, and remembers nothing."""
    provider = Stripe(StripeStandIn().settings(stripe_url=stripe_mock))
    yield provider
    await provider.close()


@pytest.mark.parametrize(("currency", "cents"), [("CNY", 9_900), ("JPY", 9_900), ("KWD", 9_900), ("ISK", 9_900)])
async def test_requests_are_as_stripe_wants_them(mocked: Stripe, currency: str, cents: int) -> None:
    made = await mocked.checkout(bill(currency=currency, amount_cents=cents))
    assert made.address.startswith("https://checkout.stripe.com/")
    # The mock says the same of every session and refund, whatever was asked: here it counts that it answers.
    assert await mocked.call_off(made.ref, ORDER) is None
    capture = Capture(provider="stripe", ref="pi_1", amount_cents=cents, currency=currency)
    assert await mocked.refund(refund("stripe", capture=capture, amount_cents=cents), ORDER) is True
    assert "Stripe knows the key" in await mocked.check()


async def test_a_request_that_is_wrong_would_be_noticed(mocked: Stripe) -> None:
    """The control of the test above."""
    with pytest.raises(CheckoutRefused):
        await mocked.checkout(replace(bill(), return_url=["no", "address"]))  # type: ignore[arg-type]
    refused = Stripe(replace(StripeStandIn().settings(stripe_url=mocked._url), stripe_key=Secret("no key")))
    with pytest.raises(ProviderUnavailable, match="401"):
        await refused.check()
    await refused.close()


async def test_a_bill_has_one_session_however_often_it_is_asked_for(stripe: Stripe, side: StripeStandIn) -> None:
    given = bill()
    first, *others = await asyncio.gather(*(stripe.checkout(given) for _ in range(5)))
    assert all(other == first for other in others)
    assert len(side.sessions) == 1
    [session] = side.sessions.values()
    form = session["form"]
    assert form["line_items[0][price_data][unit_amount]"] == "9900"
    assert form["line_items[0][price_data][currency]"] == "cny"
    assert (form["success_url"], form["cancel_url"]) == (given.return_url, given.cancel_url)
    assert form["client_reference_id"] == ORDER
    assert form["adaptive_pricing[enabled]"] in ("false", "False")
    open_s = int(form["expires_at"]) - time.time()
    assert 30 * 60 < open_s <= 24 * 3600, "within Stripe's limits"


async def test_an_order_with_days_to_pay_gets_a_new_session_every_half_day(
    stripe: Stripe, side: StripeStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.time()
    given = bill(pay_before_ms=int(now_s * 1000) + 30 * 86_400_000)
    for later_s in (0, 60, HALF_DAY_S - 60, HALF_DAY_S + 60, 2 * HALF_DAY_S + 60):
        monkeypatch.setattr(time, "time", lambda later_s=later_s: now_s + later_s)
        made = await stripe.checkout(given)
        open_s = int(side.sessions[made.ref]["form"]["expires_at"]) - now_s - later_s
        assert 30 * 60 < open_s < 24 * 3600
        assert made.until_ms > (now_s + later_s) * 1000
    assert len(side.sessions) == 3


@pytest.mark.parametrize(
    ("currency", "ours", "stripes"),
    [
        ("USD", 9_900, 9_900),
        ("JPY", 9_900, 9_900),
        ("KRW", 1, 1),
        ("ISK", 150, 15_000),
        ("UGX", 150, 15_000),
        ("MGA", 15_000, 150),
        ("KWD", 9_990, 9_990),
    ],
)
def test_amounts_as_stripe_counts_them(currency: str, ours: int, stripes: int) -> None:
    assert to_stripe(ours, currency) == stripes
    assert from_stripe(stripes, currency) == ours


def test_no_amount_is_changed_on_the_way() -> None:
    for currency in DECIMALS:
        for cents in (100, 9_900, 123_400, 99_999_900):
            assert from_stripe(to_stripe(cents, currency), currency) == cents, currency


@pytest.mark.parametrize(("currency", "cents"), [("KWD", 9_999), ("MGA", 150)])
async def test_what_stripe_cannot_express_is_refused_and_not_rounded(stripe: Stripe, currency: str, cents: int) -> None:
    with pytest.raises(CheckoutRefused, match="fraction"):
        await stripe.checkout(bill(currency=currency, amount_cents=cents))
    capture = Capture(provider="stripe", ref="pi_1", amount_cents=10_000, currency=currency)
    with pytest.raises(RefundRefused, match="fraction"):
        await stripe.refund(refund("stripe", capture=capture, amount_cents=cents), ORDER)
    with pytest.raises(ValueError, match="no whole amount"):
        from_stripe(150, "ISK")


def read(stripe: Stripe, sent: tuple[Any, bytes], now_s: float = NOW_S) -> Notice | None:
    headers, body = sent
    return stripe.read({name.lower(): value for name, value in headers.items()}, body, now_s)


def test_webhooks(side: StripeStandIn, stripe: Stripe) -> None:
    paid = session_of(NOTICE)
    completed, later = "checkout.session.completed", "checkout.session.async_payment_succeeded"
    for secret in (SECRET, OLD_SECRET):
        assert read(stripe, side.sent(completed, paid, NOW_S, secret)) == NOTICE
    assert read(stripe, side.sent(later, paid, NOW_S)) == NOTICE
    krona = replace(NOTICE, currency="ISK")
    assert read(stripe, side.sent(completed, session_of(krona), NOW_S)) == krona
    assert read(stripe, side.sent(completed, paid | {"payment_status": "unpaid"}, NOW_S)) is None, "comes later"
    assert read(stripe, side.sent(completed, paid | {"metadata": {}}, NOW_S)) is None, "sold by others"
    for other in ("checkout.session.expired", "checkout.session.async_payment_failed", "refund.updated"):
        assert read(stripe, side.sent(other, paid, NOW_S)) is None
    for wrong in ({"payment_intent": None}, {"amount_total": None}, {"currency": "xyz"}, {"amount_total": "1"}):
        with pytest.raises(NotUnderstood):
            read(stripe, side.sent(completed, paid | wrong, NOW_S))


@pytest.mark.parametrize("header", ["", "t=1", "t=x,v1=y", "v1=é", "t=1,v1=é", "t=" + "9" * 5000 + ",v1=0", "t=²,v1=0"])
def test_signatures_that_are_none(side: StripeStandIn, stripe: Stripe, header: str) -> None:
    _, body = side.sent("checkout.session.completed", session_of(NOTICE), NOW_S)
    with pytest.raises(NotGenuine):
        stripe.read({"stripe-signature": header}, body, NOW_S)


def test_signatures_of_other_times_and_other_secrets(side: StripeStandIn, stripe: Stripe) -> None:
    paid = session_of(NOTICE)
    for moment_s in (NOW_S - 301, NOW_S + 301):
        with pytest.raises(NotGenuine, match="300 s"):
            read(stripe, side.sent("checkout.session.completed", paid, moment_s))
    with pytest.raises(NotGenuine):
        read(stripe, side.sent("checkout.session.completed", paid, NOW_S, "whsec_ofsomebodyelsesomebodyelse"))


async def test_a_refund_is_asked_for_until_it_is_done(stripe: Stripe, side: StripeStandIn) -> None:
    side.status = "pending"
    with pytest.raises(RefundPending):
        await stripe.refund(refund("stripe"), ORDER)
    with pytest.raises(RefundPending):
        await stripe.refund(refund("stripe", attempts=2), ORDER)
    side.made["re_1"]["status"] = "succeeded"
    assert await stripe.refund(refund("stripe", attempts=3), ORDER) is True
    assert side.refunds() == 1


async def test_a_refund_that_fails_later_is_for_people(stripe: Stripe, side: StripeStandIn) -> None:
    side.status = "failed"
    with pytest.raises(RefundRefused, match="re_1 has failed"):
        await stripe.refund(refund("stripe"), ORDER)
    with pytest.raises(RefundRefused):
        await stripe.refund(refund("stripe", attempts=2, refused="failed"), ORDER)
    assert side.refunds() == 1


async def test_a_refund_is_made_once_when_stripe_has_forgotten_the_key(stripe: Stripe, side: StripeStandIn) -> None:
    part = refund("stripe", amount_cents=4_000)
    assert await stripe.refund(part, ORDER) is True
    side.forget_keys()
    assert await stripe.refund(replace(part, attempts=2), ORDER) is True
    assert await stripe.refund(replace(part, id=8), ORDER) is True
    assert side.refunds() == 2


async def test_calling_off(stripe: Stripe, side: StripeStandIn) -> None:
    made = await stripe.checkout(bill())
    assert await stripe.call_off(made.ref, ORDER) is None
    assert side.sessions[made.ref]["status"] == "expired"
    assert await stripe.call_off(made.ref, ORDER) is None, "harmless to repeat"
    side.sessions[made.ref] |= {"status": "complete", "payment_status": "paid"}
    assert await stripe.call_off(made.ref, ORDER) == NOTICE
    with pytest.raises(ProviderUnavailable):
        await stripe.call_off("cs_unknown", ORDER)


async def test_nothing_of_the_key_is_told(stripe: Stripe, side: StripeStandIn) -> None:
    side.trouble("away")
    with pytest.raises(ProviderUnavailable) as told:
        await stripe.checkout(bill())
    assert KEY not in f"{told.value!r} {told.value.__cause__!r} {stripe.__dict__}"
    assert stripe.test_mode
