"""The events of the feed: everything that the ledger commits about sales, rounds, lines, orders, money and codes.
Pure."""

from dataclasses import replace
from enum import StrEnum

from seckill.domain.order import OVER, Order, OrderState


class EventType(StrEnum):
    SALE_CREATED = "sale.created"
    SALE_CHANGED = "sale.changed"  # title, units, window, limit or cool-down
    SALE_PAUSED = "sale.paused"
    SALE_RESUMED = "sale.resumed"
    SALE_CLOSED = "sale.closed"
    ROUND_CREATED = "round.created"
    ROUND_COVERED = "round.covered"  # its sale gives codes, and has enough for it now
    ROUND_OPENED = "round.opened"  # the gate has its units
    ROUND_FENCED = "round.fenced"  # the gate has lost it: it refuses until it is rebuilt and opened again
    ROUND_RECOUNTED = "round.recounted"  # a repair has mended its counters
    ROUND_RETIRED = "round.retired"  # nothing is written to it any more
    ORDER_CREATED = "order.created"  # its row is committed
    ORDER_PAID = "order.paid"
    ORDER_CANCELLED = "order.cancelled"
    ORDER_EXPIRED = "order.expired"
    ORDER_FAILED = "order.failed"
    ORDER_REFUNDED = "order.refunded"
    PAYMENT_RECEIVED = "payment.received"
    PAYMENT_SETTLED = "payment.settled"  # it came late, and pays for another order
    REFUND_REQUESTED = "refund.requested"
    REFUND_REFUSED = "refund.refused"  # by the provider, for good; it is asked again now and then
    REFUND_DONE = "refund.done"
    LINE_OPENED = "line.opened"  # a sale with a waiting list has sold out: what comes back goes to those who wait
    LINE_CLOSED = "line.closed"  # who takes part in the draw is settled
    LINE_DRAWN = "line.drawn"
    LINE_CHANGED = "line.changed"  # an operator has paused serving, changed its pace or given the beacon
    ENTRY_JOINED = "entry.joined"
    ENTRY_SERVED = "entry.served"  # its order is there
    ENTRY_LEFT = "entry.left"  # by its buyer, or removed by an operator with a reason
    ENTRY_PASSED_OVER = "entry.passed_over"  # no unit can come to it any more
    VOUCHER_GIVEN = "voucher.given"  # an order has its codes
    VOUCHER_REDEEMED = "voucher.redeemed"
    VOUCHER_VOIDED = "voucher.voided"  # an order has lost its codes: they are void, or back in the pool

    @property
    def family(self) -> str:
        return self.partition(".")[0]


def matching(word: str) -> frozenset[EventType]:
    """`order.*` stands for all types that begin with `order.`. An empty result means that there is no such type."""
    family = word.removesuffix(".*")
    return frozenset(each for each in EventType if word == each or (family != word and family == each.family))


_OF_STATE = {
    OrderState.UNPAID: EventType.ORDER_CREATED,
    OrderState.PAID: EventType.ORDER_PAID,
    OrderState.CANCELLED: EventType.ORDER_CANCELLED,
    OrderState.EXPIRED: EventType.ORDER_EXPIRED,
    OrderState.FAILED: EventType.ORDER_FAILED,
    OrderState.REFUNDED: EventType.ORDER_REFUNDED,
}


def of_change(before: OrderState, after: OrderState) -> tuple[EventType, ...]:
    """A free order is created and paid at once. One that was given up before it was written is never created."""
    if (before, after) == (OrderState.QUEUED, OrderState.PAID):
        return EventType.ORDER_CREATED, EventType.ORDER_PAID
    return (_OF_STATE[after],)


def as_of(order: Order, state: OrderState) -> Order:
    """Returns the order as it was when it entered that state: an event says nothing about what happened later."""
    closed = state in OVER or state is OrderState.REFUNDED
    return replace(
        order,
        state=state,
        paid_ms=order.paid_ms if state in (OrderState.PAID, OrderState.REFUNDED) else None,
        closed_ms=order.closed_ms if closed else None,
        closed_by=order.closed_by if closed else None,
        refunded_cents=order.refunded_cents if state is OrderState.REFUNDED else 0,
        replaced_by=None,
    )
