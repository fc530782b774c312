"""Decides what becomes of a payment: it pays its order, or another in its place, or it goes back.

A provider's notice is first noted in the ledger, once for each of its references. If the order is unpaid, the same
transaction pays it. If the order was already paid by another payment, the same transaction marks this money as owed
back.

If the order is over, the payment is late, and `late_payments.py` decides. `refunds.py` deals with money that is owed
back.
"""

from dataclasses import replace

import structlog

from seckill.domain.order_number import OrderNumber
from seckill.domain.payment_fate import Fate
from seckill.engine.money.late_payments import LEASE_S, LatePayments
from seckill.engine.orders.orders_on_the_way import OrdersOnTheWay
from seckill.errors import GateError, LedgerError
from seckill.failpoints import reached
from seckill.ports.payment import Capture, Captured, CaptureLedger
from seckill.telemetry import CAPTURES

log = structlog.get_logger()


class Payments:
    def __init__(self, ledger: CaptureLedger, late: LatePayments, on_the_way: OrdersOnTheWay) -> None:
        self._ledger = ledger
        self._on_the_way = on_the_way
        self.late = late

    async def capture(self, number: OrderNumber, capture: Capture) -> Captured:
        """Notes that money was taken for this order. Harmless to repeat, even at the same time."""
        captured = await self._ledger.capture(number, capture, LEASE_S)
        if captured.fate is Fate.UNKNOWN_ORDER and await self._on_the_way.may_have(number):
            captured = replace(captured, fate=Fate.STILL_QUEUED)
        CAPTURES.labels(captured.fate.value if captured.new or not captured.payment_id else "repeated").inc()
        if not (captured.new and captured.fate is Fate.LATE):
            return captured
        reached("payments.capture.after")
        try:
            late = await self._ledger.late(captured.payment_id)
            if late is not None:
                await self.late.decide(late)
            return await self._ledger.capture(number, capture, LEASE_S)
        except (GateError, LedgerError) as error:  # it is noted, so the keeper will do it
            log.warning("a late payment waits", payment=captured.payment_id, reason=str(error))
            return captured
