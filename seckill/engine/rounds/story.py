"""How a round went, once it is over or sold out: from the ledger, and from what the processes still know.

Everyone asks for it at the same time, so an answer is reused for a while."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from seckill.domain.line import RoundLine
from seckill.domain.sale import Sale, SaleState
from seckill.engine.sale_cache import SaleCache
from seckill.engine.shared_look import SharedAnswers
from seckill.ports.board import Board
from seckill.ports.ledger import TallyLedger
from seckill.ports.line import LineFiguresLedger
from seckill.ports.story import RoundStory, StoryLedger

STEPS = 60
FRESH_S = 10.0
ROUNDS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class ToldStory:
    ledger: RoundStory
    refused: Mapping[str, int]  # claims by outcome, as the API processes that run now have counted them
    line: RoundLine | None
    may_return: int | None  # unpaid units of a sold-out round; None: the round is over


class Stories:
    def __init__(
        self,
        ledger: StoryLedger,
        lines: LineFiguresLedger,
        tallies: TallyLedger,
        board: Board,
        sale_cache: SaleCache,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._lines = lines
        self._tallies = tallies
        self._board = board
        self._sale_cache = sale_cache
        self._monotonic = monotonic
        self._known: dict[int, tuple[float, ToldStory]] = {}
        self._asking = SharedAnswers[ToldStory]()

    async def of(self, sale: Sale) -> ToldStory | None:
        """Returns None while the round goes on: how much of it is sold is not public yet."""
        state = sale.state(self._sale_cache.now_ms(), self._sale_cache.sold_out(sale))
        if state not in (SaleState.SOLD_OUT, SaleState.ENDED):
            return None
        read_s, known = self._known.get(sale.round.id, (0.0, None))
        if known is not None and self._monotonic() - read_s < FRESH_S:
            return known
        return await self._asking.of(sale.round.id, lambda: self._ask(sale.round.id, state))

    async def _ask(self, round_id: int, state: SaleState) -> ToldStory:
        told = ToldStory(
            await self._ledger.story(round_id, STEPS),
            await self._refused(round_id),
            await self._lines.line(round_id),
            await self._unpaid(round_id) if state is SaleState.SOLD_OUT else None,
        )
        if len(self._known) >= ROUNDS_KEPT:
            self._known.clear()
        self._known[round_id] = self._monotonic(), told
        return told

    async def _unpaid(self, round_id: int) -> int | None:
        """The number of unpaid units, as refusals in a sold-out round show it."""
        tally = await self._tallies.tally(round_id)
        return None if tally is None else max(0, tally.total - tally.paid - tally.kept)

    async def _refused(self, round_id: int) -> Mapping[str, int]:
        _, seen = await self._board.reports()
        counted: Counter[str] = Counter()
        for one in seen:
            counted.update(one.report.refused.get(str(round_id), {}))
        return counted
