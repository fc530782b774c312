"""Which round of a repeating sale buyers mean now. Pure."""

from collections.abc import Sequence

from seckill.domain.sale import RoundStatus, Sale

# How long an ended round is still the one that a claim means, unless the next has begun: a buyer who got no answer at
# the last moment repeats the claim, and must find their order.
AFTERGLOW_MS = 30_000


def current(sales: Sequence[Sale], now_ms: int) -> Sale:
    """Returns the sale with the round that buyers mean now. Of the sale's rounds, given in order, it is the one that is
    on or just over, otherwise the next to come, otherwise the last."""
    if len(sales) == 1:
        return sales[0]
    begun = [sale for sale in sales if sale.round.opens_ms <= now_ms]
    if begun and now_ms < begun[-1].round.ends_ms + AFTERGLOW_MS:
        return begun[-1]
    to_come = sales[len(begun) :]
    for sale in to_come:
        if sale.round.status is not RoundStatus.CLOSED:
            return sale
    return begun[-1] if begun else sales[0]
