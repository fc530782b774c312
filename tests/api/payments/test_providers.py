"""Providers: the sandbox, the shop's own payment side with its refunds, and one that a shop brings along."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from seckill.backends.payment.callback_signature import HEADER, verify
from seckill.backends.payment.provider_choice import open_provider
from seckill.bootstrap.engine import open_engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.money import refunds as refunds_module
from seckill.errors import NotGenuine, ProviderUnavailable, SettingsError, StartError
from seckill.ports.payment import Notice, Refund
from seckill.settings import Settings, require_production
from tests.api.conftest import OPERATOR, make_node
from tests.api.payments.conftest import PAYMENT_SECRET, PRICE, Shop
from tests.backends.sql.looking import write


@asynccontextmanager
async def opened(shop: Shop, settings: Settings, **changes: Any) -> AsyncIterator[Shop]:
    """The same shop with another provider."""
    settings = replace(settings, **changes)
    async with open_engine(settings) as engine:
        node = await make_node(settings, engine)
        use = UseCases(engine, settings)
        yield Shop(node, engine, shop.release_desk, use.payments, use.refunds)
        await node.http.aclose()


@dataclass
class PaymentSide:
    """A small HTTP server that takes refund requests."""

    statuses: list[int] = field(default_factory=list)  # what it answers, one after the other; 200 from then on
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        body = await reader.readexactly(int(headers["content-length"])) if head[0].startswith("POST") else b""
        self.got.append((headers, body))
        status = self.statuses.pop(0) if self.statuses else 200
        more = f"Location: {self.url}elsewhere\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def side() -> AsyncIterator[PaymentSide]:
    made = PaymentSide()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    yield made
    server.close()
    await server.wait_closed()


async def owe(shop: Shop) -> str:
    """A refund: a buyer paid twice."""
    order_id = await shop.order(await shop.node.create())
    assert (await shop.notify(order_id, "pay-1")).status_code == 200
    assert (await shop.notify(order_id, "pay-2")).json()["code"] == "already_paid"
    return order_id


async def due_now(shop: Shop) -> None:
    await write(shop.ledger, "UPDATE refunds SET next_ms = 1 WHERE next_ms IS NOT NULL")


async def test_with_callback_no_button_pays(shop: Shop, settings: Settings) -> None:
    async with opened(shop, settings, payment_provider="callback") as real:
        order_id = await real.order(await real.node.create())
        before = await real.everything()
        refused = await real.act(order_id, "pay")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_sandbox")
        assert await real.everything() == before
        assert (await real.notify(order_id)).json()["state"] == "paid"


@pytest.mark.parametrize(
    ("provider", "pay_url", "sandbox", "shown"),
    [
        ("sandbox", "", "on", ""),
        ("callback", "", "off", ""),
        ("callback", "https://shop.example.com/pay?from=a&b=1", "off", "https://shop.example.com/pay?from=a&amp;b=1"),
    ],
)
async def test_the_page_knows_where_to_pay(
    shop: Shop, settings: Settings, provider: str, pay_url: str, sandbox: str, shown: str
) -> None:
    async with opened(shop, settings, payment_provider=provider, pay_url=pay_url) as real:
        shell = (await real.node.http.get("/orders/ANY")).text
    assert f'<meta name="seckill-sandbox" content="{sandbox}">' in shell
    assert f'<meta name="seckill-pay" content="{shown}">' in shell


@pytest.mark.parametrize("status", [400, 409, 410, 422])
async def test_a_payment_side_that_refuses_for_good_is_asked_now_and_then(
    shop: Shop, settings: Settings, side: PaymentSide, status: int
) -> None:
    side.statuses = [status]
    async with opened(shop, settings, payment_provider="callback", refund_url=side.url) as real:
        await owe(real)
        assert await real.refunds.make_due() == 1
        [refund] = await real.ledger.payments.refunds(10)
        assert refund.refused is not None
        assert str(status) in refund.refused
        await due_now(real)
        assert await real.refunds.make_due() == 1
        [refund] = await real.ledger.payments.refunds(10)
        assert (refund.refused, refund.done_ms is not None) == (None, True)


async def test_the_payment_side_is_asked_for_the_part_that_goes_back(
    shop: Shop, settings: Settings, side: PaymentSide
) -> None:
    async with opened(shop, settings, payment_provider="callback", refund_url=side.url) as real:
        order_id = await real.order(await real.node.create())
        await real.notify(order_id, "pay-1")
        wish = {"reason": "damaged", "return_unit": False, "amount_cents": 100}
        answer = await real.node.http.post(f"/v1/admin/orders/{order_id}/refund", json=wish, headers=OPERATOR)
        assert answer.status_code == 200
        assert await real.refunds.make_due() == 1
    [(_, body)] = side.got
    asked = json.loads(body)
    assert (asked["amount_cents"], asked["payment_id"], asked["reason"]) == (100, "pay-1", "operator")


async def test_refunds_are_asked_for_until_they_are_done(shop: Shop, settings: Settings, side: PaymentSide) -> None:
    side.statuses = [500, 302, 404]
    async with opened(shop, settings, payment_provider="callback", refund_url=side.url) as real:
        order_id = await owe(real)
        for tries in range(1, 5):
            assert await real.refunds.make_due() == 1
            assert await real.refunds.make_due() == 0, "not again at once"
            [refund] = await real.ledger.payments.refunds(10)
            assert (refund.attempts, refund.done_ms is not None) == (tries, tries == 4)
            await due_now(real)
        assert await real.refunds.make_due() == 0
    assert len(side.got) == 4, "a redirect is not followed"
    for headers, body in side.got:
        verify(PAYMENT_SECRET, headers[HEADER.lower()], body, time.time())
        assert json.loads(body) == {
            "refund_id": str(refund.id),
            "payment_id": "pay-2",
            "order_id": order_id,
            "amount_cents": PRICE,
            "currency": "CNY",
            "reason": "already_paid",
        }


async def test_dying_after_the_request_repeats_it_with_the_same_id(
    shop: Shop, settings: Settings, side: PaymentSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(shop, settings, payment_provider="callback", refund_url=side.url) as real:
        await owe(real)

        def die(name: str) -> None:
            if name == "payments.refund.after":
                raise ConnectionAbortedError

        with monkeypatch.context() as patch:
            patch.setattr(refunds_module, "reached", die)
            with pytest.raises(ConnectionAbortedError):
                await real.refunds.make_due()
        await due_now(real)
        assert await real.refunds.make_due() == 1
        [refund] = await real.ledger.payments.refunds(10)
        assert refund.done_ms is not None
    assert [json.loads(body)["refund_id"] for _, body in side.got] == [str(refund.id)] * 2


async def test_without_an_address_refunds_wait_for_a_hand(shop: Shop, settings: Settings) -> None:
    async with opened(shop, settings, payment_provider="callback") as real:
        await owe(real)
        assert await real.refunds.make_due() == 1
        [refund] = (await real.node.http.get("/v1/admin/refunds", headers=OPERATOR)).json()["refunds"]
        assert (refund["done_at"], refund["provider"]) == (None, "callback")
        url = f"/v1/admin/refunds/{refund['id']}/done"
        assert (await real.node.http.post(url)).status_code == 401
        done = (await real.node.http.post(url, headers=OPERATOR)).json()
        assert done["done_at"]
        assert (await real.node.http.post(url, headers=OPERATOR)).json() == done
        await due_now(real)
        assert await real.refunds.make_due() == 0
        for nonsense in ("0", "x", "9" * 30, "-1"):
            missing = await real.node.http.post(f"/v1/admin/refunds/{nonsense}/done", headers=OPERATOR)
            assert missing.status_code == 404


async def test_a_provider_is_not_asked_to_return_what_another_took(
    shop: Shop, settings: Settings, side: PaymentSide
) -> None:
    await owe(shop)
    async with opened(shop, settings, payment_provider="callback", refund_url=side.url) as real:
        assert await real.refunds.make_due() == 1
    assert side.got == []
    assert (await shop.ledger.payments.refunds(1))[0].done_ms is None


class Bank:
    """A provider of a shop's own."""

    name = "bank"
    sandbox = False

    def __init__(self) -> None:
        self.refunded: set[int] = set()
        self.broken = 2

    def read(self, headers: Mapping[str, str], body: bytes, now_s: float) -> Notice:
        if headers.get("x-bank") != "it is me":
            raise NotGenuine("Who are you?")
        ref, order_id = body.decode().split()
        return Notice(ref=ref, order_id=order_id, amount_cents=PRICE, currency="CNY")

    async def refund(self, refund: Refund, order_id: str) -> bool:
        self.broken -= 1
        if self.broken == 1:
            raise ProviderUnavailable("The bank is closed.")
        if self.broken == 0:
            raise ZeroDivisionError
        self.refunded.add(refund.id)
        return True


def make_bank(settings: Settings) -> Bank:
    assert settings.payment_provider.endswith("make_bank")
    return Bank()


async def test_a_shop_brings_its_own_provider(shop: Shop, settings: Settings) -> None:
    async with opened(shop, settings, payment_provider=f"{__name__}:make_bank", payment_secret=None) as real:
        bank = real.engine.provider
        assert isinstance(bank, Bank)
        order_id = await real.order(await real.node.create())

        async def say(ref: str, **headers: str) -> Any:
            return await real.node.http.post("/v1/payments/callback", content=f"{ref} {order_id}", headers=headers)

        assert (await say("b1")).json()["detail"] == "Who are you?"
        assert (await say("b1", **{"X-Bank": "it is me"})).json()["state"] == "paid"
        assert (await say("b2", **{"X-Bank": "it is me"})).json()["code"] == "already_paid"
        for _ in range(3):
            assert await real.refunds.make_due() == 1
            await due_now(real)
        assert await real.refunds.make_due() == 0
        assert bank.refunded == {refund.id for refund in await real.ledger.payments.refunds(10)}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no.such.module:make", "cannot be loaded"),
        (f"{__name__}:no_such_name", "cannot be loaded"),
        ("math:sqrt", "cannot be loaded"),
        (f"{__name__}:make_nameless", "must have 1 to 32 characters"),
    ],
)
def test_a_provider_that_cannot_be_had(name: str, sentence: str) -> None:
    with pytest.raises(StartError, match=sentence):
        open_provider(Settings(payment_provider=name))


def make_nameless(_: Settings) -> Bank:
    bank = Bank()
    bank.name = "x" * 33
    return bank


def test_the_roles_refuse_to_start_without_the_secret() -> None:
    settings = Settings(redis_url="redis://x", database_url="sqlite:///x", payment_provider="callback")
    with pytest.raises(SettingsError, match="SECKILL_PAYMENT_SECRET"):
        require_production(settings, "keeper")
    require_production(settings, "worker")
    require_production(replace(settings, payment_secret=PAYMENT_SECRET), "keeper")
