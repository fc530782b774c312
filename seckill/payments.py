"""What becomes of money: it pays its order, or one in its place, or it goes back.

A provider's notice is first noted in the ledger, once for each of its references. If the order is unpaid, the same
transaction pays it. If the order was paid otherwise, the same transaction owes the money back.

If the order is over, the payment is late, and the buyer takes a place as anybody would who presses "buy" now:

1. The gate gives back the old order's units, if that was decided and not done yet.
2. The gate admits a claim for the same buyer and quantity. Its request id comes from the old order's number, so
   whoever repeats this finds the same new order and never makes a second one.
3. When a worker has written the new order, one transaction pays it with the late payment and notes in the old order
   what has replaced it. If the gate refuses, one transaction makes the old order `refunded` and owes the money back.

Each step may be repeated by anybody after a crash. The API makes the first try, the keeper all others. Refunds are made
by the keeper: the provider is asked until it has done it, and tells a repeat by the refund's id.
"""

from collections.abc import Collection

import structlog

from seckill.domain import OVER, Claim
from seckill.errors import GateError, LedgerError, ProviderUnavailable, SeckillError
from seckill.failpoints import reached
from seckill.numbers import ORIGIN_S, OrderNumber
from seckill.outcomes import Outcome
from seckill.payment_ports import (
    Capture,
    Captured,
    Fate,
    LatePayment,
    PaymentLedger,
    PaymentProvider,
    Refund,
    Settlement,
)
from seckill.ports import Gate, Release, Released
from seckill.public_ids import PublicIds
from seckill.telemetry import CAPTURES, LATE_PAYMENTS, REFUNDS

log = structlog.get_logger()

BATCH_MAX = 100
# How long a late payment or a refund is left to whoever has taken it, before somebody else may.
LEASE_S = 15.0
REFUND_LEASE_S = 30.0
# Until the new order is written, and until a gate that is away or full may be back.
WRITTEN_AFTER_S = 0.2
READY_AFTER_S = 1.0
# A refund that did not work is tried again after this, doubled up to the maximum.
REFUND_RETRY_S_MIN = 2.0
REFUND_RETRY_S_MAX = 600.0

REPLACEMENT_OVER = "replacement_over"

QUEUED_S_MAX = 24 * 3600
CLOCKS_DIFFER_S_MAX = 60

_REFUSED = {Outcome.LIMIT_REACHED, Outcome.NOT_STARTED, Outcome.ENDED, Outcome.PAUSED, Outcome.SOLD_OUT}


def late_request_id(number: OrderNumber) -> str:
    """Buyers' own are hexadecimal digits only, so none of them can be this."""
    return f"late-{int(number):x}"


def may_be_queued(number: OrderNumber, now_ms: int, lanes: Collection[int]) -> bool:
    """Whether an order that the ledger does not have may be on its way there. An id that was made up almost never says
    a time of the last day."""
    age_s = now_ms // 1000 - ORIGIN_S - number.seconds
    return number.lane in lanes and -CLOCKS_DIFFER_S_MAX <= age_s <= QUEUED_S_MAX


class Payments:
    def __init__(self, ledger: PaymentLedger, gate: Gate, provider: PaymentProvider, order_ids: PublicIds) -> None:
        self._ledger = ledger
        self._gate = gate
        self._provider = provider
        self._order_ids = order_ids

    async def capture(self, number: OrderNumber, capture: Capture) -> Captured:
        """Money was taken for this order. Harmless to repeat, also at the same time."""
        captured = await self._ledger.capture(number, capture, LEASE_S)
        CAPTURES.labels(captured.fate.value if captured.new or not captured.payment_id else "repeated").inc()
        if not (captured.new and captured.fate is Fate.LATE):
            return captured
        reached("payments.capture.after")
        try:
            late = await self._ledger.late(captured.payment_id)
            if late is not None:
                await self._decide(late)
            return await self._ledger.capture(number, capture, LEASE_S)
        except (GateError, LedgerError) as error:  # it is noted, so the keeper will do it
            log.warning("a late payment waits", payment=captured.payment_id, reason=str(error))
            return captured

    async def decide_late(self) -> int:
        """Tries to decide what is due. Returns how many there were."""
        due = await self._ledger.take_late(BATCH_MAX, LEASE_S)
        for late in due:
            try:
                await self._decide(late)
            except Exception as error:  # of one round or one order, perhaps; the others go on
                if isinstance(error, SeckillError):
                    log.warning("a late payment waits", payment=late.id, reason=str(error))
                else:
                    log.exception("a late payment cannot be decided", payment=late.id)
                await self._ledger.put_off_late(late.id, READY_AFTER_S)
        return len(due)

    async def _decide(self, late: LatePayment) -> None:
        if late.order.state not in OVER or late.order.replaced_by is not None:
            await self._give_back(late, REPLACEMENT_OVER)  # another payment for the same order was quicker
            return
        if late.release_epoch is not None:
            release = Release(late.order.number, late.order.user, late.release_epoch)
            (released,) = (await self._gate.release(late.ref, [release])).results
            reached("payments.release.after")
            if released is Released.NOT_YET:
                await self._without_gate(late)
                return
        await self._admit(late)

    async def _admit(self, late: LatePayment) -> None:
        claim = Claim(late.order.user, late.order.quantity, late_request_id(late.order.number))
        (answer,) = (await self._gate.admit(late.ref, [claim])).answers
        reached("payments.admit.after")
        if answer.outcome in (Outcome.ADMITTED, Outcome.REPEATED):
            (holding,) = answer.holdings
            await self._settle(late, holding.number)
        elif answer.outcome in _REFUSED:
            await self._give_back(late, answer.outcome.value)
        elif answer.outcome is Outcome.NOT_READY:
            await self._without_gate(late)
        else:
            await self._ledger.put_off_late(late.id, READY_AFTER_S)

    async def _without_gate(self, late: LatePayment) -> None:
        """A round that is on is rebuilt before long. One that is over is not, and would be refused anyway."""
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

    async def refund_due(self) -> int:
        """Asks the provider to make the refunds that are due. Returns how many there were."""
        done = 0
        # One at a time: a provider may be slow, and whoever dies keeps no others waiting.
        while done < BATCH_MAX and (due := await self._ledger.take_refunds(1, REFUND_LEASE_S)):
            for refund in due:
                await self._refund(refund)
            done += 1
        return done

    async def _refund(self, refund: Refund) -> None:
        result = "by_hand"  # also if another provider took the money: this one cannot give it back
        try:
            if refund.capture.provider == self._provider.name:
                made = await self._provider.refund(refund, self._order_ids.encode(int(refund.number)))
                result = "done" if made else "by_hand"
        except ProviderUnavailable as error:
            result = "failed"
            log.warning("a refund did not work", refund=refund.id, attempts=refund.attempts, reason=str(error))
        except Exception:  # a shop's own provider may raise anything, and the next refund is not to suffer
            result = "failed"
            log.exception("a refund failed", refund=refund.id, attempts=refund.attempts)
        reached("payments.refund.after")
        REFUNDS.labels(result).inc()
        if result == "done":
            await self._ledger.refund_done(refund.id)
        else:
            after_s = min(REFUND_RETRY_S_MIN * 2 ** min(refund.attempts - 1, 20), REFUND_RETRY_S_MAX)
            await self._ledger.put_off_refund(refund.id, after_s)
