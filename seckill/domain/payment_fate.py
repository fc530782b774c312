"""Decides what becomes of money that a provider has taken for an order. Pure.

Late money is decided about separately: see `engine/money/late_payments.py`."""

from enum import StrEnum

from seckill.domain.order import OVER, Order, OrderState


class Fate(StrEnum):
    """What became of a capture."""

    # Nothing was changed:
    UNKNOWN_ORDER = "unknown_order"
    STILL_QUEUED = "still_queued"  # the order may be on its way to the ledger: the notice will be repeated
    WRONG_AMOUNT = "wrong_amount"
    REF_REUSED = "ref_reused"  # the provider has used this reference for another payment
    # It was noted:
    SETTLED = "settled"  # the order is paid with it
    LATE = "late"  # the order was over; it is still to be decided what it pays for
    REPLACED = "replaced"  # the order was over; another one, for the same buyer, is paid with it
    REFUNDED = "refunded"  # the order was over, and the money goes back
    SURPLUS = "surplus"  # the order was paid with another capture, and the money goes back


def is_its_price(order: Order, amount_cents: int, currency: str) -> bool:
    """Whether the amount and the currency are exactly the order's price."""
    return (amount_cents, currency) == (order.price_cents, order.currency)


def fate_of_unneeded(order: Order) -> Fate:
    """Decides about money that could not pay its order, because the order was not unpaid."""
    if order.state in OVER and order.replaced_by is None:
        return Fate.LATE
    return Fate.REFUNDED if order.state is OrderState.REFUNDED else Fate.SURPLUS
