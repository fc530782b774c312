"""Settings that are valid one by one but cannot be combined."""

from collections.abc import Iterator, Mapping
from typing import Any

from seckill.settings import provider_keys


def conflicts(values: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence for each conflict. `values`: the settings that are set, by name."""
    if "jwt_secret" in values and "jwt_public_key" in values:
        yield "Set SECKILL_JWT_SECRET or SECKILL_JWT_PUBLIC_KEY, not both."
    if "jwt_secret" in values and values["jwt_secret"] == values.get("admin_key"):
        yield "Set SECKILL_ADMIN_KEY to something else than SECKILL_JWT_SECRET."
    if "payment_secret" in values and values["payment_secret"] in (values.get("jwt_secret"), values.get("admin_key")):
        yield "Set SECKILL_PAYMENT_SECRET to something else than the other secrets."
    if values.get("oidc_url"):
        needs = {
            "public_url": "the provider sends people back there",
            "oidc_client_id": "the provider knows the console by it",
            "oidc_roles": "nobody has a role otherwise",
        }
        yield from (f"Set SECKILL_{name.upper()}: {why}." for name, why in needs.items() if not values.get(name))
    if values.get("pay_url") and values.get("payment_provider") in provider_keys.NEEDS:
        yield "Leave SECKILL_PAY_URL empty: the payment provider has a page of its own to pay on."
    if values.get("broker_url") and str(values.get("redis_url", "")).startswith("memory:"):
        yield "Leave SECKILL_BROKER_URL empty with memory://, which has no streams to relay from."
