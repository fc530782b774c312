"""The lists of buyers in the ledger, see `seckill/domain/audience_list.py`."""

from collections.abc import Sequence
from typing import Protocol

from seckill.domain.audience_list import Digests
from seckill.domain.sale import Sale


class AudienceLedger(Protocol):
    async def replace_list(self, sale_id: int, digests: Sequence[int]) -> Sale | None:
        """Replaces the sale's list, all at once. `digests`: in ascending order, each once. Returns None if there is no
        such sale."""

    async def read_list(self, sale_id: int) -> tuple[int, Digests]:
        """The list's version, and its digests in ascending order."""

    async def is_listed(self, sale_id: int, digest: int) -> bool: ...
