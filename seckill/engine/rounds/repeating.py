"""Makes the rounds of repeating sales ahead of their time.

Every keeper looks at every repeating sale, and the ledger lets one of them add each round. The gate's clock, given as
`now_ms`, decides when a round begins, so a keeper that is early or late makes no difference to buyers.
"""

import structlog

from seckill.domain.recurrence import BadRecurrence, Recurrence
from seckill.domain.sale import RoundStatus, Sale
from seckill.engine.sale_cache import SaleCache
from seckill.ports.ledger import RepetitionLedger

log = structlog.get_logger()

# There is always a round that begins later than this, so that keepers may be away for a while and buyers can see when
# the sale goes on.
LEAD_MS = 60_000


class RoundRepeater:
    def __init__(self, ledger: RepetitionLedger, sale_cache: SaleCache, lanes: int) -> None:
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._lanes = lanes
        self._bad: set[int] = set()

    async def step(self) -> int:
        """Returns how many rounds it made."""
        await self._sale_cache.refresh_sales()
        return await self.make_due(await self._sale_cache.gate_time_ms())

    async def make_due(self, now_ms: int) -> int:
        """Returns how many rounds it made."""
        made = 0
        for sale in self._sale_cache.newest():
            if sale.recurrence is None or sale.round.status is RoundStatus.CLOSED:
                continue
            try:
                made += await self._extend(sale, sale.recurrence, now_ms)
            except BadRecurrence as error:  # one sale must not hold up the others
                if sale.id not in self._bad:
                    log.error("this sale cannot go on here", sale=sale.id, field=error.field, reason=str(error))
                self._bad.add(sale.id)
        return made

    async def _extend(self, sale: Sale, recurrence: Recurrence, now_ms: int) -> int:
        made = 0
        while sale.round.opens_ms <= now_ms + LEAD_MS:
            after_ms = max(sale.round.scheduled_ms, sale.round.ends_ms - 1)
            begins_ms = recurrence.next_not_over(after_ms, now_ms)
            if begins_ms is None:
                break
            ends_ms = begins_ms + recurrence.window_ms
            lane = self._sale_cache.quietest_lane(self._lanes, sale.round.lanes)
            added = await self._ledger.add_round(sale.round, begins_ms, ends_ms, lane)
            if added is None:  # another keeper has added it; the catalogue will know soon
                break
            self._sale_cache.put(added)
            passed_ms = next(recurrence.after(after_ms))
            if passed_ms < begins_ms:
                log.warning(
                    "windows have passed while no keeper was there: they are left out",
                    sale=sale.id,
                    from_ms=passed_ms,
                    to_ms=begins_ms,
                )
            log.info("next round", sale=sale.id, round=added.round.id, begins_ms=begins_ms, lane=lane)
            sale = added
            made += 1
        return made
