"""Money that sales have taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Takings:
    """In minor units of one currency."""

    currency: str
    taken_cents: int  # all that was paid, including late money
    refunded_cents: int  # refunded, or decided to be
    refunding_cents: int  # part of it: refunds that the provider has not made yet


class TakingsLedger(Protocol):
    async def takings(self, sale_id: int, round_id: int | None) -> Sequence[Takings]:
        """Returns the takings of all rounds of the sale, or of that one, by currency."""

    async def sold(self, round_ids: Sequence[int]) -> dict[int, int]:
        """Units that orders hold, by round."""
