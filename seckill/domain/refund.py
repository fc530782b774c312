"""How much of a paid order may be refunded. Pure."""

from enum import Enum, auto

from seckill.domain.order import Order, OrderState


class NoRefund(Enum):
    NOT_PAID = auto()
    TOO_MUCH = auto()  # less than that is left of the price


def left_of_price(order: Order) -> int:
    return order.price_cents - order.refunded_cents


def cents_to_refund(order: Order, wanted_cents: int | None) -> int | NoRefund:
    """`wanted_cents`: None means everything that is left."""
    if order.state is not OrderState.PAID:
        return NoRefund.NOT_PAID
    left = left_of_price(order)
    cents = left if wanted_cents is None else wanted_cents
    if cents > left:
        return NoRefund.TOO_MUCH
    return cents
