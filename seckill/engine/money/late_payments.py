"""Payments that came after their order was over: decides whether the buyer gets another unit or the money back.

If an operator has ended the order, the money goes back. Otherwise the buyer takes a place like any buyer who presses
"buy" now:

1. The gate gives back the old order's units, if that was decided and not done yet.
2. The gate admits a claim for the same buyer and quantity, if the buyer may still buy in this sale. The request id is
   derived from the old order's number, so a repeat finds the same new order and never makes a second one.
3. When a worker has written the new order, one transaction pays it with the late payment and notes in the old order
   which one has replaced it. If the gate refuses, one transaction marks the old order as `refunded` and its money as
   owed back.

Any process may repeat each step after a crash. The API makes the first try, the keeper all others.
"""

import structlog

from seckill.domain.admission import Claim
from seckill.domain.cool_down import LATE
from seckill.domain.order import OPERATOR, OVER
from seckill.domain.order_number import OrderNumber
from seckill.domain.outcome import REFUSALS, Outcome, RefusalKind
from seckill.engine.door.late_guests import LateGuests
from seckill.errors import SeckillError
from seckill.failpoints import reached
from seckill.ports.gate import LatePaymentGate, Release, Released
from seckill.ports.payment import CaptureLedger, LatePayment, Settlement
from seckill.telemetry import LATE_PAYMENTS

log = structlog.get_logger()

BATCH_MAX = 100
# How long a late payment is left to the process that has taken it, before another may take it.
LEASE_S = 15.0
# When to try again: for an order that is not written yet, and for a gate that is away or full.
WRITTEN_AFTER_S = 0.2
READY_AFTER_S = 1.0

REPLACEMENT_OVER = "replacement_over"
CANCELLED = "cancelled_by_operator"

# Refusals that are decisions rather than passing trouble: there is no unit for the money.
REFUSED = {outcome for outcome, refusal in REFUSALS.items() if refusal.kind in (RefusalKind.CONFLICT, RefusalKind.GONE)}


def late_request_id(number: OrderNumber) -> str:
    """Never equals a buyer's own request id: those consist of hexadecimal digits only."""
    return f"{LATE}{int(number):x}"


class LatePayments:
    def __init__(self, ledger: CaptureLedger, gate: LatePaymentGate, guests: LateGuests) -> None:
        self._ledger = ledger
        self._gate = gate
        self._guests = guests

    async def decide_due(self) -> int:
        """Tries to decide the late payments that are due. Returns how many there were."""
        due = await self._ledger.take_late(BATCH_MAX, LEASE_S)
        for late in due:
            try:
                await self.decide(late)
            except Exception as error:  # perhaps only this round or order is concerned; the others go on
                if isinstance(error, SeckillError):
                    log.warning("a late payment waits", payment=late.id, reason=str(error))
                else:
                    log.exception("a late payment cannot be decided", payment=late.id)
                await self._ledger.put_off_late(late.id, READY_AFTER_S)
        return len(due)

    async def decide(self, late: LatePayment) -> None:
        if late.order.state not in OVER or late.order.replaced_by is not None:
            await self._give_back(late, REPLACEMENT_OVER)  # another payment for the same order came first
            return
        if late.order.closed_by == OPERATOR:  # the operator does not want this buyer to get a unit
            await self._give_back(late, CANCELLED)
            return
        if late.release_epoch is not None:
            order = late.order
            release = Release(order.number, order.user, late.release_epoch, late.request_id, order.lapsed)
            (released,) = (await self._gate.release(late.ref, [release])).results
            reached("payments.release.after")
            if released is Released.NOT_YET:
                await self._without_gate(late)
                return
        await self._admit(late)

    async def _admit(self, late: LatePayment) -> None:
        old = late.order
        early_ms = await self._guests.early_ms(old)
        if isinstance(early_ms, Outcome):
            await self._give_back(late, early_ms.value)
            return
        claim = Claim(old.user, old.quantity, late_request_id(old.number), old.metadata, old.item, early_ms, old.person)
        (answer,) = (await self._gate.admit(late.ref, [claim])).answers
        reached("payments.admit.after")
        if answer.outcome in (Outcome.ADMITTED, Outcome.REPEATED):
            (holding,) = answer.holdings
            await self._settle(late, holding.number)
        elif answer.outcome in REFUSED:
            await self._give_back(late, answer.outcome.value)
        elif answer.outcome is Outcome.NOT_READY:
            await self._without_gate(late)
        else:
            await self._ledger.put_off_late(late.id, READY_AFTER_S)

    async def _without_gate(self, late: LatePayment) -> None:
        """Decides without the gate. A round that is on will be rebuilt soon. One that is over will not, and would
        refuse the claim anyway."""
        if late.round_over:
            await self._give_back(late, Outcome.ENDED.value)
        else:
            await self._ledger.put_off_late(late.id, READY_AFTER_S)

    async def _settle(self, late: LatePayment, number: OrderNumber) -> None:
        settlement = await self._ledger.settle(late, number)
        if settlement is Settlement.NOT_WRITTEN:
            await self._ledger.put_off_late(late.id, WRITTEN_AFTER_S)
        elif settlement is Settlement.OVER:
            await self._give_back(late, REPLACEMENT_OVER)
        elif settlement is Settlement.DONE:
            LATE_PAYMENTS.labels("replaced").inc()
            log.info("a late payment pays a new order", old=int(late.order.number), new=int(number))

    async def _give_back(self, late: LatePayment, reason: str) -> None:
        if await self._ledger.give_back(late, reason):
            LATE_PAYMENTS.labels("refunded").inc()
            log.info("a late payment goes back", order=int(late.order.number), reason=reason)
