"""Things that tests need often, with defaults for everything that a test does not care about."""

import time
from dataclasses import replace
from typing import Any

from seckill.bootstrap.engine import Engine
from seckill.bootstrap.use_cases import UseCases
from seckill.domain.order import Order, OrderState
from seckill.domain.order_number import OrderNumber
from seckill.domain.sale import Round, RoundStatus
from seckill.settings import Settings

HOUR_MS = 3_600_000


def make_round(**changes: Any) -> Round:
    now_ms = int(time.time() * 1000)
    facts: dict[str, Any] = {
        "id": 1,
        "sale_id": 1,
        "ordinal": 1,
        "lane": 3,
        "total": 10,
        "limit_per_buyer": 1,
        "scheduled_ms": now_ms - HOUR_MS,
        "begins_ms": now_ms - HOUR_MS,
        # A test that comes at the end of a long run was collected hours ago.
        "ends_ms": now_ms + 24 * HOUR_MS,
        "status": RoundStatus.OPEN,
        "epoch": 1,
        "revision": 1,
        "synced_revision": 0,
        "opened_ms": None,
    }
    return Round(**(facts | changes))


def use_cases(engine: Engine, **settings: Any) -> UseCases:
    """Those of another process than the node's: with a catalogue of their own."""
    return UseCases(engine, Settings(**({"lanes": 4} | settings)))


def make_order(**changes: Any) -> Order:
    """One that is unpaid."""
    order = Order(
        number=OrderNumber.mint(1_790_000_000_000, 0, 1),
        sale_id=1,
        round_id=1,
        user="ann",
        quantity=1,
        state=OrderState.UNPAID,
        price_cents=100,
        currency="CNY",
        created_ms=0,
        expires_ms=None,
        paid_ms=None,
        closed_ms=None,
    )
    return replace(order, **changes)
