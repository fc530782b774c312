"""A node on each ledger, and a payment provider that signs."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import msgspec
import pytest

from seckill.backends.payment.callback_signature import HEADER, signature
from seckill.backends.sql import SqlLedger
from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.engine.money.payments import Payments
from seckill.engine.money.refunds import RefundDesk
from seckill.engine.orders.releases import ReleaseDesk
from seckill.settings import Secret, Settings
from tests.api.conftest import Node, buyer, make_node
from tests.backends.sql.looking import write
from tests.backends.sql.paying import check_money, everything

PAYMENT_SECRET = Secret("the-payment-key-of-the-tests-0123456789")
PRICE = 9900
CALLBACK = "/v1/payments/callback"


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    return replace(settings, database_url=ledger_url, payment_secret=PAYMENT_SECRET)


def message(order_id: str, ref: str = "pay-1", /, **changes: Any) -> dict[str, Any]:
    return {"payment_id": ref, "order_id": order_id, "amount_cents": PRICE, "currency": "CNY"} | changes


@dataclass
class Shop:
    """A node with a payment provider, and the parts that the tests drive by hand."""

    node: Node
    engine: Engine
    release_desk: ReleaseDesk
    payments: Payments  # of a keeper
    refunds: RefundDesk

    @property
    def ledger(self) -> SqlLedger:
        assert isinstance(self.engine.ledger, SqlLedger)
        return self.engine.ledger

    async def order(self, sale: dict[str, Any], user: str = "ann", **body: Any) -> str:
        made = await self.node.buy(sale, user, **body)
        assert made.status_code == 202, made.text
        await self.node.work()
        return str(made.json()["order_id"])

    async def over(self, sale: dict[str, Any], user: str = "ann", *, relayed: bool = True, **body: Any) -> str:
        """An order that has expired."""
        order_id = await self.order(sale, user, **body)
        await self.expire(relayed=relayed)
        return order_id

    async def expire(self, *, relayed: bool = True) -> None:
        """The one order that is unpaid."""
        await write(self.ledger, "UPDATE orders SET expires_ms = 1 WHERE state = 'unpaid'")
        assert await self.release_desk.expire() == 1
        if relayed:
            await self.release_desk.pass_on()
        await self.node.refresh()

    async def send(self, body: bytes, header: str | None) -> httpx2.Response:
        headers = {} if header is None else {HEADER: header}
        return await self.node.http.post(CALLBACK, content=body, headers=headers)

    async def notify(self, order_id: str, ref: str = "pay-1", /, **changes: Any) -> httpx2.Response:
        body = msgspec.json.encode(message(order_id, ref, **changes))
        return await self.send(body, signature(PAYMENT_SECRET, body, int(time.time())))

    async def show(self, order_id: str, user: str = "ann") -> dict[str, Any]:
        found: dict[str, Any] = (await self.node.http.get(f"/v1/orders/{order_id}", headers=buyer(user))).json()
        return found

    async def act(self, order_id: str, verb: str, user: str = "ann") -> httpx2.Response:
        return await self.node.http.post(f"/v1/orders/{order_id}/{verb}", headers=buyer(user))

    async def decide(self) -> None:
        """Does the work of workers and keepers until every late payment is decided."""
        for _ in range(100):
            await self.node.work()
            await write(self.ledger, "UPDATE payments SET next_ms = 1 WHERE next_ms IS NOT NULL")
            if not await self.payments.late.decide_due():
                return
        pytest.fail("late payments are left undecided")

    async def everything(self) -> Any:
        gate = [await self.engine.gate.inspect(sale.round.ref) for sale in await self.ledger.sales()]
        return await everything(self.ledger), [None if view is None else replace(view, now_ms=0) for view in gate]

    async def check(self) -> None:
        """Money = orders, and the gate agrees with the ledger about every unit."""
        await check_money(self.ledger)
        await self.release_desk.pass_on()
        for sale in await self.ledger.sales():
            tally = await self.ledger.tally(sale.round.id)
            view = await self.engine.gate.inspect(sale.round.ref)
            assert tally is not None
            assert view is not None
            assert (view.admitted, view.released) == (tally.recorded, tally.ended)
            assert view.available == view.total - tally.unpaid - tally.paid - tally.kept


@pytest.fixture
async def shop(settings: Settings, engine: Engine) -> AsyncIterator[Shop]:
    node = await make_node(settings, engine)
    use = UseCases(engine, settings)
    yield Shop(node, engine, use.release_desk, use.payments, use.refunds)
    await node.http.aclose()
