"""Counts units, orders, money and waiting buyers of every running sale, for the metrics and for the alarm about lapsed
orders."""

from collections.abc import Callable

import msgspec

from seckill.engine.orders.lapse_alarm import Lapses, lapsed_share
from seckill.engine.sale_cache import SaleCache
from seckill.ports.ledger import Tally, TallyLedger
from seckill.ports.line import LineFiguresLedger
from seckill.telemetry import SALES, SALES_SHOWN_MAX, SaleReading, SalesReading


class SaleFigures:
    def __init__(
        self,
        ledger: TallyLedger,
        lines: LineFiguresLedger,
        sale_cache: SaleCache,
        lapses: Lapses,
        tallied: Callable[[int, Tally, int], None] = lambda round_id, tally, waiting: None,
    ) -> None:
        """`tallied` is called with every count."""
        self._ledger = ledger
        self._lines = lines
        self._sale_cache = sale_cache
        self._lapses = lapses
        self._tallied = tallied

    async def look(self) -> int:
        """Returns how many alarms it raised. If there are more sales than the metrics can show, those with the most
        units are shown."""
        rounds = self._sale_cache.watched()
        units = {round_.sale_id: round_.total for round_ in rounds}
        rounds.sort(key=lambda round_: (-units[round_.sale_id], round_.sale_id, round_.ordinal))
        await self._lapses.forget_others(rounds)
        shown: dict[str, SaleReading] = {}
        alarms = 0
        for round_ in rounds:
            sale, tally = self._sale_cache.sale_of_round(round_.id), await self._ledger.tally(round_.id)
            if sale is None or tally is None:
                continue
            sale_id = self._sale_cache.public_id(sale)
            alarms += await self._lapses.consider(sale_id, round_, tally)
            before = shown.get(sale_id)
            if before is None and len(shown) >= SALES_SHOWN_MAX:
                continue
            pulse = self._sale_cache.pulse(round_.id)
            line = await self._lines.line(round_.id)
            self._tallied(round_.id, tally, 0 if line is None else line.waiting)
            shown[sale_id] = SaleReading(
                sale=sale_id,
                currency=sale.currency,
                units=tally.total,
                available=None if pulse is None else pulse.available,
                sold=tally.unpaid + tally.paid + tally.kept,
                unpaid=tally.unpaid,
                paid=tally.paid,
                taken_cents=tally.taken_cents,
                waiting=0 if line is None else line.waiting,
                orders=tally.orders,
                lapsed_share=lapsed_share(tally),
            )
            if before is not None:  # of two rounds around a boundary, the later one, but the worse share
                worse = max(before.lapsed_share, shown[sale_id].lapsed_share)
                shown[sale_id] = msgspec.structs.replace(shown[sale_id], lapsed_share=worse)
        SALES.show(SalesReading(on=len(units), shown=list(shown.values())))
        return alarms
