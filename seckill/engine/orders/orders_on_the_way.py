"""Which orders that the ledger does not have may be on their way there."""

from collections.abc import Collection

from seckill.domain.order_number import ORIGIN_S, OrderNumber

QUEUED_S_MAX = 24 * 3600
CLOCKS_DIFFER_S_MAX = 60


def may_be_on_the_way(number: OrderNumber, now_ms: int, lanes: Collection[int]) -> bool:
    """A made-up id almost never names a time within the last day."""
    age_s = now_ms // 1000 - ORIGIN_S - number.seconds
    return number.lane in lanes and -CLOCKS_DIFFER_S_MAX <= age_s <= QUEUED_S_MAX
