"""The result of a round: money, how many buyers pressed, bought and paid, and how fast it went.

Several operators look at once, so an answer is reused for a moment."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seckill.domain.sale import Sale
from seckill.engine.sale_cache import SaleCache
from seckill.ports.figures import FiguresLedger
from seckill.ports.ledger import Tally, TallyLedger
from seckill.ports.story import RoundStory, StoryLedger
from seckill.ports.takings import Takings, TakingsLedger

FRESH_S = 2.0
ROUNDS_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleSummary:
    tally: Tally
    story: RoundStory
    refused: Mapping[str, int]  # refused claims, as far as they were noted
    takings: Sequence[Takings]
    takings_of_all_rounds: Sequence[Takings]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleStanding:
    """The figures of one sale in a list: only those that can be read for all sales at once."""

    sold: int
    paid: int | None
    taken_cents: int | None


class SaleSummaries:
    def __init__(
        self,
        tallies: TallyLedger,
        stories: StoryLedger,
        figures: FiguresLedger,
        takings: TakingsLedger,
        sale_cache: SaleCache,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tallies = tallies
        self._stories = stories
        self._figures = figures
        self._takings = takings
        self._sale_cache = sale_cache
        self._monotonic = monotonic
        self._known: dict[int, tuple[float, SaleSummary]] = {}

    async def of(self, sale: Sale) -> SaleSummary | None:
        """Returns the summary of the round that comes with the sale, or None if the ledger does not have it."""
        round_id = sale.round.id
        read_s, known = self._known.get(round_id, (0.0, None))
        if known is not None and self._monotonic() - read_s < FRESH_S:
            return known
        tally = await self._tallies.tally(round_id)
        if tally is None:
            return None
        found = SaleSummary(
            tally=tally,
            story=await self._stories.story(round_id, 1),
            refused=await self._figures.refusals(round_id),
            takings=await self._takings.takings(sale.id, round_id),
            takings_of_all_rounds=await self._takings.takings(sale.id, None),
        )
        if len(self._known) >= ROUNDS_KEPT:
            self._known.clear()
        self._known[round_id] = self._monotonic(), found
        return found

    async def standings(self, sales: Sequence[Sale]) -> dict[int, SaleStanding]:
        """Returns the standings by round. Money is as it was last noted, seconds ago."""
        ids = [sale.round.id for sale in sales]
        sold, newest = await self._takings.sold(ids), await self._figures.newest(ids)
        return {
            round_id: SaleStanding(
                sold=sold.get(round_id, 0),
                paid=newest[round_id].paid if round_id in newest else None,
                taken_cents=newest[round_id].taken_cents if round_id in newest else None,
            )
            for round_id in ids
        }
