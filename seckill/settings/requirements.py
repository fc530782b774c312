"""Which settings a role that runs on its own needs, and which a payment provider needs."""

from typing import Literal

from seckill.errors import SettingsError
from seckill.settings.provider_keys import NEEDS
from seckill.settings.setting import PREFIX
from seckill.settings.table import Settings

Role = Literal["api", "worker", "keeper"]

UNKNOWN_BUYERS = (
    "Set SECKILL_JWT_SECRET, SECKILL_JWT_SECRETS, SECKILL_JWT_PUBLIC_KEY or SECKILL_JWKS_URL: "
    "buyers' tokens are checked with it."
)


def require_production(settings: Settings, role: Role) -> None:
    """Requires the settings that `seckill up` would make itself, for a role that runs on its own."""
    if settings.in_memory:
        remedy = f"point SECKILL_REDIS_URL at a Valkey or Redis, which `seckill {role}` can share with the other roles"
        raise SettingsError([f"memory:// is the memory of one process, for `seckill up` only: {remedy}."])
    problems = [
        f"Set {PREFIX}{name.upper()}: `seckill {role}` starts no servers of its own."
        for name in ("redis_url", "database_url")
        if not getattr(settings, name)
    ]
    if role == "api" and settings.admin_key is None:
        problems.append("Set SECKILL_ADMIN_KEY: operators are known by it.")
    if role == "api" and not settings.knows_buyers:
        problems.append(UNKNOWN_BUYERS)
    if role != "worker" and settings.payment_provider == "callback" and settings.payment_secret is None:
        problems.append("Set SECKILL_PAYMENT_SECRET: callbacks and refund requests are signed with it.")
    if role != "worker":
        problems += missing_for_payment(settings)
    if problems:
        raise SettingsError(problems)


def missing_for_payment(settings: Settings) -> list[str]:
    """Returns a sentence for each missing setting that the payment provider needs."""
    needs = NEEDS.get(settings.payment_provider, {})
    return [f"Set {PREFIX}{name.upper()}: {why}." for name, why in needs.items() if not getattr(settings, name)]
