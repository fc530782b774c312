"""The bills, refunds and notices that providers are given in these tests."""

import time
from typing import Any

from seckill.domain.order_number import OrderNumber
from seckill.payment import Bill, Capture, Refund

ORDER = "0123456789ABC"


def bill(**changes: Any) -> Bill:
    now_ms = time.time_ns() // 1_000_000
    given: dict[str, Any] = {
        "order_id": ORDER,
        "title": "手机 / phone",
        "amount_cents": 9_900,
        "currency": "CNY",
        "created_ms": now_ms,
        "pay_before_ms": now_ms + 900_000,
        "return_url": f"https://sale.example.com/orders/{ORDER}?paid=wait",
        "cancel_url": f"https://sale.example.com/orders/{ORDER}",
        "on_phone": False,
        "buyer_address": "203.0.113.7",
    }
    return Bill(**given | changes)


def refund(provider: str, **changes: Any) -> Refund:
    given: dict[str, Any] = {
        "id": 7,
        "amount_cents": 9_900,
        "capture": Capture(provider=provider, ref="ref-1", amount_cents=9_900, currency="CNY"),
        "number": OrderNumber.from_int(1),
        "reason": "sold_out",
        "attempts": 1,
        "created_ms": 1,
        "done_ms": None,
    }
    return Refund(**given | changes)
