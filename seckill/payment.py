"""For a shop's own payment provider: what it has to be, what it is given, and what it may raise."""

from seckill.errors import (
    CheckoutRefused,
    NotGenuine,
    NotUnderstood,
    ProviderUnavailable,
    RefundPending,
    RefundRefused,
)
from seckill.ports.payment import Bill, Capture, Checkout, CheckoutProvider, Notice, PaymentProvider, Refund

__all__ = [
    "Bill",
    "Capture",
    "Checkout",
    "CheckoutProvider",
    "CheckoutRefused",
    "NotGenuine",
    "NotUnderstood",
    "Notice",
    "PaymentProvider",
    "ProviderUnavailable",
    "Refund",
    "RefundPending",
    "RefundRefused",
]
