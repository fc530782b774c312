"""How far a line has come. The ledger is asked at most once a second, however many buyers look."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seckill.domain.line import EntryState, LineEntry, RoundLine
from seckill.domain.line_estimate import RoundSoFar, calls_left, passes_left
from seckill.domain.sale import Round
from seckill.engine.sale_cache import SaleCache
from seckill.engine.shared_look import SharedAnswers
from seckill.ports.ledger import Tally, TallyLedger
from seckill.ports.line import LineFiguresLedger

FRESH_S = 1.0
LINES_KEPT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProgress:
    line: RoundLine
    served_up_to: int
    units_left: int | None  # None: the gate does not answer now
    unpaid: int  # units that may come back
    so_far: RoundSoFar | None = None  # None: no chance can be calculated


class LineFigures:
    def __init__(
        self,
        lines: LineFiguresLedger,
        ledger: TallyLedger,
        sale_cache: SaleCache,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = lines
        self._ledger = ledger
        self._sale_cache = sale_cache
        self._monotonic = monotonic
        self._known: dict[int, tuple[float, LineProgress | None]] = {}
        self._asking = SharedAnswers[LineProgress | None]()
        self._unplaced = SharedAnswers[Sequence[int] | None]()

    async def of(self, round_: Round) -> LineProgress | None:
        """Returns figures that are at most a second old, or None if the round has no line."""
        asked_s, known = self._known.get(round_.id, (0.0, None))
        if asked_s and self._monotonic() - asked_s < FRESH_S:
            return known
        return await self._asking.of(round_.id, lambda: self._ask(round_))

    def fresh(self, round_id: int) -> LineProgress | None:
        """Returns the same figures if they are in memory, otherwise None: then `of` has to ask."""
        asked_s, known = self._known.get(round_id, (0.0, None))
        return known if asked_s and self._monotonic() - asked_s < FRESH_S else None

    async def _ask(self, round_: Round) -> LineProgress | None:
        began_s = self._monotonic()
        progress = await self.now(round_)
        if len(self._known) >= LINES_KEPT:
            self._known.clear()
        self._known[round_.id] = began_s, progress
        return progress

    async def now(self, round_: Round) -> LineProgress | None:
        line = await self._lines.line(round_.id)
        if line is None:
            return None
        # Read after the line: a unit that was offered in between counts as offered, and not as left.
        tally = await self._ledger.tally(round_.id)
        pulse = self._sale_cache.pulse(round_.id)
        left = None if pulse is None else pulse.available
        return LineProgress(
            line=line,
            served_up_to=await self._lines.served_up_to(line),
            units_left=round_.total if pulse is None and line.served == 0 else left,
            unpaid=0 if tally is None else tally.unpaid,
            so_far=None if tally is None or left is None else await self._so_far(round_, line, tally, left),
        )

    async def _so_far(self, round_: Round, line: RoundLine, tally: Tally, at_gate: int) -> RoundSoFar | None:
        """Only for lines in which each buyer wants one unit of the same kind: there, each person ahead takes one
        unit."""
        sale = self._sale_cache.sale_of_round(round_.id)
        if sale is None or round_.items or round_.limit_per_buyer > 1 or sale.limit_by is not None:
            return None
        # What the gate has is a moment older than the line. So the ledger says what is left, including units on their
        # way back, and units that the gate has admitted for people who are still ahead.
        in_play = tally.total - tally.paid - tally.kept - tally.dead
        left = max(0, in_play - tally.unpaid)
        if line.seed is None:  # orders of those who pressed may not be written yet
            left = min(left, at_gate)
        decided = await self._lines.decided(round_.id)
        left_ms = round_.ends_ms - self._sale_cache.now_ms()
        return RoundSoFar(
            units_left=left,
            unpaid=max(0, in_play - left),
            paid=decided.paid,
            lapsed=decided.lapsed,
            passes=passes_left(left_ms, sale.pay_within_s),
            calls=calls_left(left_ms, line.serve_per_s),
        )

    async def change(
        self, round_: Round, *, paused: bool | None, pace: int | None, beacon: str | None
    ) -> RoundLine | None:
        """Makes a change for an operator. Raises NotPossible."""
        line = await self._lines.change_line(round_.id, paused=paused, pace=pace, beacon=beacon)
        self._known.pop(round_.id, None)
        return line

    async def unplaced(self, round_id: int, after: int, count: int) -> Sequence[int] | None:
        """Returns the entries of a list that is closed but not drawn, or None while places are given."""
        return await self._unplaced.of((round_id, after, count), lambda: self._lines.unplaced(round_id, after, count))

    async def entries(self, round_id: int, after: int, count: int, state: EntryState | None = None) -> list[LineEntry]:
        """Returns entries in the order of their places."""
        return await self._lines.entries_by_place(round_id, after, count, state)

    async def undrawn(self, round_id: int, after: int, count: int, state: EntryState | None = None) -> list[LineEntry]:
        """Returns entries that have no places yet, in the order of their numbers."""
        return await self._lines.undrawn(round_id, after, count, state)

    async def entry_of(self, round_id: int, user: str) -> LineEntry | None:
        return await self._lines.entry_of(round_id, user)
