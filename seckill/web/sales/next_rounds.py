"""When the next rounds of a sale that repeats begin."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from seckill.domain.recurrence import BadRecurrence, Recurrence
from seckill.domain.sale import RoundStatus, Sale

NEXT_ROUNDS = 5


def next_rounds(sale: Sale) -> Sequence[int]:
    """Returns the beginnings of the rounds after the one with which the sale is shown."""
    if sale.recurrence is None or sale.round.status is RoundStatus.CLOSED:
        return ()
    return _begins_after(sale.recurrence, max(sale.round.scheduled_ms, sale.round.ends_ms - 1))


@lru_cache(maxsize=10_000)
def _begins_after(recurrence: Recurrence, after_ms: int) -> Sequence[int]:
    """Cached, because every buyer looks at sales, while this only changes once in a round."""
    try:
        return tuple(islice(recurrence.after(after_ms), NEXT_ROUNDS))
    except BadRecurrence:  # a zone that another machine knew when the sale was announced
        return ()
