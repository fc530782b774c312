"""Settings with which no real shop may run by mistake: payments without money, a sign-in that accepts any name,
failpoints at which processes break on purpose. A role that is started on its own refuses them unless SECKILL_REHEARSAL
says that it is a test; then every page says so, too."""

from dataclasses import replace

from seckill import failpoints
from seckill.errors import SettingsError
from seckill.ports.payment import PaymentProvider
from seckill.settings import Settings


def make_believe(settings: Settings, provider: PaymentProvider) -> list[str]:
    """Returns what is not as in a real shop and what to set instead, each as a sentence without its full stop."""
    found = []
    if provider.sandbox:
        found.append(
            "The payment provider is a sandbox, which gives goods away: set SECKILL_PAYMENT_PROVIDER to "
            "`stripe`, `alipay`, `wechat`, `callback` or a factory of yours"
        )
    if getattr(provider, "test_mode", False):
        found.append("The payment provider is in test mode, in which no money moves: set the keys of a real account")
    if settings.demo_sign_in == "on":
        found.append("Anybody may sign in under any name: set SECKILL_DEMO_SIGN_IN=off")
    if failpoints.armed():
        found.append("Failpoints make processes break on purpose: set SECKILL_FAILPOINTS to nothing")
    return found


def refuse_make_believe(settings: Settings, provider: PaymentProvider) -> None:
    found = make_believe(settings, provider)
    if found and settings.rehearsal == "off":
        raise SettingsError([f"{sentence}, or SECKILL_REHEARSAL=on if this is a test." for sentence in found])


def as_a_test(settings: Settings, provider: PaymentProvider) -> Settings:
    """Marks the settings as a test, for `seckill up`, which is meant for trying things out."""
    return replace(settings, rehearsal="on") if make_believe(settings, provider) else settings
