"""Counts the units of sold-out rounds that are not paid for yet and so may come back. It counts now and then, for all
claims that are refused meanwhile."""

from seckill.engine.claims.sold_out import SoldOutFlags
from seckill.engine.sale_cache import SaleCache
from seckill.ports.ledger import TallyLedger


class UnpaidUnits:
    def __init__(self, ledger: TallyLedger, sale_cache: SaleCache, sold_out: SoldOutFlags) -> None:
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._sold_out = sold_out
        # By round. Public so that each refused claim can look it up.
        self.known: dict[int, int] = {}

    async def count(self) -> int:
        """Counts for every round that this node refuses as sold out, but not for single items. Returns the number of
        rounds."""
        standing = {key for key in self._sold_out.standing if isinstance(key, int)}
        for round_id in self.known.keys() - standing:
            del self.known[round_id]
        for round_id in standing:
            sale, tally = self._sale_cache.sale_of_round(round_id), await self._ledger.tally(round_id)
            if sale is not None and tally is not None:
                # Units that the gate has admitted and no worker has written are unpaid, too.
                self.known[round_id] = max(0, tally.total - tally.paid - tally.kept)
        return len(standing)
