"""How many of a sale's orders buyers let lapse: cancelled, or not paid in time. A figure for each sale that is on, and
an alarm, once for each round, when there are too many: a buyer may be taking units to keep others from buying."""

from seckill.engine.sale_cache import SaleCache
from seckill.ports.alarm import Alarm
from seckill.ports.ledger import TallyLedger
from seckill.telemetry import LAPSED_SHARE


class Lapses:
    """`share`: from which an alarm is raised, 0: never; `orders`: the fewest for which a share means anything."""

    def __init__(self, ledger: TallyLedger, sale_cache: SaleCache, alarm: Alarm, *, share: float, orders: int) -> None:
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._alarm = alarm
        self._share = share
        self._orders = orders
        self._told: set[int] = set()  # rounds
        self._shown: set[str] = set()  # sales

    async def look(self) -> int:
        """Returns how many alarms it has raised."""
        rounds = self._sale_cache.watched()
        self._told &= {round_.id for round_ in rounds}
        shown: dict[str, float] = {}
        raised = 0
        for round_ in rounds:
            sale, tally = self._sale_cache.sale_of_round(round_.id), await self._ledger.tally(round_.id)
            if sale is None or tally is None:
                continue
            share = tally.lapsed / tally.orders if tally.orders else 0.0
            sale_id = self._sale_cache.public_id(sale)
            shown[sale_id] = max(share, shown.get(sale_id, 0.0))  # of two rounds at the edge, the worse
            if self._share and share >= self._share and tally.orders >= self._orders and round_.id not in self._told:
                self._told.add(round_.id)
                facts = {"sale": sale_id, "round": round_.id, "orders": tally.orders, "lapsed": tally.lapsed}
                await self._alarm.raise_("many orders of a sale are let lapse", facts)
                raised += 1
        for sale_id in self._shown | shown.keys():
            LAPSED_SHARE.labels(sale_id).set(shown.get(sale_id, 0.0))
        self._shown = set(shown)
        return raised
