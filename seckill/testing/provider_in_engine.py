"""Checks what becomes of a payment provider's callbacks in an engine: in memory, over HTTP, with real orders."""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from seckill.client import Refused
from seckill.client.connections import Message
from seckill.payment import Notice, PaymentProvider
from seckill.ports.payment import has_checkout
from seckill.settings import Settings
from seckill.testing.in_process import InProcess
from seckill.testing.memory import MemoryEngine, memory_engine

if TYPE_CHECKING:
    from seckill.testing.providers import PaymentSide

PRICE = 9_900
WITHIN_S = 30.0


@dataclass(slots=True)
class _Trial:
    engine: MemoryEngine
    side: "PaymentSide"
    found: list[str]

    async def send(self, notice: Notice) -> int | None:
        """Returns the status of the answer, or None if the payment side cannot say this."""
        callback = self.side.notify(notice, time.time())
        if callback is None:
            return None
        headers, body = callback
        message = Message(
            method="POST", path="/v1/payments/callback", headers=dict(headers), body=body, repeatable=False
        )
        reply = await InProcess(self.engine.app).send(message, WITHIN_S)
        await self.engine.settle()
        return reply.status

    async def order(self, sale_id: str, user: str) -> str:
        claimed = await self.engine.buyer(user).claim(sale_id)
        await self.engine.settle()
        return claimed.order_id

    async def expect(self, what: str, notice: Notice, statuses: tuple[int, ...], user: str, state: str) -> None:
        """Checks the answer, and that the user's orders have `state`: the notice may name another order."""
        status = await self.send(notice)
        if status is not None and status not in statuses:
            self.found.append(f"{what} must be answered with {statuses[0]}, not {status}.")
        for order in (await self.engine.buyer(user).orders()).orders:
            if status is not None and order.state != state:
                self.found.append(f"{what} must leave the order {state}, not {order.state}.")


async def in_engine(provider: PaymentProvider, side: "PaymentSide") -> list[str]:
    found: list[str] = []
    settings = Settings(public_url="https://sale.example.com")
    async with memory_engine(settings, provider=provider) as engine:
        now = engine.now()
        sale = await engine.operator.create_sale(
            "Phone", units=2, price_cents=PRICE, begins_at=now, ends_at=now + timedelta(days=1)
        )
        trial = _Trial(engine, side, found)
        ann, bob = await trial.order(sale.id, "ann"), await trial.order(sale.id, "bob")
        if has_checkout(provider):
            found += await _checkout(engine, ann)
        genuine = Notice(ref="engine-1", order_id=ann, amount_cents=PRICE, currency="CNY")
        await trial.expect("Less than the order costs", replace(genuine, amount_cents=1), (409,), "ann", "unpaid")
        await trial.expect("Another currency", replace(genuine, currency="EUR"), (409,), "ann", "unpaid")
        await trial.expect("An order that is not there", replace(genuine, order_id="0" * 13), (404,), "ann", "unpaid")
        await trial.expect("A payment", genuine, (200,), "ann", "paid")
        await trial.expect("The same payment again", genuine, (200,), "ann", "paid")
        await trial.expect(
            "The same payment for another order", replace(genuine, order_id=bob), (409,), "bob", "unpaid"
        )
        before = side.refunds()
        await trial.expect("A second payment of one order", replace(genuine, ref="engine-2"), (200, 409), "ann", "paid")
        other = replace(genuine, ref="engine-3", order_id=bob)
        await asyncio.gather(*(trial.send(other) for _ in range(5)))
        await trial.expect("A payment that comes five times at once", other, (200,), "bob", "paid")
        found += await _late(trial, engine)
        await engine.settle()
        if (made := side.refunds() - before) not in (2, 0):  # 0: this provider's refunds are made by hand
            found.append(f"A second payment and a late one must be refunded: 2 refunds, not {made}.")
    return found


async def _checkout(engine: MemoryEngine, order_id: str) -> list[str]:
    try:
        first = await engine.buyer("ann").pay(order_id)
        again = await engine.buyer("ann").pay(order_id)
    except Refused as error:
        return [f"`checkout` must give a page to pay an order of 99.00 CNY on, but: {error}."]
    if not first.pay_url or first.pay_url != again.pay_url:
        return [f"`checkout` must give one page for one order, not {first.pay_url!r} and {again.pay_url!r}."]
    return []


async def _late(trial: _Trial, engine: MemoryEngine) -> list[str]:
    """Pays an expired order when there is no unit left."""
    now = engine.now()
    sale = await engine.operator.create_sale(
        "Late", units=1, price_cents=PRICE, begins_at=now, ends_at=now + timedelta(minutes=30), pay_within_s=60
    )
    order_id = await trial.order(sale.id, "carl")
    await engine.pass_time(3600)
    notice = Notice(ref="engine-4", order_id=order_id, amount_cents=PRICE, currency="CNY")
    await trial.expect("Money for an order that is over", notice, (200, 202), "carl", "refunded")
    return []
