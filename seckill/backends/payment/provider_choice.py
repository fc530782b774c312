"""Chooses the payment provider: one of ours by name, or one that a shop's own factory makes."""

import importlib

from seckill.backends.payment.callback import Callback
from seckill.backends.payment.sandbox import Sandbox
from seckill.errors import StartError
from seckill.extras import explained
from seckill.ports.payment import PaymentProvider
from seckill.settings import Settings

NAME_LENGTH_MAX = 32
# Loaded only if chosen: each needs packages that may not be installed.
_WITH_CHECKOUT = {
    "stripe": ("seckill.backends.payment.stripe_checkout", "Stripe"),
    "alipay": ("seckill.backends.payment.alipay", "Alipay"),
    "wechat": ("seckill.backends.payment.wechat", "WeChat"),
}


def _with_checkout(name: str, settings: Settings) -> PaymentProvider:
    module, kind = _WITH_CHECKOUT[name]
    with explained():
        provider: PaymentProvider = getattr(importlib.import_module(module), kind)(settings)
    return provider


def open_provider(settings: Settings) -> PaymentProvider:
    """Raises StartError if it cannot be loaded."""
    name = settings.payment_provider
    if name == Sandbox.name:
        return Sandbox(settings)
    if name == Callback.name:
        return Callback(settings)
    if name in _WITH_CHECKOUT:
        return _with_checkout(name, settings)
    module, _, factory = name.partition(":")
    try:
        provider: PaymentProvider = getattr(importlib.import_module(module), factory)(settings)
        named = provider.name
    except Exception as error:
        raise StartError(f"SECKILL_PAYMENT_PROVIDER={name} cannot be loaded ({error!r}): mend that.") from error
    if not 1 <= len(named) <= NAME_LENGTH_MAX:
        raise StartError(f"The name of {name} must have 1 to {NAME_LENGTH_MAX} characters, not {named!r}.")
    return provider
