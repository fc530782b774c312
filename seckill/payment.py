"""For a shop's own payment provider: what it has to be, what it is given, and what it may raise."""

from seckill.errors import NotGenuine, NotUnderstood, ProviderUnavailable
from seckill.ports.payment import Capture, Notice, PaymentProvider, Refund

__all__ = [
    "Capture",
    "NotGenuine",
    "NotUnderstood",
    "Notice",
    "PaymentProvider",
    "ProviderUnavailable",
    "Refund",
]
