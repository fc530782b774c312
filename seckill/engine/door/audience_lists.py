"""The lists of invited buyers that a node keeps in memory, so that no claim has to ask the ledger.

When a list is replaced, the old one counts here until all of the new one has been read. A node that has just started,
or has just heard of a list, knows for a moment that the list exists but not who is on it. It cannot decide about anyone
until it has read the list.
"""

import structlog

from seckill.domain.audience_list import Digests, digest_of, has
from seckill.engine.sale_cache import RECENT_MS, SaleCache
from seckill.ports.audience import AudienceLedger

log = structlog.get_logger()


class AudienceLists:
    def __init__(self, ledger: AudienceLedger, sale_cache: SaleCache) -> None:
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._lists: dict[int, tuple[int, Digests]] = {}  # by sale: the version, and its digests

    async def refresh(self) -> int:
        """Reads the lists that are new. Returns how many."""
        now_ms = self._sale_cache.now_ms()
        wanted = {
            sale.id: sale.list_version
            for sale in self._sale_cache.newest()
            if sale.door.audience.listed and now_ms < sale.round.ends_ms + RECENT_MS
        }
        for sale_id in self._lists.keys() - wanted.keys():
            del self._lists[sale_id]
        new = [sale_id for sale_id, version in wanted.items() if self._version(sale_id) < version]
        for sale_id in new:
            version, digests = await self._ledger.read_list(sale_id)
            self._lists[sale_id] = version, digests
            log.info("the list of a sale is known", sale=sale_id, buyers=len(digests))
        return len(new)

    def _version(self, sale_id: int) -> int:
        return self._lists[sale_id][0] if sale_id in self._lists else 0

    def has(self, sale_id: int, list_version: int, user: str) -> bool | None:
        """Whether the buyer is on the list. None: this node has not read the list yet."""
        known = self._lists.get(sale_id)
        if known is None:
            return None if list_version else False
        return has(known[1], digest_of(user))
