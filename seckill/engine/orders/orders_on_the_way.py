"""Decides which orders may be on their way to the ledger."""

from collections.abc import Collection

from seckill.domain.order_number import ORIGIN_S, OrderNumber
from seckill.engine.sale_cache import SaleCache

QUEUED_S_MAX = 24 * 3600
CLOCKS_DIFFER_S_MAX = 60


def may_be_on_the_way(number: OrderNumber, now_ms: int, lanes: Collection[int]) -> bool:
    """Checks the time in the number: a made-up id almost never names one within the last day."""
    age_s = now_ms // 1000 - ORIGIN_S - number.seconds
    return number.lane in lanes and -CLOCKS_DIFFER_S_MAX <= age_s <= QUEUED_S_MAX


class OrdersOnTheWay:
    def __init__(self, sale_cache: SaleCache) -> None:
        self._sale_cache = sale_cache

    async def may_have(self, number: OrderNumber) -> bool:
        """Whether an order that the ledger does not have may still come, even if another node has announced its sale a
        moment ago."""
        if number.lane not in self._sale_cache.lanes():
            await self._sale_cache.look_again()
        return may_be_on_the_way(number, self._sale_cache.now_ms(), self._sale_cache.lanes())
