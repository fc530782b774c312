"""Shops test with the engine in memory, and with the check of their payment provider."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from seckill import OrderState, Settings
from seckill.backends.payment.callback import Callback
from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.backends.payment.sandbox import Sandbox
from seckill.client import Conflict, TooMany
from seckill.domain.sale import SaleState
from seckill.payment import NotGenuine, Notice, PaymentProvider, ProviderUnavailable, Refund
from seckill.settings import Secret
from seckill.testing import Breaches, MemoryEngine, check_provider, memory_engine

SECRET = Secret("0123456789abcdef0123456789abcdef-of-payments")
NOW_S = 1_800_000_000.0
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def shop() -> AsyncIterator[MemoryEngine]:
    async with memory_engine() as engine:
        yield engine


async def test_an_order_that_nobody_pays_expires_and_its_unit_comes_back(shop: MemoryEngine) -> None:
    began = shop.now()
    sale = await shop.operator.create_sale(
        "Phone", units=1, price_cents=9900, begins_at=began, ends_at=began + timedelta(days=1), pay_within_s=900
    )
    ann, bob = shop.buyer("ann"), shop.buyer("bob")
    claimed = await ann.claim(sale.id)
    await shop.pass_time(890)
    assert (await ann.order(claimed.order_id)).state is OrderState.UNPAID
    with pytest.raises(Conflict):
        await bob.claim(sale.id)
    await shop.pass_time(timedelta(seconds=20))
    order = await ann.order(claimed.order_id)
    assert order.state is OrderState.EXPIRED
    assert order.closed_at is not None
    assert order.closed_at - order.created_at >= timedelta(minutes=15), "the ledger goes by the same clock"
    assert (await bob.claim(sale.id)).state is OrderState.QUEUED
    await shop.pass_time(timedelta(days=1))
    assert (await shop.operator.sale(sale.id)).state is SaleState.ENDED


async def test_a_sale_begins_when_the_clock_says_so(shop: MemoryEngine) -> None:
    begins_at = shop.now() + timedelta(hours=3)
    sale = await shop.operator.create_sale(
        "Phone", units=1, begins_at=begins_at, ends_at=begins_at + timedelta(hours=1)
    )
    assert sale.state is SaleState.SCHEDULED
    with pytest.raises(Conflict) as early:
        await shop.buyer("ann").claim(sale.id)
    assert early.value.code == "not_started"
    await shop.pass_time(timedelta(hours=3))
    claimed = await shop.buyer("ann").claim(sale.id)
    order = await shop.buyer("ann").wait_for_order(claimed.order_id)
    assert order.state is OrderState.PAID, "free, and written by itself"


async def test_two_engines_do_not_know_each_other(shop: MemoryEngine) -> None:
    async with memory_engine(Settings(cool_down_s=60)) as other:
        assert (await other.operator.sales()).sales == []
        now = other.now()
        sale = await other.operator.create_sale("X", units=9, price_cents=1, begins_at=now, ends_at=now + timedelta(1))
        ann = other.buyer("ann")
        await other.settle()
        claimed = await ann.claim(sale.id)
        await other.settle()
        await ann.cancel(claimed.order_id)
        await other.settle()
        with pytest.raises(TooMany) as cooling:
            await ann.claim(sale.id)
        assert cooling.value.code == "cooling_down", "the shop's own settings count"
    assert (await shop.operator.sales()).sales == []


def test_the_fixture(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["seckill.testing.fixtures"]')
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.asyncio
        async def test_it(seckill_engine):
            assert (await seckill_engine.operator.sales()).sales == []
        """
    )
    done = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)


class Bank:
    """A provider as it should be; `flaw` says in which way it is not."""

    sandbox: Any = False

    def __init__(self, flaw: str = "", name: Any = "bank") -> None:
        self.flaw = flaw
        self.name = name
        self.refunded: list[int] = []

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice:
        expected = hmac.new(b"k", body, hashlib.sha256).hexdigest()
        if self.flaw != "trusts" and headers.get("x-bank") != expected:
            raise KeyError("x-bank") if self.flaw == "surprises" else NotGenuine("Who are you?")
        said: dict[str, Any] = json.loads(body) if headers else {"ref": "r", "cents": 1}
        amount: Any = 0 if self.flaw == "nothing" else said["cents"]
        ref = "*r" if self.flaw == "star" else said["ref"]
        currency = "RMB" if self.flaw == "currency" else "CNY"
        return Notice(ref=ref, order_id="ORDER", amount_cents=amount, currency=currency)

    async def refund(self, refund: Refund, order_id: str) -> bool:
        if self.flaw == "away":
            raise ProviderUnavailable("closed")
        if self.flaw == "breaks":
            raise ZeroDivisionError
        if self.flaw == "twice" or refund.id not in self.refunded:
            self.refunded.append(refund.id)
        return "yes" if self.flaw == "words" else True  # type: ignore[return-value]


BODY = b'{"ref": "r1", "cents": 9900}'
CALLBACK = ({"X-Bank": hmac.new(b"k", BODY, hashlib.sha256).hexdigest()}, BODY)


async def test_a_provider_as_it_should_be() -> None:
    bank = Bank()
    await check_provider(bank, callback=CALLBACK, refunds=lambda: len(bank.refunded))


@pytest.mark.parametrize("kind", [Sandbox, Callback])
async def test_the_providers_that_ship_pass(kind: type[Sandbox] | type[Callback]) -> None:
    body = b'{"payment_id": "p1", "order_id": "ORDER", "amount_cents": 9900, "currency": "CNY"}'
    provider: PaymentProvider = kind(Settings(payment_secret=SECRET))
    await check_provider(provider, callback=({HEADER: signature(SECRET, body, int(NOW_S))}, body), now_s=NOW_S)


@pytest.mark.parametrize(
    ("flaw", "sentences"),
    [
        ("trusts", ["takes an empty callback for genuine", "not text", "unsigned", "although byte "]),
        ("surprises", ["must raise NotGenuine for an empty callback, not KeyError"]),
        ("nothing", ["`amount_cents` must be a whole number above 0, not 0"]),
        ("star", [r"`ref` must not begin with \*"]),
        ("currency", ["`currency` must be a code of ISO 4217, not 'RMB'"]),
        ("twice", ["asked for 1, 1 and 2, it made 3"]),
        ("words", ["`refund` must return True or False, not 'yes'"]),
        ("breaks", ["may raise ProviderUnavailable or RefundRefused only, not ZeroDivisionError"]),
        ("away", ["cannot be checked while the payment side is away"]),
    ],
)
async def test_every_breach_is_a_sentence(flaw: str, sentences: list[str]) -> None:
    bank = Bank(flaw)
    with pytest.raises(Breaches) as found:
        await check_provider(bank, callback=CALLBACK, refunds=lambda: len(bank.refunded))
    for sentence in sentences:
        found.match(sentence)
    assert str(found.value).splitlines() == found.value.sentences


async def test_what_is_no_provider_at_all() -> None:
    class Nothing:
        name = "x" * 33
        sandbox = "no"

        async def read(self) -> None: ...
        def refund(self) -> None: ...

    with pytest.raises(Breaches) as found:
        await check_provider(Nothing())  # type: ignore[arg-type]
    assert len(found.value.sentences) == 4


async def test_a_callback_that_is_not_understood() -> None:
    with pytest.raises(Breaches, match="must understand the genuine callback, and raises NotGenuine"):
        await check_provider(Bank(), callback=({}, BODY))


def test_nothing_of_it_is_needed_by_the_engine() -> None:
    package = ROOT / "seckill"
    importers = [path for path in package.rglob("*.py") if "seckill.testing" in path.read_text()]
    assert {path.relative_to(package).parts[0] for path in importers} == {"testing", "__init__.py"}
