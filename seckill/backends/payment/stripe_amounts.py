"""Converts amounts to Stripe's units, which differ from those of ISO 4217 in a few currencies."""

from seckill.domain.money import DECIMALS

# Decimals that differ from ISO 4217's. Stripe takes krónur and shillings as if they had two, and ariary with none.
_OWN = {"ISK": 2, "UGX": 2, "MGA": 0}
# With three decimals, the last digit has to be 0.
_LAST_DIGIT = {code for code, decimals in DECIMALS.items() if decimals == 3}


def _ratio(currency: str) -> tuple[int, int]:
    """Returns how many of Stripe's units equal how many of ours."""
    iso = DECIMALS[currency]
    return int(10 ** _OWN.get(currency, iso)), int(10**iso)


def to_stripe(cents: int, currency: str) -> int:
    """Raises ValueError with a sentence if Stripe cannot express it."""
    times, of = _ratio(currency)
    amount, rest = divmod(cents * times, of)
    if rest or (currency in _LAST_DIGIT and amount % 10):
        raise ValueError(f"Stripe does not take such a fraction of {currency}.")
    return amount


def from_stripe(amount: int, currency: str) -> int:
    """`currency` in capital letters. Raises ValueError."""
    if currency not in DECIMALS:
        raise ValueError(f"{currency} is not in ISO 4217.")
    of, times = _ratio(currency)
    cents, rest = divmod(amount * times, of)
    if rest:
        raise ValueError(f"{amount} is no whole amount of {currency}.")
    return cents
